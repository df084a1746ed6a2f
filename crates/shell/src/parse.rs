//! Text → tree, by the grammar of bash. One pass, with a bound on depth; what it does not know ends it.

use crate::tree::{Command, Compound, Kind, List, Pipeline, Plain, Redirect, Target, Written};
use crate::{DEEPEST, Word};

/// Why the rest of the text was not read, as a sentence.
pub(crate) type Stop = String;

pub(crate) struct Tree {
    pub list: List,
    /// Here-documents, by their numbers.
    pub documents: Vec<Written>,
    /// What was read, but may mean more than it seems to.
    pub odd: Vec<String>,
    /// Holds `[[` or `((`, which other shells take for commands.
    pub only_bash: bool,
    /// Why the rest is missing.
    pub stop: Option<Stop>,
}

/// The tree of `text`, which stands `depth` levels deep.
pub(crate) fn tree(text: &str, depth: usize) -> Tree {
    let mut parser = Parser::new(text, depth);
    let mut list = List::new();
    let stop = parser.all_into(&mut list).err();
    let Parser { documents, odd, only_bash, .. } = parser;
    Tree { list, documents, odd, only_bash, stop }
}

pub(crate) struct Parser<'t> {
    pub(crate) text: &'t str,
    pub(crate) at: usize,
    pub(crate) depth: usize,
    pub(crate) documents: Vec<Written>,
    /// Here-documents that begin at the next line.
    pending: Vec<Pending>,
    pub(crate) odd: Vec<String>,
    pub(crate) only_bash: bool,
    /// How many bytes may still be looked at twice.
    pub(crate) patience: usize,
}

struct Pending {
    number: usize,
    end: String,
    is_quoted: bool,
    strips_tabs: bool,
}

/// Where a command may stand, these are no programs.
const RESERVED: &[&str] = &[
    "!", "{", "}", "[[", "if", "then", "elif", "else", "fi", "for", "while", "until", "do", "done", "case", "esac",
    "select", "function", "time", "coproc", "in",
];
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

    /// A list that ends with `)`, of which the opening was taken. Its here-documents are its own.
    pub(crate) fn list_in_parentheses(&mut self) -> Result<List, Stop> {
        let outer = std::mem::take(&mut self.pending);
        let mut list = List::new();
        self.deeper(|parser| parser.list_into(&mut list))?;
        self.no_document_missing()?;
        self.pending = outer;
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

    fn list(&mut self) -> Result<List, Stop> {
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
                Some(b'\\') if self.sees("\\\n") => self.at += 2,
                Some(b'#') => self.at += self.rest().find('\n').unwrap_or(self.rest().len()),
                _ => return,
            }
        }
    }

    pub(crate) fn skip_lines(&mut self) -> Result<(), Stop> {
        loop {
            self.skip_blanks();
            if !self.take("\n") {
                return Ok(());
            }
            for pending in std::mem::take(&mut self.pending) {
                self.document(&pending)?;
            }
        }
    }

    fn document(&mut self, pending: &Pending) -> Result<(), Stop> {
        let mut body = String::new();
        while self.at < self.text.len() {
            let mut line = String::new();
            loop {
                let rest = self.rest();
                let length = rest.find('\n').map_or(rest.len(), |end| end + 1);
                let (part, _) = rest.split_at(length);
                self.at += length;
                line.push_str(match pending.strips_tabs {
                    true => part.trim_start_matches('\t'),
                    false => part,
                });
                // Where the document is expanded, lines are joined before its end is looked for.
                let slashes = line.trim_end_matches('\n').bytes().rev().take_while(|byte| *byte == b'\\').count();
                if pending.is_quoted || slashes % 2 == 0 || !line.ends_with('\n') {
                    break;
                }
                line.truncate(line.len() - 2);
            }
            if line.strip_suffix('\n').unwrap_or(&line) == pending.end {
                break;
            }
            body.push_str(&line);
        }
        let written = match pending.is_quoted {
            true => Written { word: crate::holes::filled(body, false), runs: Vec::new(), variables: Vec::new() },
            false => self.within(&body, |inner| inner.expanded_text())?,
        };
        self.documents[pending.number] = written;
        Ok(())
    }

    /// The reserved word that stands here, where a command may begin.
    fn reserved(&self) -> Option<&'static str> {
        let rest = self.rest();
        let ends = |byte: u8| b" \t\n;&|<>()".contains(&byte);
        let length = rest.bytes().take(9).position(ends).unwrap_or(rest.len());
        let word = rest.get(..length)?;
        RESERVED.iter().find(|reserved| **reserved == word).copied()
    }

    fn take_reserved(&mut self, word: &str) -> bool {
        let found = self.reserved() == Some(word);
        if found {
            self.at += word.len();
        }
        found
    }

    fn expect(&mut self, word: &str) -> Result<(), Stop> {
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
                self.skip_blanks();
                while self.sees("-p ") || self.sees("-- ") {
                    self.at += 3;
                    self.skip_blanks();
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
        self.deeper(Self::command)
    }

    fn body_of_function(&mut self, name: Written) -> Result<Command, Stop> {
        self.skip_lines()?;
        match self.deeper(Self::compound)? {
            Command::Compound(mut compound) => {
                compound.words.push(name);
                Ok(Command::Compound(compound))
            }
            simple => Ok(simple),
        }
    }

    fn compound(&mut self) -> Result<Command, Stop> {
        let mut compound = Compound::default();
        if self.sees("((")
            && let Some(end) = self.end_of_arithmetic(self.at + 2)?
        {
            self.only_bash = true;
            self.at += 2;
            compound.words.push(self.arithmetic(end)?);
        } else if self.take("(") {
            compound.bodies.push(self.list_in_parentheses()?);
        } else if self.take_reserved("{") {
            compound.bodies.push(self.list()?);
            self.expect("}")?;
        } else if self.take_reserved("if") {
            self.choice(&mut compound)?;
        } else if self.take_reserved("while") || self.take_reserved("until") {
            compound.bodies.push(self.list()?);
            self.loop_body(&mut compound)?;
        } else if self.take_reserved("for") || self.take_reserved("select") {
            self.each(&mut compound)?;
        } else if self.take_reserved("case") {
            self.cases(&mut compound)?;
        } else if self.take_reserved("[[") {
            self.test(&mut compound)?;
        } else {
            return Err(self.unexpected());
        }
        loop {
            self.skip_blanks();
            match self.redirect()? {
                Some(redirect) => compound.redirects.push(redirect),
                None => return Ok(Command::Compound(compound)),
            }
        }
    }

    fn choice(&mut self, compound: &mut Compound) -> Result<(), Stop> {
        loop {
            compound.bodies.push(self.list()?);
            self.expect("then")?;
            compound.bodies.push(self.list()?);
            if self.take_reserved("elif") {
                continue;
            }
            if self.take_reserved("else") {
                compound.bodies.push(self.list()?);
            }
            return self.expect("fi");
        }
    }

    fn loop_body(&mut self, compound: &mut Compound) -> Result<(), Stop> {
        self.skip_lines()?;
        let end = match self.take_reserved("{") {
            true => "}",
            false => {
                self.expect("do")?;
                "done"
            }
        };
        compound.bodies.push(self.list()?);
        self.expect(end)
    }

    fn each(&mut self, compound: &mut Compound) -> Result<(), Stop> {
        self.skip_blanks();
        if self.sees("((") {
            let end = self.end_of_arithmetic(self.at + 2)?.ok_or_else(|| self.unexpected())?;
            self.at += 2;
            compound.words.push(self.arithmetic(end)?);
        } else {
            let name = self.written()?;
            compound.variable = name.word.known().map(str::to_owned);
            compound.words.push(name);
            self.skip_lines()?;
            if self.take_reserved("in") {
                loop {
                    self.skip_blanks();
                    if matches!(self.byte(), None | Some(b';' | b'\n' | b'&' | b'|' | b')')) {
                        break;
                    }
                    compound.words.push(self.written()?);
                }
            }
        }
        self.skip_blanks();
        self.take(";");
        self.loop_body(compound)
    }

    fn cases(&mut self, compound: &mut Compound) -> Result<(), Stop> {
        self.skip_blanks();
        compound.words.push(self.written()?);
        self.expect("in")?;
        loop {
            self.skip_lines()?;
            if self.take_reserved("esac") {
                return Ok(());
            }
            self.take("(");
            loop {
                self.skip_blanks();
                compound.words.push(self.written()?);
                self.skip_blanks();
                if self.take(")") {
                    break;
                }
                if !self.take("|") {
                    return Err(self.unexpected());
                }
            }
            compound.bodies.push(self.list()?);
            if !(self.take(";;&") || self.take(";;") || self.take(";&")) {
                return self.expect("esac");
            }
        }
    }

    /// `[[ … ]]`: only the words matter here, so its own operators are passed over.
    fn test(&mut self, compound: &mut Compound) -> Result<(), Stop> {
        self.only_bash = true;
        loop {
            while matches!(self.byte(), Some(b' ' | b'\t' | b'\n')) {
                self.at += 1;
            }
            if self.sees("]]") && self.byte_after(2).is_none_or(|byte| b" \t\n;&|<>()".contains(&byte)) {
                self.at += 2;
                return Ok(());
            }
            let is_process = self.sees("<(") || self.sees(">(");
            match self.byte() {
                None => return Err(self.unexpected()),
                Some(b'(' | b')' | b'<' | b'>' | b'&' | b'|') if !is_process => self.at += 1,
                Some(b';' | b'#') => return Err(self.unexpected()),
                Some(_) => {
                    let written = self.written()?;
                    if written.word.known().is_some_and(runs_when_counted) {
                        self.odd.push(format!("`{}` may run commands when it is counted with", written.word.text()));
                    }
                    compound.words.push(written);
                }
            }
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
                Some(_) if plain.words.is_empty() => {
                    let before = self.at;
                    match self.assignment_or_word()? {
                        (Some(name), value) => plain.assignments.push((name, value)),
                        (None, word) => {
                            // A reserved word may be broken by a line end that a backslash hides.
                            let is_broken = self.text[before..self.at].contains("\\\n");
                            if is_broken && word.word.known().is_some_and(|word| RESERVED.contains(&word)) {
                                self.at = before;
                                return Err(self.unexpected());
                            }
                            plain.words.push(word);
                        }
                    }
                }
                Some(_) => plain.words.push(self.written()?),
            }
        }
        if plain.assignments.is_empty() && plain.words.is_empty() && plain.redirects.is_empty() {
            return Err(self.unexpected());
        }
        Ok(Command::Simple(plain))
    }

    fn redirect(&mut self) -> Result<Option<Redirect>, Stop> {
        let before = self.at;
        let mut descriptor = None;
        let digits = self.rest().bytes().take_while(u8::is_ascii_digit).count();
        if digits > 0 {
            descriptor = Some(self.rest()[..digits].trim_start_matches('0').to_owned());
            self.at += digits;
        } else if self.byte() == Some(b'{') {
            let name = |byte: &u8| byte.is_ascii_alphanumeric() || b"_[]".contains(byte);
            let length = self.rest()[1..].bytes().take_while(name).count();
            if length > 0 && self.byte_after(1 + length) == Some(b'}') {
                self.at += length + 2;
                descriptor = Some("variable".to_owned());
            }
        }
        let is_process = self.sees("<(") || self.sees(">(");
        let begins = matches!(self.byte(), Some(b'<' | b'>')) || (descriptor.is_none() && self.sees("&>"));
        if !begins || (is_process && descriptor.is_none()) {
            self.at = before;
            return Ok(None);
        }
        let by_default_in = self.byte() == Some(b'<');
        let is_stdin = match &descriptor {
            None => by_default_in,
            Some(number) => number.is_empty(),
        };
        if self.sees("<<") && !self.sees("<<<") {
            self.at += 2;
            let strips_tabs = self.take("-");
            self.skip_blanks();
            return self.begin_document(strips_tabs, is_stdin).map(Some);
        }
        let kinds = [
            ("<<<", Kind::Text),
            ("&>>", Kind::Write),
            ("&>", Kind::Write),
            (">>", Kind::Write),
            (">|", Kind::Write),
            (">&", Kind::Duplicate),
            ("<&", Kind::Duplicate),
            ("<>", Kind::ReadWrite),
            ("<", Kind::Read),
            (">", Kind::Write),
        ];
        let found = kinds.iter().find(|(sign, _)| self.sees(sign)).copied();
        let (sign, mut kind) = found.ok_or_else(|| self.unexpected())?;
        self.at += sign.len();
        // `>&-` is a whole sign to bash: in `>&-rm x` a command follows.
        if kind == Kind::Duplicate && self.take("-") {
            let written = Written { word: Word::Known("-".to_owned()), runs: Vec::new(), variables: Vec::new() };
            return Ok(Some(Redirect { kind, is_stdin, target: Target::Word(written) }));
        }
        self.skip_blanks();
        let written = self.written()?;
        if kind == Kind::Duplicate && !is_descriptor(&written.word) && sign == ">&" {
            kind = Kind::Write;
        }
        Ok(Some(Redirect { kind, is_stdin, target: Target::Word(written) }))
    }

    fn begin_document(&mut self, strips_tabs: bool, is_stdin: bool) -> Result<Redirect, Stop> {
        let before = self.at;
        let written = self.written()?;
        let raw = &self.text[before..self.at];
        let (Word::Known(end), true) = (written.word, written.runs.is_empty()) else {
            self.at = before;
            return Err(self.unexpected());
        };
        let number = self.documents.len();
        let is_quoted = raw.contains(['\'', '"', '\\']);
        self.documents.push(Written { word: Word::Known(String::new()), runs: Vec::new(), variables: Vec::new() });
        self.pending.push(Pending { number, end, is_quoted, strips_tabs });
        Ok(Redirect { kind: Kind::Text, is_stdin, target: Target::Here(number) })
    }
}

/// Bash expands the index of an array again when it counts, even one from within quotes.
pub(crate) fn runs_when_counted(text: &str) -> bool {
    text.contains('[') && (text.contains("$(") || text.contains('`'))
}

fn is_descriptor(word: &Word) -> bool {
    word.known().is_some_and(|text| !text.is_empty() && text.trim_end_matches('-').bytes().all(|b| b.is_ascii_digit()))
}
