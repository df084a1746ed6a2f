//! Texts, templates and regular expressions.

use super::Reader;
use super::kinds::*;
use super::tokens::{Token, is_word};
use crate::tree::field;

impl Reader<'_> {
    pub fn string(&mut self) -> Option<()> {
        let (mark, start) = (self.grown.mark(), self.tokens.start);
        let quote = self.tokens.byte(start);
        let (mut at, mut from) = (start + 1, start + 1);
        loop {
            let rest = self.tokens.bytes.get(at..)?;
            at += memchr::memchr3(quote, b'\\', b'\n', rest)?;
            match self.tokens.byte(at) {
                b'\\' => {
                    self.fragment(from, at);
                    at = self.escape(at)?;
                    from = at;
                }
                b'\n' => return None,
                _ => break,
            }
        }
        self.fragment(from, at);
        self.ends(STRING, start, at + 1, mark)
    }

    pub fn template(&mut self) -> Option<()> {
        self.deeper()?;
        let (mark, start) = (self.grown.mark(), self.tokens.start);
        let (mut at, mut from) = (start + 1, start + 1);
        loop {
            let rest = self.tokens.bytes.get(at..)?;
            at += memchr::memchr3(b'`', b'\\', b'$', rest)?;
            match self.tokens.byte(at) {
                b'\\' => {
                    self.fragment(from, at);
                    at = self.escape(at)?;
                    from = at;
                }
                b'$' if self.tokens.byte(at + 1) == b'{' => {
                    self.fragment(from, at);
                    let (inner, begin) = (self.grown.mark(), at);
                    self.tokens.end = at + 2;
                    self.advance()?;
                    self.expressions()?;
                    if self.tokens.token != Token::CloseBrace {
                        return None;
                    }
                    at = self.tokens.end;
                    from = at;
                    self.grown.close(SUBSTITUTION, begin, at, inner);
                }
                b'$' => at += 1,
                _ => break,
            }
        }
        self.fragment(from, at);
        self.depth -= 1;
        self.ends(TEMPLATE, start, at + 1, mark)
    }

    /// From the slash that we are at.
    pub fn regex(&mut self) -> Option<()> {
        let (mark, start) = (self.grown.mark(), self.tokens.start);
        let (mut at, mut in_class) = (start + 1, false);
        loop {
            match self.tokens.byte(at) {
                b'\n' | b'\r' | 0 => return None,
                // A letter of several bytes is passed byte by byte.
                b'\\' if matches!(self.tokens.byte(at + 1), b'\n' | b'\r' | 0) => return None,
                b'\\' => at += 1,
                b'[' => in_class = true,
                b']' => in_class = false,
                b'/' if !in_class => break,
                _ => {}
            }
            at += 1;
        }
        self.grown.leaf(REGEX_PATTERN, start + 1, at);
        self.grown.set_last_field(field::PATTERN);
        let flags = at + 1;
        at = flags;
        while self.tokens.byte(at).is_ascii_lowercase() {
            at += 1;
        }
        if is_word(self.tokens.byte(at)) || self.tokens.byte(at) == b'\\' {
            return None;
        }
        if at > flags {
            self.grown.leaf(REGEX_FLAGS, flags, at);
        }
        self.ends(REGEX, start, at, mark)
    }

    fn ends(&mut self, kind: u16, start: usize, end: usize, mark: usize) -> Option<()> {
        self.grown.close(kind, start, end, mark);
        self.tokens.end = end;
        self.advance()
    }

    fn fragment(&mut self, from: usize, to: usize) {
        if to > from {
            self.grown.leaf(FRAGMENT, from, to);
        }
    }

    /// Past a backslash and what it takes with it.
    fn escape(&mut self, start: usize) -> Option<usize> {
        let digits = |from: usize, most: usize, is_digit: fn(&u8) -> bool| {
            self.tokens.bytes.iter().skip(from).take(most).take_while(|byte| is_digit(byte)).count()
        };
        let at = start + 1;
        let end = match self.tokens.byte(at) {
            0 => return None,
            b'0'..=b'7' => at + digits(at, 3, |byte| matches!(byte, b'0'..=b'7')),
            b'x' if digits(at + 1, 2, u8::is_ascii_hexdigit) == 2 => at + 3,
            b'u' if self.tokens.byte(at + 1) == b'{' => {
                let length = digits(at + 2, 8, u8::is_ascii_hexdigit);
                if length == 0 || self.tokens.byte(at + 2 + length) != b'}' {
                    return None;
                }
                at + 3 + length
            }
            b'u' if digits(at + 1, 4, u8::is_ascii_hexdigit) == 4 => at + 5,
            b'x' | b'u' => return None,
            b'\r' if self.tokens.byte(at + 1) == b'\n' => at + 2,
            _ => at + self.tokens.source.get(at..)?.chars().next()?.len_utf8(),
        };
        self.grown.leaf(ESCAPE, start, end);
        Some(end)
    }
}
