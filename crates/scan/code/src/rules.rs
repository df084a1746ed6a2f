//! The rules in use, found by the names that programs use: what a scan costs does not grow with their number.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::OnceLock;

use model::Severity;
use regex::bytes::Regex;

use crate::Language;
use crate::file::{LANGUAGES, SKETCH, SKETCH_START, sketch_place, sketched};
use crate::rule::{Kind, Origin, Rule, Runs, When};
use crate::words::Words;

/// What is known of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    Rule(u16),
    Origin(u16),
    Runs(u16),
}

include!(concat!(env!("OUT_DIR"), "/rules.rs"));

/// Regular expressions of one rule, compiled when they are first needed.
#[derive(Default)]
struct Patterns {
    matches: OnceLock<Option<Regex>>,
    unless: OnceLock<Option<Regex>>,
    value: OnceLock<Option<Regex>>,
    writes: OnceLock<Option<Regex>>,
    text: OnceLock<Option<Regex>>,
}

/// Which of a rule's patterns.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Which {
    Matches,
    Unless,
    Value,
    Writes,
    Text,
}

/// Words of which one must occur before a pattern over text is tried, and which rule each belongs to.
pub(crate) struct Hints {
    pub words: Words,
    pub rules: Vec<u16>,
}

/// The rules that are built in, and a user's.
pub struct Rules {
    own: Vec<Rule>,
    own_index: Vec<HashMap<String, Vec<Entry>>>,
    patterns: Vec<Patterns>,
    origin_patterns: Vec<OnceLock<Option<Regex>>>,
    hints: Vec<[OnceLock<Option<Hints>>; 2]>,
}

impl Default for Rules {
    fn default() -> Rules {
        Rules::of(Vec::new())
    }
}

impl Rules {
    /// Those that are built in.
    pub fn built_in() -> &'static Rules {
        static RULES: OnceLock<Rules> = OnceLock::new();
        RULES.get_or_init(Rules::default)
    }

    pub(crate) fn of(own: Vec<Rule>) -> Rules {
        let mut own_index: Vec<HashMap<String, Vec<Entry>>> = Vec::new();
        if !own.is_empty() {
            own_index.resize_with(LANGUAGES.len(), HashMap::new);
        }
        for (place, rule) in own.iter().enumerate() {
            let mark = match rule.when.kind {
                Kind::Call => "",
                Kind::Import => "import ",
                Kind::Read => "read ",
                Kind::Program => "program ",
                Kind::String | Kind::Text => continue,
            };
            let entry = Entry::Rule((RULES.len() + place) as u16);
            for (language, index) in own_index.iter_mut().enumerate() {
                if rule.languages & (1 << language) != 0 {
                    for name in rule.when.names.iter() {
                        index.entry(format!("{mark}{name}")).or_default().push(entry);
                    }
                }
            }
        }
        let mut patterns = Vec::new();
        patterns.resize_with(RULES.len() + own.len(), Patterns::default);
        let mut origin_patterns = Vec::new();
        origin_patterns.resize_with(ORIGINS.len(), OnceLock::new);
        let mut hints = Vec::new();
        hints.resize_with(LANGUAGES.len(), Default::default);
        Rules { own, own_index, patterns, origin_patterns, hints }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        RULES.len() + self.own.len()
    }

    /// Every rule as people list them: name, class, how grave, languages, what it says.
    pub fn list(&self) -> impl Iterator<Item = Listed<'_>> {
        RULES.iter().chain(&self.own).map(|rule| Listed {
            id: &rule.id,
            class: &rule.class,
            severity: rule.severity,
            languages: Language::ALL.into_iter().filter(|language| rule.languages & language.bit() != 0).collect(),
            message: &rule.message,
        })
    }

    pub(crate) fn rule(&self, place: u16) -> &Rule {
        let place = place as usize;
        RULES.get(place).or_else(|| self.own.get(place - RULES.len())).unwrap_or(&RULES[0])
    }

    pub(crate) fn origin(&self, place: u16) -> &'static Origin {
        &ORIGINS[place as usize]
    }

    pub(crate) fn runs(&self, place: u16) -> &'static Runs {
        &RUNS[place as usize]
    }

    /// Does that pattern of a rule fit? A rule without one fits all.
    pub(crate) fn fits(&self, place: u16, which: Which, text: &[u8]) -> bool {
        self.pattern(place, which).is_none_or(|pattern| pattern.is_match(text))
    }

    pub(crate) fn pattern(&self, place: u16, which: Which) -> Option<&Regex> {
        let (rule, patterns) = (self.rule(place), &self.patterns[place as usize]);
        let (cell, written): (_, &str) = match which {
            Which::Matches => (&patterns.matches, &rule.when.matches),
            Which::Unless => (&patterns.unless, &rule.when.unless),
            Which::Value => (&patterns.value, &rule.when.value),
            Which::Writes => (&patterns.writes, &rule.when.writes),
            Which::Text => (&patterns.text, rule.when.names.first().map_or("", |text| text)),
        };
        cell.get_or_init(|| (!written.is_empty()).then(|| compiled(written).ok()).flatten()).as_ref()
    }

    pub(crate) fn origin_fits(&self, place: u16, text: &[u8]) -> bool {
        let written: &str = &self.origin(place).matches;
        let cell = &self.origin_patterns[place as usize];
        cell.get_or_init(|| (!written.is_empty()).then(|| compiled(written).ok()).flatten())
            .as_ref()
            .is_none_or(|pattern| pattern.is_match(text))
    }

    /// Everything that is known of exactly this pattern of a name.
    fn exactly(&self, language: Language, pattern: &str, found: &mut Vec<Entry>) {
        let index = INDEX[language as usize];
        if let Ok(place) = index.binary_search_by(|(name, _)| (*name).cmp(pattern)) {
            found.extend_from_slice(index[place].1);
        }
        if let Some(entries) = self.own_index.get(language as usize).and_then(|index| index.get(pattern)) {
            found.extend_from_slice(entries);
        }
    }

    /// Everything that is known of a name: `a.b.c` is meant by `a.b.c`, `a.b.*`, `a.*`, `*.c` and `*.b.c`.
    /// Most names are nobody's business: the sketch says so without a search.
    pub(crate) fn of_name(&self, language: Language, mark: &str, name: &str, found: &mut Vec<Entry>) {
        let (sketch, has_own) = (&SKETCHES[language as usize], !self.own_index.is_empty());
        let may_be_known = |computed: u32| {
            let (word, bit) = sketch_place(computed);
            has_own || sketch[word] & bit != 0
        };
        let mut ask = |parts: [&str; 3]| self.exactly(language, &parts.concat(), found);
        let marked = mark.bytes().fold(SKETCH_START, sketched);
        let (mut computed, mut starts, mut dots) = (marked, [0; 8], 0);
        let mut count = 0;
        for (at, byte) in name.bytes().enumerate() {
            if byte == b'.' && dots < starts.len() {
                dots += 1;
                if may_be_known(sketched(sketched(computed, b'.'), b'*')) {
                    starts[count] = at;
                    count += 1;
                }
            }
            computed = sketched(computed, byte);
        }
        if may_be_known(computed) {
            ask([mark, name, ""]);
        }
        starts[..count].iter().for_each(|at| ask([mark, &name[..*at], ".*"]));
        let any = sketched(marked, b'*');
        for (at, _) in name.rmatch_indices('.').take(3) {
            if may_be_known(name[at..].bytes().fold(any, sketched)) {
                ask([mark, "*", &name[at..]]);
            }
        }
    }

    /// Rules over strings or over text, behind words that must occur.
    pub(crate) fn hints(&self, language: Language, kind: Kind) -> Option<&Hints> {
        self.hints[language as usize][usize::from(kind == Kind::Text)]
            .get_or_init(|| self.make_hints(language, kind))
            .as_ref()
    }

    fn make_hints(&self, language: Language, kind: Kind) -> Option<Hints> {
        let (mut words, mut rules) = (Vec::new(), Vec::new());
        for place in 0..self.count() as u16 {
            let rule = self.rule(place);
            if rule.when.kind == kind && rule.languages & language.bit() != 0 {
                for hint in rule.when.hints.iter() {
                    // Letters that share their first bytes are hinted at by those.
                    words.push(
                        match hint
                            .strip_prefix("bytes:")
                            .and_then(|digits| crate::decode::hexadecimal(digits.as_bytes()))
                        {
                            Some(bytes) => bytes,
                            None => hint.as_bytes().to_vec(),
                        },
                    );
                    rules.push(place);
                }
            }
        }
        (!words.is_empty()).then(|| Hints { words: Words::of(words, true), rules })
    }
}

/// A rule as people list it.
#[derive(Clone, Debug)]
pub struct Listed<'a> {
    pub id: &'a str,
    pub class: &'a str,
    pub severity: Severity,
    pub languages: Vec<Language>,
    pub message: &'a str,
}

/// Patterns have a bounded size, and no pattern takes more than linear time.
pub(crate) fn compiled(pattern: &str) -> Result<Regex, regex::Error> {
    regex::bytes::RegexBuilder::new(pattern).unicode(false).multi_line(true).size_limit(1 << 20).build()
}
