//! Known formats of secrets: ours as constants, a user's read and tried at load.

mod checks;
pub mod examples;
mod file;

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use model::Severity;
use regex_automata::meta::Regex;
use regex_automata::util::syntax;
use regex_automata::{Anchored, Input};

use crate::stream::Index;
use crate::values::Values;

pub use checks::CHECKS;
pub use file::BadFormats;

/// Letters before a keyword that a format may look at.
pub(crate) const BEFORE: usize = 64;
/// What a compiled expression may take, so that a user's file can't eat the memory.
const LARGEST: usize = 1 << 20;

/// As `build.rs` writes it.
struct BuiltIn {
    id: &'static str,
    title: &'static str,
    severity: Severity,
    keywords: &'static [&'static str],
    regex: &'static str,
    lead: usize,
    before: Option<&'static str>,
    window: usize,
    entropy: f64,
    check: Option<&'static str>,
    least: usize,
    needs: &'static str,
    block: bool,
    rank: u8,
}

static BUILT_IN: &[BuiltIn] = &include!(concat!(env!("OUT_DIR"), "/formats.rs"));

/// One known format of a secret.
pub struct Format {
    pub id: Cow<'static, str>,
    pub title: Cow<'static, str>,
    pub severity: Severity,
    pub(crate) keywords: Vec<Cow<'static, str>>,
    regex: Cow<'static, str>,
    lead: usize,
    before: Option<Cow<'static, str>>,
    pub(crate) window: usize,
    entropy: f64,
    check: Option<Cow<'static, str>>,
    least: usize,
    needs: Cow<'static, str>,
    pub(crate) block: bool,
    pub(crate) rank: u8,
    compiled: OnceLock<Option<Compiled>>,
}

struct Compiled {
    whole: Regex,
    group: Option<usize>,
    /// What stands before the secret, as short as possible.
    lead: Option<Regex>,
    before: Option<Regex>,
}

/// A set of formats; cheap to clone.
#[derive(Clone)]
pub struct Formats(Arc<Set>);

struct Set {
    list: Arc<Vec<Format>>,
    /// How they are looked for without values; made when it is first needed.
    index: OnceLock<Arc<Index>>,
}

impl Formats {
    /// Ours.
    pub fn built_in() -> Formats {
        static OURS: OnceLock<Formats> = OnceLock::new();
        OURS.get_or_init(|| Formats::of(BUILT_IN.iter().map(Format::built_in).collect())).clone()
    }

    /// Ours and those of `files`, each a name and a text. All examples of the files are tried; an `id` of ours is taken
    /// over by the file's.
    pub fn with(files: &[(&str, &str)]) -> Result<Formats, BadFormats> {
        let mut all: Vec<Format> = BUILT_IN.iter().map(Format::built_in).collect();
        let mut theirs: Vec<String> = Vec::new();
        for (name, text) in files {
            for written in file::read(name, text)? {
                let bad = |at: usize, key: &str, why: String, fix: &str| BadFormats::new(name, text, at, key, why, fix);
                if theirs.contains(&written.id) {
                    let why = format!("`{}` is there twice", written.id);
                    return Err(bad(written.at.id.start, "id", why, "give each format a name of its own"));
                }
                theirs.push(written.id.clone());
                tried(&written, &bad)?;
                let format = Format::written(written);
                match all.iter_mut().find(|known| known.id == format.id) {
                    Some(known) => *known = format,
                    None => all.push(format),
                }
            }
        }
        Ok(Formats::of(all))
    }

    fn of(list: Vec<Format>) -> Formats {
        Formats(Arc::new(Set { list: Arc::new(list), index: OnceLock::new() }))
    }

    pub fn iter(&self) -> impl Iterator<Item = &Format> {
        self.0.list.iter()
    }

    pub(crate) fn list(&self) -> &Arc<Vec<Format>> {
        &self.0.list
    }

    pub(crate) fn index(&self) -> &Arc<Index> {
        self.0.index.get_or_init(|| Arc::new(Index::of(&Values::new(), Some(self))))
    }
}

/// A user's format on its own examples.
fn tried(written: &file::Written, bad: &impl Fn(usize, &str, String, &str) -> BadFormats) -> Result<(), BadFormats> {
    if let Some(check) = written.check.as_deref().filter(|check| !CHECKS.contains(check)) {
        let fix = "one of those in docs/secrets.md";
        return Err(bad(written.at.id.start, "check", format!("`{check}` is not known"), fix));
    }
    let format = Format::written_ref(written);
    format.compile().map_err(|(key, why)| {
        let at = if key == "before" { written.at.before.start } else { written.at.regex.start };
        bad(at, key, why, "the syntax of Rust's `regex`, without look-around")
    })?;
    if !format.starts_after_its_keyword() {
        let why = "has a secret that may begin inside of its keyword".to_owned();
        return Err(bad(written.at.regex.start, "regex", why, "put the whole keyword before the group `secret`"));
    }
    let alone = Formats::of(vec![format]);
    for (examples, at, key, found) in [
        (&written.matches, written.at.matches.start, "matches", true),
        (&written.passes, written.at.passes.start, "passes", false),
    ] {
        for (number, example) in examples.iter().enumerate() {
            let text = examples::spelled_out(example).map_err(|why| {
                bad(at, key, format!("example {}: {why}", number + 1), "see docs/secrets.md for its kinds")
            })?;
            if crate::find(text.as_bytes(), &alone).is_empty() == found {
                let why =
                    format!("example {} is {}found by `{}`", number + 1, if found { "not " } else { "" }, written.id);
                return Err(bad(at, key, why, "mend the expression or the example"));
            }
        }
    }
    Ok(())
}

impl Format {
    fn built_in(from: &BuiltIn) -> Format {
        let BuiltIn {
            id,
            title,
            severity,
            keywords,
            regex,
            lead,
            before,
            window,
            entropy,
            check,
            least,
            needs,
            block,
            rank,
        } = *from;
        Format {
            id: id.into(),
            title: title.into(),
            severity,
            keywords: keywords.iter().map(|word| Cow::Borrowed(*word)).collect(),
            regex: regex.into(),
            lead,
            before: before.map(Cow::Borrowed),
            window,
            entropy,
            check: check.map(Cow::Borrowed),
            least,
            needs: needs.into(),
            block,
            rank,
            compiled: OnceLock::new(),
        }
    }

    fn written_ref(from: &file::Written) -> Format {
        let severity = Severity::ALL.into_iter().find(|known| known.name() == from.severity);
        Format {
            id: from.id.clone().into(),
            title: from.title.clone().into(),
            severity: severity.unwrap_or(Severity::High),
            keywords: from.keywords.iter().cloned().map(Cow::Owned).collect(),
            regex: from.regex.clone().into(),
            lead: from.lead,
            before: from.before.clone().map(Cow::Owned),
            window: from.window,
            entropy: from.entropy,
            check: from.check.clone().map(Cow::Owned),
            least: from.least,
            needs: from.needs.clone().into(),
            block: from.block,
            rank: from.rank,
            compiled: OnceLock::new(),
        }
    }

    fn written(from: file::Written) -> Format {
        Format::written_ref(&from)
    }

    /// Something stands between the keyword and the secret: the keyword itself may be shown.
    pub(crate) fn has_lead(&self) -> bool {
        self.lead > 0 || self.block
    }

    pub(crate) fn starts_word(&self) -> bool {
        self.regex.starts_with(r"\b")
    }

    /// Whether `text`, from the keyword on, is worth the wait: letters of a token, as far as they are there and needed.
    #[inline]
    pub(crate) fn may_be(&self, text: &[u8]) -> bool {
        text.iter().take(self.least).all(|letter| is_token(*letter))
    }

    /// Where the secret is, if `text` up to `end` has one whose keyword is at `at`.
    pub(crate) fn secret_at(&self, text: &[u8], at: usize, end: usize) -> Option<(usize, usize)> {
        let rest = text.get(at..end)?;
        let has_needed = match self.needs.as_bytes() {
            [] => true,
            [one] => memchr::memchr(*one, rest).is_some(),
            [one, two] => memchr::memchr2(*one, *two, rest).is_some(),
            [one, two, three, ..] => memchr::memchr3(*one, *two, *three, rest).is_some(),
        };
        if rest.len() < self.least || !has_needed {
            return None;
        }
        let compiled = self.compiled()?;
        if let Some(before) = &compiled.before {
            let context = &text[at.saturating_sub(BEFORE)..at];
            if !before.is_match(context) {
                return None;
            }
        }
        let is_generic_token = self.lead > 0 && self.id.starts_with("generic.token");
        if is_generic_token && checks::is_of_a_page(&text[at.saturating_sub(16)..at]) {
            return None;
        }
        let input = Input::new(&text[..end]).span(at..end).anchored(Anchored::Yes);
        let (start, end) = match compiled.group {
            None => {
                let found = compiled.whole.search(&input)?;
                (found.start(), found.end())
            }
            Some(group) => {
                // Seldom a match: first whether there is one, then where its group is.
                compiled.whole.search_half(&input)?;
                let mut captures = compiled.whole.create_captures();
                compiled.whole.search_captures(&input, &mut captures);
                let found = captures.get_group(group)?;
                (found.start, found.end)
            }
        };
        if self.block {
            return Some((end, end));
        }
        let start = (start..end).find(|place| self.lead == 0 || !is_between(text[*place]))?;
        let secret = &text[start..end];
        let is_one = checks::entropy(secret) >= self.entropy
            && !checks::is_placeholder(secret)
            && self.check.as_deref().is_none_or(|check| checks::passes(check, secret));
        is_one.then_some((start, end))
    }

    /// While the line goes on: the first byte that may be of a secret whose keyword is at `at`.
    pub(crate) fn may_start(&self, text: &[u8], at: usize) -> usize {
        if !self.has_lead() {
            return at;
        }
        let Some(compiled) = self.compiled() else { return at };
        // A block comes after all that its expression matches.
        let lead = if self.block { &compiled.whole } else { compiled.lead.as_ref().unwrap_or(&compiled.whole) };
        let input = Input::new(text).span(at..text.len()).anchored(Anchored::Yes).earliest(true);
        let Some(found) = lead.search_half(&input) else { return text.len() };
        (found.offset()..text.len()).find(|place| self.block || !is_between(text[*place])).unwrap_or(text.len())
    }

    /// Keywords with something between them and the secret are shown at once: no letter of them may be of the secret.
    fn starts_after_its_keyword(&self) -> bool {
        let Some(lead) = self.compiled().and_then(|compiled| compiled.lead.as_ref()) else { return true };
        self.keywords.iter().all(|word| {
            (0..word.len()).all(|end| {
                let input = Input::new(&word[..end]).anchored(Anchored::Yes).earliest(true);
                lead.search_half(&input).is_none()
            })
        })
    }

    fn compiled(&self) -> Option<&Compiled> {
        self.compiled.get_or_init(|| self.compile().ok()).as_ref()
    }

    fn compile(&self) -> Result<Compiled, (&'static str, String)> {
        let whole = built(&self.regex).map_err(|why| ("regex", why))?;
        let group = whole.group_info().to_index(regex_automata::PatternID::ZERO, "secret");
        let lead = match self.lead {
            0 => None,
            lead => Some(built(&format!("(?U){}", &self.regex[..lead])).map_err(|why| ("regex", why))?),
        };
        let before = self.before.as_ref().map(|before| built(&format!("(?:{before})$"))).transpose();
        Ok(Compiled { whole, group, lead, before: before.map_err(|why| ("before", why))? })
    }
}

/// Letters that tokens are made of.
pub(crate) fn is_token(letter: u8) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, b'+' | b'/' | b'-' | b'_' | b'.' | b'=' | b'~' | b'%')
}

/// What stands between a name and its value, and is no part of the latter.
fn is_between(letter: u8) -> bool {
    matches!(letter, b' ' | b'\t' | b'"' | b'\'' | b'`' | b'=' | b':' | b'>')
}

fn built(source: &str) -> Result<Regex, String> {
    Regex::builder()
        .syntax(syntax::Config::new().unicode(false).utf8(false))
        .configure(Regex::config().nfa_size_limit(Some(LARGEST)).utf8_empty(false))
        .build(source)
        .map_err(|error| match error.syntax_error() {
            // In one line: the message of the parser draws an arrow.
            Some(error) => format!("is no expression: {}", error.to_string().lines().last().unwrap_or_default()),
            None => "becomes too large".to_owned(),
        })
}

#[cfg(test)]
mod tests;
