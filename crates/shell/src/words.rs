//! Words: quotes, expansions, and what runs within them.

use crate::Word;
use crate::draft::{Atom, Draft};
use crate::parse::{Parser, Stop};
use crate::tree::{Flows, List, Run, Written};

/// What ends a text in which `$` and backquotes have their meaning.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    DoubleQuote,
    /// The text does.
    Text,
}

/// Where a word stands: in some places, the index of an array may hold anything.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Where `NAME[…]=` is an assignment.
    Start,
    /// Within `NAME=(…)`, where `[…]=` is one.
    Element,
    Other,
}

impl Parser<'_> {
    /// The word that stands here.
    pub(crate) fn written(&mut self) -> Result<Written, Stop> {
        self.written_in(Place::Other)
    }

    fn written_in(&mut self, place: Place) -> Result<Written, Stop> {
        if let Some(plain) = self.plain_word() {
            return Ok(plain);
        }
        let before = self.at;
        let draft = self.draft(place)?;
        Ok(draft.finished(&self.text[before..self.at]))
    }

    /// A word, or the name and value of `NAME=value`.
    pub(crate) fn assignment_or_word(&mut self) -> Result<(Option<String>, Written), Stop> {
        if let Some(plain) = self.plain_word() {
            return Ok((None, plain));
        }
        let before = self.at;
        let mut draft = self.draft(Place::Start)?;
        let raw = &self.text[before..self.at];
        let Some((name, value)) = draft.assigned() else { return Ok((None, draft.finished(raw))) };
        draft.atoms.drain(..value);
        let raw = raw.split_once('=').map_or(raw, |(_, value)| value);
        Ok((Some(name), draft.finished(raw)))
    }

    /// All of the text, as a here-document is expanded.
    pub(crate) fn expanded_text(&mut self) -> Result<Written, Stop> {
        let mut draft = Draft::default();
        self.quoted(&mut draft, End::Text)?;
        Ok(draft.finished(self.text))
    }

    /// A word of nothing but letters that mean themselves everywhere, with an end that is none but an end: most are, so
    /// they are not taken apart.
    fn plain_word(&mut self) -> Option<Written> {
        let rest = self.rest();
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./,:+@%^".contains(&byte);
        let length = rest.bytes().position(|byte| !is_plain(byte)).unwrap_or(rest.len());
        let ends = matches!(rest.as_bytes().get(length), None | Some(b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b')'));
        if length == 0 || !ends {
            return None;
        }
        let word = Word::Known(rest[..length].to_owned());
        self.at += length;
        Some(Written { word, runs: Vec::new(), variables: Vec::new() })
    }

    fn draft(&mut self, place: Place) -> Result<Draft, Stop> {
        let mut draft = Draft::default();
        draft.atoms.reserve(32);
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
                '[' if match place {
                    Place::Start => draft.is_name(),
                    Place::Element => draft.atoms.is_empty() && draft.first_quote.is_none(),
                    Place::Other => false,
                } =>
                {
                    self.deeper(|parser| parser.index(&mut draft))?;
                }
                ' ' | '\t' | '\n' | ';' | '&' | '|' | '<' | '>' | '(' | ')' => break,
                '\\' if self.sees("\\\n") => self.join(),
                '\\' => {
                    self.at += 1;
                    match self.rest().chars().next() {
                        None => draft.atoms.push(Atom::Quoted('\\')),
                        Some(next) => {
                            self.at += next.len_utf8();
                            draft.push_quoted(next);
                        }
                    }
                }
                '\'' => {
                    let inside = self.single_quoted()?;
                    inside.chars().for_each(|letter| draft.push_quoted(letter));
                }
                '"' => {
                    self.at += 1;
                    self.deeper(|parser| parser.quoted(&mut draft, End::DoubleQuote))?;
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

    /// What stands between the single quotes here.
    pub(crate) fn single_quoted(&mut self) -> Result<&str, Stop> {
        let from = self.at + 1;
        let length = self.text[from..].find('\'').ok_or("a single quote is not closed")?;
        self.at = from + length + 1;
        self.literal.push((from, self.at - 1));
        Ok(&self.text[from..from + length])
    }

    /// Text in which only `$`, backquotes and backslashes have a meaning.
    pub(crate) fn quoted(&mut self, draft: &mut Draft, end: End) -> Result<(), Stop> {
        loop {
            let Some(letter) = self.rest().chars().next() else {
                return match end {
                    End::Text => Ok(()),
                    End::DoubleQuote => Err("a double quote is not closed".to_owned()),
                };
            };
            match letter {
                '"' if end == End::DoubleQuote => {
                    self.at += 1;
                    return Ok(());
                }
                '$' => self.dollar(draft, true)?,
                '`' => self.backquoted(draft, true)?,
                '\\' if self.sees("\\\n") => self.join(),
                '\\' => {
                    self.at += 1;
                    match self.byte() {
                        Some(byte @ (b'$' | b'`' | b'\\')) => {
                            self.at += 1;
                            draft.push_quoted(char::from(byte));
                        }
                        Some(b'"') if end == End::DoubleQuote => {
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
        }
    }

    pub(crate) fn dollar(&mut self, draft: &mut Draft, in_quotes: bool) -> Result<(), Stop> {
        self.at += 1;
        match self.byte() {
            Some(b'(') => {
                let before = self.at;
                if self.sees("((")
                    && let Some(inner) = self.arithmetic()?
                {
                    // Bash counts the parentheses again, without a look at what they are for: that of `case a in a)` is
                    // one too many, and then it runs what stands there.
                    if !crate::arithmetic::is_balanced(&self.text[before + 2..self.at - 2]) {
                        self.odd.push("whether `$((` begins arithmetic or commands is not certain".to_owned());
                    }
                    draft.absorb(inner);
                } else {
                    let is_ambiguous = self.sees("((");
                    self.at += 1;
                    let list = self.substitution()?;
                    // To find its end, bash takes it for arithmetic, where nothing is a comment.
                    if is_ambiguous && self.text[before..self.at].contains('#') {
                        self.odd.push("whether `$((` begins arithmetic or commands is not certain".to_owned());
                    }
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
                if inner.contains(['[', '(', '`', '\'', '"', '{', '\\']) {
                    return Err(self.unexpected());
                }
                self.only_bash = true;
                self.counts_in(inner);
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
                self.deeper(|parser| parser.quoted(draft, End::DoubleQuote))?;
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
        if matches!(self.byte(), Some(b' ' | b'\t' | b'\n' | b'|' | b'(')) {
            self.odd.push("`${ …; }` runs commands, in newer shells".to_owned());
        }
        let name = |byte: &u8| byte.is_ascii_alphanumeric() || b"_!#".contains(byte);
        let length = self.rest().bytes().take_while(name).count();
        draft.variables.push(self.rest()[..length].trim_start_matches(['!', '#']).to_owned());
        let mut inner = Draft::default();
        // `${#}`, `${$}` and the like are no quotes or expansions.
        if self.byte_after(1) == Some(b'}') {
            self.at += self.rest().chars().next().map_or(0, char::len_utf8);
        }
        // Text in quotes that would run if it were looked at again.
        let mut sleeps = false;
        loop {
            let letter = self.rest().chars().next().ok_or("`${` is not closed")?;
            match letter {
                '}' => break,
                '\\' if self.sees("\\\n") => self.join(),
                '\\' => {
                    self.at += 1;
                    let next = self.rest().chars().next();
                    sleeps |= matches!(next, Some('$' | '`'));
                    self.at += next.map_or(0, char::len_utf8);
                }
                // Whether it quotes here depends on more than we look at.
                '\'' if in_quotes => return Err(self.unexpected()),
                '\'' => sleeps |= self.single_quoted()?.contains(['$', '`']),
                '"' => {
                    self.at += 1;
                    self.deeper(|parser| parser.quoted(&mut inner, End::DoubleQuote))?;
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
        if assigns(inside) && (sleeps || inner.has_sleeping()) {
            self.odd.push(format!("what `${{{inside}}}` assigns may run later"));
        }
        if is_counted(inside) {
            self.counts.get_or_insert_with(|| format!("${{{inside}}}"));
            if sleeps || inner.has_sleeping() {
                self.odd.push(format!("`${{{inside}}}` may run what it holds"));
            }
        }
        draft.runs.append(&mut inner.runs);
        draft.variables.append(&mut inner.variables);
        draft.any(!in_quotes || inside.contains('@'));
        Ok(())
    }

    pub(crate) fn backquoted(&mut self, draft: &mut Draft, in_quotes: bool) -> Result<(), Stop> {
        self.at += 1;
        let mut inside = String::new();
        loop {
            let letter = self.rest().chars().next().ok_or("a backquote is not closed")?;
            // Also within single quotes, which bash does not look for yet.
            if self.sees("\\\n") {
                self.join();
                continue;
            }
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
        let list = self.substitution()?;
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
            let inner = self.deeper(|parser| parser.written_in(Place::Element))?;
            draft.absorb(inner);
        }
    }
}

/// Does `${…}` with this inside give the variable a value?
fn assigns(inside: &str) -> bool {
    let rest = inside.trim_start_matches(|letter: char| letter.is_ascii_alphanumeric() || letter == '_');
    rest.starts_with('=') || rest.starts_with(":=")
}

/// Does `${…}` with this inside look at a value as at a number or a name?
fn is_counted(inside: &str) -> bool {
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let rest = inside.trim_start_matches(['!', '#']).trim_start_matches(is_name);
    let is_indirect = inside.starts_with('!') && !matches!(rest, "@" | "*" | "[@]" | "[*]");
    let has_index = rest.strip_prefix('[').is_some_and(|index| !index.starts_with("@]") && !index.starts_with("*]"));
    let after_index = rest.split_once(']').filter(|_| rest.starts_with('[')).map_or(rest, |(_, after)| after);
    let has_offset = after_index.strip_prefix(':').is_some_and(|offset| !offset.starts_with(['-', '=', '+', '?']));
    is_indirect || has_index || has_offset
}
