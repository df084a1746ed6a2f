//! Words: quotes, expansions, and what runs within them.

use crate::holes::HOLE;
use crate::parse::{Parser, Stop};
use crate::tree::{Flows, List, Run, Written};
use crate::{Piece, Word};

/// A letter of a word, or a place that is only known when it runs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Atom {
    /// Not in quotes, so that it may have a meaning: `*`.
    Bare(char),
    Quoted(char),
    Any,
}

#[derive(Default)]
struct Draft {
    atoms: Vec<Atom>,
    runs: Vec<Run>,
    variables: Vec<String>,
    many: bool,
    /// A letter that may have a meaning was seen.
    has_signs: bool,
    /// Where the first quotes stand, even empty ones: a name in quotes is assigned to nothing.
    first_quote: Option<usize>,
}

/// What ends a text in which `$` and backquotes have their meaning.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    DoubleQuote,
    Offset(usize),
}

impl Parser<'_> {
    /// The word that stands here.
    pub(crate) fn written(&mut self) -> Result<Written, Stop> {
        let before = self.at;
        let draft = self.draft()?;
        Ok(draft.finished(&self.text[before..self.at]))
    }

    /// A word, or the name and value of `NAME=value`.
    pub(crate) fn assignment_or_word(&mut self) -> Result<(Option<String>, Written), Stop> {
        let before = self.at;
        let mut draft = self.draft()?;
        let raw = &self.text[before..self.at];
        let Some((name, value)) = draft.assigned() else { return Ok((None, draft.finished(raw))) };
        draft.atoms.drain(..value);
        let raw = raw.split_once('=').map_or(raw, |(_, value)| value);
        Ok((Some(name), draft.finished(raw)))
    }

    /// All of the text, as a here-document is expanded.
    pub(crate) fn expanded_text(&mut self) -> Result<Written, Stop> {
        let mut draft = Draft::default();
        self.quoted(&mut draft, End::Offset(self.text.len()), false)?;
        Ok(draft.finished(self.text))
    }

    /// Arithmetic up to `end`, and the `))` there.
    pub(crate) fn arithmetic(&mut self, end: usize) -> Result<Written, Stop> {
        let before = self.at;
        let mut draft = Draft::default();
        self.deeper(|parser| parser.quoted(&mut draft, End::Offset(end), false))?;
        let written = draft.finished(&self.text[before..end]);
        self.at = end + 2;
        Ok(written)
    }

    /// Where the `))` is that ends the arithmetic which begins at `from`; `None` if these are two parentheses after all.
    pub(crate) fn end_of_arithmetic(&mut self, from: usize) -> Result<Option<usize>, Stop> {
        let bytes = self.text.as_bytes();
        let (mut at, mut open) = (from, 0_usize);
        let mut end = None;
        while let Some(byte) = bytes.get(at) {
            match byte {
                b'\\' => at += 1,
                b'\'' | b'"' => at += 1 + bytes[at + 1..].iter().take_while(|other| *other != byte).count(),
                b'(' => open += 1,
                b')' if open > 0 => open -= 1,
                b')' => {
                    end = (bytes.get(at + 1) == Some(&b')')).then_some(at);
                    break;
                }
                _ => {}
            }
            at += 1;
        }
        // What is looked at here is read again: texts made to be slow are not read.
        self.patience = self.patience.checked_sub(at - from).ok_or("its parentheses are too many to tell apart")?;
        Ok(end)
    }

    fn draft(&mut self) -> Result<Draft, Stop> {
        let mut draft = Draft::default();
        let before = self.at;
        while let Some(letter) = self.rest().chars().next() {
            if matches!(letter, '\'' | '"') {
                draft.first_quote = draft.first_quote.or(Some(draft.atoms.len()));
            }
            match letter {
                '<' | '>' if self.byte_after(1) == Some(b'(') => self.process(&mut draft)?,
                '(' if draft.assigned().is_some_and(|(_, value)| value == draft.atoms.len()) => {
                    self.array(&mut draft)?;
                }
                ' ' | '\t' | '\n' | ';' | '&' | '|' | '<' | '>' | '(' | ')' => break,
                '\\' => {
                    self.at += 1;
                    match self.rest().chars().next() {
                        None => draft.atoms.push(Atom::Quoted('\\')),
                        Some(next) => {
                            self.at += next.len_utf8();
                            if next != '\n' {
                                draft.push_quoted(next);
                            }
                        }
                    }
                }
                '\'' => {
                    self.at += 1;
                    let length = self.rest().find('\'').ok_or("a single quote is not closed")?;
                    let inside = &self.rest()[..length];
                    inside.chars().for_each(|letter| draft.push_quoted(letter));
                    self.at += length + 1;
                }
                '"' => {
                    self.at += 1;
                    self.deeper(|parser| parser.quoted(&mut draft, End::DoubleQuote, true))?;
                }
                '$' => self.dollar(&mut draft, false)?,
                '`' => self.backquoted(&mut draft, false)?,
                letter => {
                    self.at += letter.len_utf8();
                    draft.push_bare(letter);
                }
            }
        }
        match self.at > before {
            true => Ok(draft),
            false => Err(self.unexpected()),
        }
    }

    /// Text in which only `$`, backquotes and backslashes have a meaning.
    fn quoted(&mut self, draft: &mut Draft, end: End, escapes_quote: bool) -> Result<(), Stop> {
        loop {
            if End::Offset(self.at) == end {
                return Ok(());
            }
            let letter = self.rest().chars().next().ok_or("a double quote is not closed")?;
            match letter {
                '"' if end == End::DoubleQuote => {
                    self.at += 1;
                    return Ok(());
                }
                '$' => self.dollar(draft, true)?,
                '`' => self.backquoted(draft, true)?,
                '\\' => {
                    self.at += 1;
                    match self.byte() {
                        Some(b'\n') => self.at += 1,
                        Some(byte @ (b'$' | b'`' | b'\\')) => {
                            self.at += 1;
                            draft.push_quoted(char::from(byte));
                        }
                        Some(b'"') if escapes_quote => {
                            self.at += 1;
                            draft.push_quoted('"');
                        }
                        _ => draft.push_quoted('\\'),
                    }
                }
                letter => {
                    self.at += letter.len_utf8();
                    draft.push_quoted(letter);
                }
            }
            if let End::Offset(offset) = end
                && self.at > offset
            {
                return Err(self.unexpected());
            }
        }
    }

    fn dollar(&mut self, draft: &mut Draft, in_quotes: bool) -> Result<(), Stop> {
        self.at += 1;
        match self.byte() {
            Some(b'(') => {
                if self.byte_after(1) == Some(b'(')
                    && let Some(end) = self.end_of_arithmetic(self.at + 2)?
                {
                    self.at += 2;
                    let inner = self.arithmetic(end)?;
                    draft.absorb(inner);
                } else {
                    self.at += 1;
                    let list = self.list_in_parentheses()?;
                    draft.runs.push(Run { list, flows: Flows::In });
                }
                draft.any(!in_quotes);
            }
            Some(b'{') => {
                self.at += 1;
                self.deeper(|parser| parser.parameter(draft, in_quotes))?;
            }
            Some(b'[') => {
                self.at += 1;
                let length = self.rest().find(']').ok_or("`$[` is not closed")?;
                let (inner, _) = self.rest().split_at(length);
                if inner.contains(['[', '(', '`', '\'', '"', '{']) {
                    return Err(self.unexpected());
                }
                self.at += length + 1;
                draft.any(!in_quotes);
            }
            Some(b'\'') if !in_quotes => {
                draft.first_quote = draft.first_quote.or(Some(draft.atoms.len()));
                self.at += 1;
                self.escaped(draft)?;
            }
            Some(b'"') if !in_quotes => {
                draft.first_quote = draft.first_quote.or(Some(draft.atoms.len()));
                self.at += 1;
                self.deeper(|parser| parser.quoted(draft, End::DoubleQuote, true))?;
            }
            Some(byte) if byte.is_ascii_alphabetic() || byte == b'_' => {
                let name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
                let length = self.rest().bytes().take_while(name).count();
                draft.variables.push(self.rest()[..length].to_owned());
                self.at += length;
                draft.any(!in_quotes);
            }
            Some(byte) if byte.is_ascii_digit() || b"@*#?-$!".contains(&byte) => {
                self.at += 1;
                draft.any(!in_quotes || byte == b'@');
            }
            _ => draft.push_quoted('$'),
        }
        Ok(())
    }

    /// `${…}`, of which the opening was taken. What it comes out as is never known; what runs within it is.
    fn parameter(&mut self, draft: &mut Draft, in_quotes: bool) -> Result<(), Stop> {
        let before = self.at;
        let name = |byte: &u8| byte.is_ascii_alphanumeric() || b"_!#".contains(byte);
        let length = self.rest().bytes().take_while(name).count();
        draft.variables.push(self.rest()[..length].trim_start_matches(['!', '#']).to_owned());
        let mut inner = Draft::default();
        // `${#}`, `${$}` and the like are no quotes or expansions.
        if self.byte_after(1) == Some(b'}') {
            self.at += self.rest().chars().next().map_or(0, char::len_utf8);
        }
        loop {
            let letter = self.rest().chars().next().ok_or("`${` is not closed")?;
            match letter {
                '}' => break,
                '\\' => {
                    self.at += 1;
                    self.at += self.rest().chars().next().map_or(0, char::len_utf8);
                }
                // Whether it quotes here depends on more than we look at.
                '\'' if in_quotes => return Err(self.unexpected()),
                '\'' => {
                    let length = self.rest()[1..].find('\'').ok_or("a single quote is not closed")?;
                    self.at += length + 2;
                }
                '"' => {
                    self.at += 1;
                    self.deeper(|parser| parser.quoted(&mut inner, End::DoubleQuote, true))?;
                }
                '$' => self.dollar(&mut inner, in_quotes)?,
                '`' => self.backquoted(&mut inner, in_quotes)?,
                '<' | '>' if !in_quotes && self.byte_after(1) == Some(b'(') => self.process(&mut inner)?,
                letter => self.at += letter.len_utf8(),
            }
        }
        let inside = &self.text[before..self.at];
        self.at += 1;
        if inside.ends_with("@P") {
            self.odd.push(format!("`${{{inside}}}` runs what it holds"));
        }
        draft.runs.append(&mut inner.runs);
        draft.variables.append(&mut inner.variables);
        draft.any(!in_quotes || inside.contains('@'));
        Ok(())
    }

    fn backquoted(&mut self, draft: &mut Draft, in_quotes: bool) -> Result<(), Stop> {
        self.at += 1;
        let mut inside = String::new();
        loop {
            let letter = self.rest().chars().next().ok_or("a backquote is not closed")?;
            self.at += letter.len_utf8();
            match letter {
                '`' => break,
                '\\' => match self.byte() {
                    Some(byte @ (b'$' | b'`' | b'\\')) => {
                        self.at += 1;
                        inside.push(char::from(byte));
                    }
                    Some(b'"') if in_quotes => {
                        self.at += 1;
                        inside.push('"');
                    }
                    _ => inside.push('\\'),
                },
                letter => inside.push(letter),
            }
        }
        let list = self.within(&inside, |inner| {
            let mut list = List::new();
            inner.all_into(&mut list)?;
            Ok(list)
        })?;
        draft.runs.push(Run { list, flows: Flows::In });
        draft.any(!in_quotes);
        Ok(())
    }

    /// `<(…)` and `>(…)`.
    fn process(&mut self, draft: &mut Draft) -> Result<(), Stop> {
        let flows = match self.byte() {
            Some(b'<') => Flows::In,
            _ => Flows::Out,
        };
        self.at += 2;
        let list = self.list_in_parentheses()?;
        draft.runs.push(Run { list, flows });
        "/dev/fd/".chars().for_each(|letter| draft.push_quoted(letter));
        draft.any(false);
        Ok(())
    }

    /// `(a b c)` after `NAME=`.
    fn array(&mut self, draft: &mut Draft) -> Result<(), Stop> {
        self.at += 1;
        loop {
            self.skip_lines()?;
            if self.take(")") {
                draft.any(true);
                return Ok(());
            }
            let inner = self.deeper(Parser::written)?;
            draft.absorb(inner);
        }
    }

    /// `$'…'`, of which the opening was taken.
    fn escaped(&mut self, draft: &mut Draft) -> Result<(), Stop> {
        let mut bytes = Vec::new();
        let mut is_known = true;
        loop {
            let letter = self.rest().chars().next().ok_or("a single quote is not closed")?;
            self.at += letter.len_utf8();
            match letter {
                '\'' => break,
                '\\' => match self.escape(&mut bytes) {
                    Some(true) => {}
                    Some(false) => is_known = false,
                    None => return Err("a single quote is not closed".to_owned()),
                },
                letter => bytes.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
        // A zero byte ends it early, and other bytes may be no text: both are left open.
        match String::from_utf8(bytes) {
            Ok(text) if is_known && !text.contains('\0') => text.chars().for_each(|letter| draft.push_quoted(letter)),
            _ => draft.any(false),
        }
        Ok(())
    }

    /// One escape after its backslash. `None` at the end of the text, `false` where its meaning is not certain.
    fn escape(&mut self, bytes: &mut Vec<u8>) -> Option<bool> {
        let letter = self.rest().chars().next()?;
        self.at += letter.len_utf8();
        let number = |parser: &mut Self, radix: u32, most: usize| {
            let digits: String = parser.rest().chars().take(most).take_while(|digit| digit.is_digit(radix)).collect();
            parser.at += digits.len();
            u32::from_str_radix(&digits, radix).ok()
        };
        let plain = match letter {
            'n' => '\n',
            't' => '\t',
            'r' => '\r',
            'a' => '\x07',
            'b' => '\x08',
            'e' | 'E' => '\x1b',
            'f' => '\x0c',
            'v' => '\x0b',
            '\\' | '\'' | '"' | '?' => letter,
            '0'..='7' => {
                self.at -= 1;
                bytes.push(number(self, 8, 3)? as u8);
                return Some(true);
            }
            'x' => match number(self, 16, 2) {
                Some(value) => {
                    bytes.push(value as u8);
                    return Some(true);
                }
                None => return Some(false),
            },
            'u' | 'U' => match number(self, 16, if letter == 'u' { 4 } else { 8 }).and_then(char::from_u32) {
                Some(letter) => letter,
                None => return Some(false),
            },
            _ => return Some(false),
        };
        bytes.extend_from_slice(plain.encode_utf8(&mut [0; 4]).as_bytes());
        Some(true)
    }
}

impl Draft {
    fn assigned(&self) -> Option<(String, usize)> {
        assigned(&self.atoms).filter(|(_, value)| self.first_quote.is_none_or(|quote| quote >= *value))
    }

    fn push_bare(&mut self, letter: char) {
        match letter {
            HOLE => self.any(true),
            letter => {
                self.has_signs |= matches!(letter, '*' | '?' | '[' | '{' | '~');
                self.atoms.push(Atom::Bare(letter));
            }
        }
    }

    fn push_quoted(&mut self, letter: char) {
        match letter {
            HOLE => self.any(false),
            letter => self.atoms.push(Atom::Quoted(letter)),
        }
    }

    fn any(&mut self, many: bool) {
        self.has_signs = true;
        self.many |= many;
        self.atoms.push(Atom::Any);
    }

    fn absorb(&mut self, mut inner: Written) {
        self.runs.append(&mut inner.runs);
        self.variables.append(&mut inner.variables);
    }

    fn finished(mut self, raw: &str) -> Written {
        if self.has_signs {
            self.expand_signs();
        }
        let is_known = !self.atoms.contains(&Atom::Any);
        let mut known = Vec::new();
        let mut text = String::with_capacity(self.atoms.len());
        for atom in &self.atoms {
            match atom {
                Atom::Bare(letter) | Atom::Quoted(letter) => text.push(*letter),
                Atom::Any => {
                    if !text.is_empty() {
                        known.push(Piece::Text(std::mem::take(&mut text)));
                    }
                    if known.last() != Some(&Piece::Any) {
                        known.push(Piece::Any);
                    }
                }
            }
        }
        let word = match is_known {
            true => Word::Known(text),
            false => {
                if !text.is_empty() {
                    known.push(Piece::Text(text));
                }
                Word::Partly { text: crate::holes::shown(raw), known, many: self.many }
            }
        };
        Written { word, runs: self.runs, variables: self.variables }
    }

    /// Bare `~`, `{a,b}`, `*`, `?` and `[…]` come out as who knows what.
    fn expand_signs(&mut self) {
        // Spans as how many begin before, and how many end after, each letter: they may lie within each other.
        let mut begins = vec![0_usize; self.atoms.len()];
        let mut ends = begins.clone();
        let mut unknown = |first: usize, last: usize| {
            begins[first] += 1;
            ends[last] += 1;
        };
        let mut braces: Vec<(usize, bool)> = Vec::new();
        let mut brackets: Option<(usize, usize)> = None;
        let mut in_tilde = false;
        for (at, atom) in self.atoms.iter().enumerate() {
            let Atom::Bare(letter) = *atom else { continue };
            let follows = |before: char| at > 0 && self.atoms[at - 1] == Atom::Bare(before);
            in_tilde = (in_tilde && !matches!(letter, '/' | ':')) || (letter == '~' && (at == 0 || follows(':')));
            if in_tilde {
                unknown(at, at);
                continue;
            }
            match letter {
                '*' | '?' => {
                    self.many = true;
                    unknown(at, at);
                }
                '[' if brackets.is_none() => brackets = Some((at, at)),
                ']' => brackets.iter_mut().filter(|(first, _)| at > first + 1).for_each(|(_, last)| *last = at),
                '{' => braces.push((at, false)),
                ',' => braces.iter_mut().next_back().into_iter().for_each(|(_, expands)| *expands = true),
                '.' if follows('.') => {
                    braces.iter_mut().next_back().into_iter().for_each(|(_, expands)| *expands = true)
                }
                '}' => {
                    if let Some((start, true)) = braces.pop() {
                        self.many = true;
                        unknown(start, at);
                        braces.iter_mut().next_back().into_iter().for_each(|(_, expands)| *expands = true);
                    }
                }
                _ => {}
            }
        }
        if let Some((first, last)) = brackets.filter(|(first, last)| last > first) {
            self.many = true;
            unknown(first, last);
        }
        let mut open = 0;
        for (at, atom) in self.atoms.iter_mut().enumerate() {
            open += begins[at];
            if open > 0 {
                *atom = Atom::Any;
            }
            open -= ends[at];
        }
    }
}

/// The name of `NAME=`, `NAME+=` or `NAME[index]=`, and where its value begins.
fn assigned(atoms: &[Atom]) -> Option<(String, usize)> {
    let bare = |at: usize| match atoms.get(at) {
        Some(Atom::Bare(letter)) => Some(*letter),
        _ => None,
    };
    let mut at = 0;
    let mut name = String::new();
    while let Some(letter) = bare(at).filter(|letter| letter.is_ascii_alphanumeric() || *letter == '_') {
        name.push(letter);
        at += 1;
    }
    if name.is_empty() || name.starts_with(|first: char| first.is_ascii_digit()) {
        return None;
    }
    if bare(at) == Some('[') {
        at += 1 + atoms[at..].iter().position(|atom| *atom == Atom::Bare(']'))?;
    }
    if bare(at) == Some('+') {
        at += 1;
    }
    (bare(at) == Some('=')).then_some((name, at + 1))
}
