//! Redirections, and the here-documents that some of them begin.

use crate::Word;
use crate::parse::{Parser, Stop};
use crate::tree::{Kind, Redirect, Target, Written};

pub(crate) struct Pending {
    number: usize,
    pub end: String,
    is_quoted: bool,
    strips_tabs: bool,
}

impl Parser<'_> {
    pub(crate) fn redirect(&mut self) -> Result<Option<Redirect>, Stop> {
        let before = self.at;
        let mut descriptor = None;
        let digits = self.rest().bytes().take_while(u8::is_ascii_digit).count();
        if digits > 0 {
            descriptor = Some(self.rest()[..digits].trim_start_matches('0').to_owned());
            self.at += digits;
        } else if self.byte() == Some(b'{') {
            let name = |byte: &u8| byte.is_ascii_alphanumeric() || b"_[]".contains(byte);
            let length = self.rest()[1..].bytes().take_while(name).count();
            let is_sign = matches!(self.byte_after(length + 2), Some(b'<' | b'>'));
            if length > 0 && self.byte_after(1 + length) == Some(b'}') && is_sign {
                if self.rest()[..length].contains('[') {
                    self.counts.get_or_insert_with(|| "{NAME[index]}>".to_owned());
                }
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

    pub(crate) fn begin_document(&mut self, strips_tabs: bool, is_stdin: bool) -> Result<Redirect, Stop> {
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

    pub(crate) fn document(&mut self, pending: &Pending) -> Result<(), Stop> {
        let from = self.at;
        let mut body = String::new();
        while self.at < self.text.len() {
            let mut line = String::new();
            loop {
                let rest = self.rest();
                let length = rest.find('\n').map_or(rest.len(), |end| end + 1);
                let (part, _) = rest.split_at(length);
                self.at += length;
                line.push_str(match pending.strips_tabs && line.is_empty() {
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
            // Bash looks for the end of a substitution there, and goes on with what stands between.
            if self.substitutions > 0 && line.strip_prefix(pending.end.as_str()).is_some_and(|rest| rest.contains(')'))
            {
                return Err(format!("the here-document `{}` may end early", pending.end));
            }
            body.push_str(&line);
        }
        if pending.is_quoted {
            self.literal.push((from, self.at.saturating_sub(1)));
        }
        let written = match pending.is_quoted {
            true => Written { word: crate::holes::filled(body, false), runs: Vec::new(), variables: Vec::new() },
            false => self.within(&body, |inner| inner.expanded_text())?,
        };
        self.documents[pending.number] = written;
        Ok(())
    }
}

fn is_descriptor(word: &Word) -> bool {
    word.known().is_some_and(|text| !text.is_empty() && text.trim_end_matches('-').bytes().all(|b| b.is_ascii_digit()))
}
