//! Texts: their parts as they stand, and what is put into them.

use super::Reader;
use super::kinds::*;
use super::tokens::Token;

impl Reader<'_> {
    /// One text, or several that stand next to each other.
    pub fn strings(&mut self) -> Option<()> {
        let (mark, start) = (self.grown.mark(), self.tokens.start);
        let mut count = 0;
        while self.tokens.token == Token::Text {
            self.string()?;
            count += 1;
        }
        if count > 1 {
            self.close(CONCATENATED_STRING, start, mark);
        }
        Some(())
    }

    fn string(&mut self) -> Option<()> {
        let (mark, start) = (self.grown.mark(), self.tokens.start);
        let mut at = start;
        let (mut is_raw, mut has_holes, mut is_bytes) = (false, false, false);
        while !matches!(self.tokens.byte(at), b'"' | b'\'') {
            match self.tokens.byte(at) | 32 {
                b'r' => is_raw = true,
                b'f' => has_holes = true,
                b'b' => is_bytes = true,
                _ => {}
            }
            at += 1;
        }
        let quote = self.tokens.byte(at);
        let is_long = self.tokens.byte(at + 1) == quote && self.tokens.byte(at + 2) == quote;
        at += if is_long { 3 } else { 1 };
        let mut from = at;
        loop {
            // Most of a text is none of these.
            let rest = self.tokens.bytes.get(at..)?;
            at += match has_holes {
                true => rest.iter().position(|byte| {
                    *byte == quote || matches!(byte, b'\\' | b'{' | b'}') || *byte == b'\n' && !is_long
                })?,
                false if is_long => memchr::memchr2(quote, b'\\', rest)?,
                false => memchr::memchr3(quote, b'\\', b'\n', rest)?,
            };
            match self.tokens.byte(at) {
                b'\\' => at = self.escaped(at + 1, has_holes, !is_raw && !is_bytes)?,
                b'\n' if !is_long => return None,
                b'{' if has_holes && self.tokens.byte(at + 1) == b'{' => at += 2,
                b'}' if has_holes && self.tokens.byte(at + 1) == b'}' => at += 2,
                b'}' if has_holes => return None,
                b'{' if has_holes => {
                    self.content(from, at);
                    at = self.hole(at)?;
                    from = at;
                }
                _ if !is_long => break,
                _ if self.tokens.byte(at + 1) == quote && self.tokens.byte(at + 2) == quote => break,
                _ => at += 1,
            }
        }
        self.content(from, at);
        self.tokens.end = at + if is_long { 3 } else { 1 };
        let end = self.tokens.end;
        self.advance()?;
        self.grown.close(STRING, start, end, mark);
        Some(())
    }

    fn content(&mut self, from: usize, to: usize) {
        if to > from {
            self.grown.leaf(STRING_CONTENT, from, to);
        }
    }

    /// Past what a backslash takes with it.
    fn escaped(&self, at: usize, has_holes: bool, has_names: bool) -> Option<usize> {
        match self.tokens.byte(at) {
            b'N' if has_names && self.tokens.byte(at + 1) == b'{' => {
                let length = memchr::memchr(b'}', self.tokens.bytes.get(at..)?)?;
                Some(at + length + 1)
            }
            b'{' | b'}' if has_holes => Some(at),
            b'\r' if self.tokens.byte(at + 1) == b'\n' => Some(at + 2),
            0x80.. => Some(at),
            _ => Some(at + 1),
        }
    }

    /// `{expression}`, with `=`, `!r` and how it is to be shown; where it ends.
    fn hole(&mut self, start: usize) -> Option<usize> {
        let mark = self.grown.mark();
        self.tokens.brackets += 1;
        let within = self.tokens.brackets;
        self.tokens.end = start + 1;
        self.advance()?;
        self.expressions()?;
        if self.tokens.brackets.checked_add(1)? < within {
            return None;
        }
        if self.tokens.token == Token::Equals {
            self.advance()?;
        }
        if self.tokens.token == Token::Bang {
            if !matches!(self.tokens.byte(self.tokens.end), b'r' | b's' | b'a') {
                return None;
            }
            self.tokens.end += 1;
            self.advance()?;
        }
        if self.tokens.token == Token::Colon {
            self.tokens.end = self.shown(self.tokens.end)?;
            self.advance()?;
        }
        if self.tokens.token != Token::CloseBrace {
            return None;
        }
        let end = self.tokens.end;
        self.grown.close(INTERPOLATION, start, end, mark);
        Some(end)
    }

    /// Past how a value is to be shown: nobody looks at that.
    fn shown(&self, from: usize) -> Option<usize> {
        let (mut at, mut open) = (from, 0_usize);
        loop {
            match self.tokens.byte(at) {
                b'{' => open += 1,
                b'}' if open == 0 => return Some(at),
                b'}' => open -= 1,
                b'"' | b'\'' | b'\n' | b'\\' | 0 => return None,
                _ => {}
            }
            at += 1;
        }
    }
}
