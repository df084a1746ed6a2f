//! Text → tree, by the grammar of bash. One pass, with a bound on depth; what it does not know ends it.

use std::borrow::Cow;

use crate::DEEPEST;
use crate::redirects::Pending;
use crate::tree::{Command, Compound, List, Pipeline, Plain, Written};

/// Why the rest of the text was not read, as a sentence.
pub(crate) type Stop = String;

pub(crate) struct Tree {
    pub list: List,
    /// Here-documents, by their numbers.
    pub documents: Vec<Written>,
    /// What was read, but may mean more than it seems to.
    pub odd: Vec<String>,
    /// Holds `[[`, `((` and the like, in which other shells find commands.
    pub only_bash: bool,
    /// The first place that looks at variables as at numbers or names: what they hold may then run.
    pub counts: Option<String>,
    /// Why the rest is missing.
    pub stop: Option<Stop>,
}

/// The tree of `text`, which stands `depth` levels deep.
///
/// Bash takes out line ends behind a backslash before it looks at anything else: `$\⏎(rm x)` runs `rm`. Whether one is
/// taken out depends on what stands before it, so the text is read until none is left where one would be.
pub(crate) fn tree(text: &str, depth: usize) -> Tree {
    let mut joined = Cow::Borrowed(text);
    let mut cuts = Vec::new();
    let mut round = 0;
    loop {
        let mut parser = Parser::new(&joined, depth);
        let mut list = List::new();
        let mut stop = parser.all_into(&mut list).err();
        let Parser { documents, odd, only_bash, counts, mut joints, literal, .. } = parser;
        if !joints.is_empty() && round < MOST_ROUNDS {
            round += 1;
            joints.sort_unstable();
            joints.dedup();
            joined = Cow::Owned(without(&joined, &joints, &mut cuts));
            continue;
        }
        // What was taken for a line end to take out may turn out to stand in quotes.
        let is_wrong = literal.iter().any(|(from, to)| {
            let place = cuts.partition_point(|cut| cut < from);
            cuts.get(place).is_some_and(|cut| cut <= to)
        });
        if is_wrong || !joints.is_empty() {
            stop = stop.or(Some("its lines are joined in a way that is not understood".to_owned()));
        }
        return Tree { list, documents, odd, only_bash, counts, stop };
    }
}

/// The text without the line ends at `joints` and the backslashes before them; `cuts` are the places where some were.
fn without(text: &str, joints: &[usize], cuts: &mut Vec<usize>) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut all = Vec::with_capacity(cuts.len() + joints.len());
    let mut earlier = cuts.iter().peekable();
    let mut from = 0;
    for (taken, joint) in joints.iter().enumerate() {
        while let Some(cut) = earlier.next_if(|cut| *cut <= joint) {
            all.push(cut - 2 * taken);
        }
        kept.push_str(text.get(from..*joint).unwrap_or_default());
        all.push(kept.len());
        from = joint + 2;
    }
    all.extend(earlier.map(|cut| cut - 2 * joints.len()));
    kept.push_str(text.get(from..).unwrap_or_default());
    *cuts = all;
    kept
}

pub(crate) struct Parser<'t> {
    pub(crate) text: &'t str,
    pub(crate) at: usize,
    pub(crate) depth: usize,
    pub(crate) documents: Vec<Written>,
    /// Here-documents that begin at the next line.
    pub(crate) pending: Vec<Pending>,
    pub(crate) odd: Vec<String>,
    pub(crate) only_bash: bool,
    pub(crate) counts: Option<String>,
    /// Where a backslash hides a line end that is to be taken out.
    pub(crate) joints: Vec<usize>,
    /// Where nothing has a meaning, from and to: comments, single quotes.
    pub(crate) literal: Vec<(usize, usize)>,
    /// Within how many `$(…)` and `<(…)` this is.
    pub(crate) substitutions: usize,
    /// How many bytes may still be looked at twice.
    pub(crate) patience: usize,
}

/// Where a command may stand, these are no programs.
const RESERVED: &[&str] = &[
    "!", "{", "}", "[[", "if", "then", "elif", "else", "fi", "for", "while", "until", "do", "done", "case", "esac",
    "select", "function", "time", "coproc", "in",
];
/// Text is read again for line ends that a backslash hides this often.
const MOST_ROUNDS: usize = 8;
const PATIENCE: usize = 4 * crate::LONGEST;
/// They end the list before them.
const CLOSING: &[&str] = &["}", "then", "elif", "else", "fi", "do", "done", "esac"];
const STARTS_COMPOUND: &[&str] = &["{", "[[", "if", "for", "while", "until", "case", "select"];

impl<'t> Parser<'t> {
    pub(crate) fn new(text: &'t str, depth: usize) -> Parser<'t> {
        Parser {
            text,
            at: 0,
            depth,
            documents: Vec::new(),
            pending: Vec::new(),
            odd: Vec::new(),
            only_bash: false,
            counts: None,
            joints: Vec::new(),
            literal: Vec::new(),
            substitutions: 0,
            patience: PATIENCE,
        }
    }

    /// Another text within this one, such as that between backquotes.
    pub(crate) fn within<'o, T>(
        &mut self,
        text: &'o str,
        reads: impl FnOnce(&mut Parser<'o>) -> Result<T, Stop>,
    ) -> Result<T, Stop> {
        let mut inner = Parser::new(text, self.depth);
        inner.documents = std::mem::take(&mut self.documents);
        inner.patience = self.patience;
        let result = inner.deeper(reads);
        self.documents = inner.documents;
        self.patience = inner.patience;
        self.odd.append(&mut inner.odd);
        self.only_bash |= inner.only_bash;
        self.counts = self.counts.take().or(inner.counts.take());
        if !inner.joints.is_empty() {
            self.odd.push("a line end is hidden twice".to_owned());
        }
        result
    }

    /// Everything up to the end of the text.
    pub(crate) fn all_into(&mut self, list: &mut List) -> Result<(), Stop> {
        self.list_into(list)?;
        match self.rest().chars().next() {
            None => self.no_document_missing(),
            Some(_) => Err(self.unexpected()),
        }
    }

    pub(crate) fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    pub(crate) fn byte(&self) -> Option<u8> {
        self.byte_after(0)
    }

    pub(crate) fn byte_after(&self, distance: usize) -> Option<u8> {
        self.text.as_bytes().get(self.at + distance).copied()
    }

    pub(crate) fn sees(&self, start: &str) -> bool {
        self.text.as_bytes()[self.at..].starts_with(start.as_bytes())
    }

    pub(crate) fn take(&mut self, start: &str) -> bool {
        let found = self.sees(start);
        if found {
            self.at += start.len();
        }
        found
    }

    pub(crate) fn unexpected(&self) -> Stop {
        let near: String = self.rest().chars().take_while(|letter| *letter != '\n').take(20).collect();
        match near.is_empty() {
            true => "the line ends too early".to_owned(),
            false => format!("the line cannot be read from `{near}` on"),
        }
    }

    pub(crate) fn deeper<T>(&mut self, reads: impl FnOnce(&mut Self) -> Result<T, Stop>) -> Result<T, Stop> {
        if self.depth >= DEEPEST {
            return Err(format!("it is nested more than {DEEPEST} levels deep"));
        }
        self.depth += 1;
        let result = reads(self);
        self.depth -= 1;
        result
    }

    /// What stands in `$(…)` and the like, of which the opening was taken. Its here-documents are its own.
    pub(crate) fn substitution(&mut self) -> Result<List, Stop> {
        let outer = std::mem::take(&mut self.pending);
        self.substitutions += 1;
        let list = self.list_in_parentheses();
        self.substitutions -= 1;
        self.no_document_missing()?;
        self.pending = outer;
        list
    }

    /// A list that ends with `)`, of which the opening was taken. Here-documents begin at the next line, within it or not.
    pub(crate) fn list_in_parentheses(&mut self) -> Result<List, Stop> {
        let mut list = List::new();
        self.deeper(|parser| parser.list_into(&mut list))?;
        match self.take(")") {
            true => Ok(list),
            false => Err(self.unexpected()),
        }
    }

    fn no_document_missing(&self) -> Result<(), Stop> {
        match self.pending.first() {
            None => Ok(()),
            Some(pending) => Err(format!("the here-document `{}` is missing", pending.end)),
        }
    }

    pub(crate) fn list(&mut self) -> Result<List, Stop> {
        let mut list = List::new();
        self.list_into(&mut list)?;
        Ok(list)
    }

    /// Pipelines up to what ends a list.
    fn list_into(&mut self, list: &mut List) -> Result<(), Stop> {
        loop {
            self.skip_lines()?;
            if self.at_end_of_list() {
                return Ok(());
            }
            list.push(self.pipeline()?);
            loop {
                self.skip_blanks();
                if self.sees("&&") || self.sees("||") {
                    self.at += 2;
                    self.skip_lines()?;
                    list.push(self.pipeline()?);
                } else {
                    break;
                }
            }
            match self.byte() {
                Some(b';') if !self.ends_case_item() => self.at += 1,
                Some(b'&') => self.at += 1,
                Some(b'\n') => {}
                _ if self.at_end_of_list() => {}
                _ => return Err(self.unexpected()),
            }
        }
    }

    fn at_end_of_list(&self) -> bool {
        match self.byte() {
            None | Some(b')') => true,
            Some(b';') => self.ends_case_item(),
            _ => self.reserved().is_some_and(|word| CLOSING.contains(&word)),
        }
    }

    fn ends_case_item(&self) -> bool {
        self.sees(";;") || self.sees(";&")
    }

    pub(crate) fn skip_blanks(&mut self) {
        loop {
            match self.byte() {
                Some(b' ' | b'\t') => self.at += 1,
                Some(b'\\') if self.sees("\\\n") => self.join(),
                Some(b'#') => {
                    let from = self.at;
                    self.at += self.rest().find('\n').unwrap_or(self.rest().len());
                    self.literal.push((from + 1, self.at));
                }
                _ => return,
            }
        }
    }

    /// Passes over a backslash and the line end that it hides.
    pub(crate) fn join(&mut self) {
        self.joints.push(self.at);
        self.at += 2;
    }

    pub(crate) fn skip_lines(&mut self) -> Result<(), Stop> {
        loop {
            self.skip_blanks();
            if self.byte() != Some(b'\n') {
                return Ok(());
            }
            self.line_end()?;
        }
    }

    /// Passes over a line end, and over the here-documents that begin there.
    pub(crate) fn line_end(&mut self) -> Result<(), Stop> {
        self.at += 1;
        for pending in std::mem::take(&mut self.pending) {
            self.document(&pending)?;
        }
        Ok(())
    }

    /// The reserved word that stands here, where a command may begin.
    fn reserved(&self) -> Option<&'static str> {
        let rest = self.rest();
        let ends = |byte: u8| matches!(byte, b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'<' | b'>' | b'(' | b')');
        let length = rest.bytes().take(9).position(ends).unwrap_or(rest.len());
        // None is longer: most words are.
        if length > 8 {
            return None;
        }
        let word = rest.get(..length)?;
        RESERVED.iter().find(|reserved| **reserved == word).copied()
    }

    /// The word, if it stands here alone.
    fn take_word(&mut self, word: &str) -> bool {
        let found = self.sees(word) && self.byte_after(word.len()).is_none_or(|byte| b" \t\n;&|<>()".contains(&byte));
        if found {
            self.at += word.len();
        }
        found
    }

    pub(crate) fn take_reserved(&mut self, word: &str) -> bool {
        let found = self.reserved() == Some(word);
        if found {
            self.at += word.len();
        }
        found
    }

    pub(crate) fn expect(&mut self, word: &str) -> Result<(), Stop> {
        self.skip_lines()?;
        match self.take_reserved(word) {
            true => Ok(()),
            false => Err(self.unexpected()),
        }
    }

    fn pipeline(&mut self) -> Result<Pipeline, Stop> {
        loop {
            self.skip_blanks();
            if self.take_reserved("time") {
                for option in ["-p", "--"] {
                    self.skip_blanks();
                    self.take_word(option);
                }
                self.skip_blanks();
                if self.byte() == Some(b'-') {
                    self.odd.push("to other shells than bash, `time` with options is a program".to_owned());
                }
            } else if !self.take_reserved("!") {
                break;
            }
        }
        // `time` and `!` may stand alone.
        if matches!(self.byte(), None | Some(b'\n' | b';' | b'&')) && self.at > 0 {
            return Ok(Pipeline::new());
        }
        let mut commands = vec![self.command()?];
        loop {
            self.skip_blanks();
            if self.sees("||") || !self.take("|") {
                return Ok(commands);
            }
            self.take("&");
            self.skip_lines()?;
            commands.push(self.command()?);
        }
    }

    fn command(&mut self) -> Result<Command, Stop> {
        if self.byte() == Some(b'(') || self.reserved().is_some_and(|word| STARTS_COMPOUND.contains(&word)) {
            return self.deeper(Self::compound);
        }
        match self.reserved() {
            Some("function") => {
                self.at += "function".len();
                self.skip_blanks();
                let name = self.written()?;
                self.skip_blanks();
                if self.take("(") {
                    self.skip_blanks();
                    if !self.take(")") {
                        return Err(self.unexpected());
                    }
                }
                self.body_of_function(name)
            }
            Some("coproc") => self.coprocess(),
            Some("in") | None => self.simple(),
            Some(_) => Err(self.unexpected()),
        }
    }

    fn coprocess(&mut self) -> Result<Command, Stop> {
        self.at += "coproc".len();
        self.skip_blanks();
        let before = self.at;
        let name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        self.at += self.rest().bytes().take_while(name).count();
        self.skip_blanks();
        let is_named = self.byte() == Some(b'(') || self.reserved().is_some_and(|word| STARTS_COMPOUND.contains(&word));
        if !is_named {
            self.at = before;
        }
        let command = self.deeper(Self::command)?;
        // Bash writes what it read there anew, and gives it a name that it then takes for the command.
        if self.substitutions > 0 && !is_named {
            self.odd.push("`coproc` in a substitution runs something else".to_owned());
        }
        let bodies = vec![vec![vec![command]]];
        Ok(Command::Compound(Compound { bodies, is_coprocess: true, ..Compound::default() }))
    }

    fn body_of_function(&mut self, name: Written) -> Result<Command, Stop> {
        self.skip_lines()?;
        match self.deeper(Self::compound)? {
            Command::Compound(mut compound) => {
                compound.function = Some(name.word.text().to_owned());
                compound.words.push(name);
                Ok(Command::Compound(compound))
            }
            simple => Ok(simple),
        }
    }

    fn simple(&mut self) -> Result<Command, Stop> {
        let mut plain = Plain { assignments: Vec::new(), words: Vec::new(), redirects: Vec::new() };
        loop {
            self.skip_blanks();
            if let Some(redirect) = self.redirect()? {
                plain.redirects.push(redirect);
                continue;
            }
            match self.byte() {
                None | Some(b'\n' | b';' | b'&' | b'|' | b')') => break,
                Some(b'(') => {
                    let [_] = plain.words.as_slice() else { return Err(self.unexpected()) };
                    self.at += 1;
                    self.skip_blanks();
                    if !self.take(")") {
                        return Err(self.unexpected());
                    }
                    return match plain.words.pop() {
                        Some(name) => self.body_of_function(name),
                        None => Err(self.unexpected()),
                    };
                }
                Some(_) if plain.words.is_empty() => match self.assignment_or_word()? {
                    (Some(name), value) => plain.assignments.push((name, value)),
                    (None, word) => plain.words.push(word),
                },
                Some(_) => plain.words.push(self.written()?),
            }
        }
        if plain.assignments.is_empty() && plain.words.is_empty() && plain.redirects.is_empty() {
            return Err(self.unexpected());
        }
        Ok(Command::Simple(plain))
    }
}

/// Bash expands the index of an array again when it counts, even one from within quotes.
pub(crate) fn runs_when_counted(text: &str) -> bool {
    text.contains('[') && (text.contains("$(") || text.contains('`'))
}
