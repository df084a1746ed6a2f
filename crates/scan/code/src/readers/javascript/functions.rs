//! Functions, classes, and what is set when they begin.

use super::Reader;
use super::kinds::*;
use super::tokens::{TIMES, Token, Word};
use crate::tree::field;

impl Reader<'_> {
    /// `async function* name(…) {…}`.
    pub fn function(&mut self, is_declared: bool) -> Option<()> {
        self.deeper()?;
        let (mark, start) = (self.grown.mark(), self.tokens.start);
        if self.tokens.token == Token::Name {
            self.advance()?;
        }
        self.expect(Token::Word(Word::Function))?;
        let is_generator = self.is_star();
        if is_generator {
            self.advance()?;
        }
        if self.tokens.token == Token::Name {
            self.name()?;
            self.grown.set_last_field(field::NAME);
        } else if is_declared {
            return None;
        }
        self.parameters()?;
        self.block()?;
        let kind = match (is_declared, is_generator) {
            (true, true) => GENERATOR_DECLARATION,
            (true, false) => FUNCTION_DECLARATION,
            (false, true) => GENERATOR,
            (false, false) => FUNCTION_EXPRESSION,
        };
        self.close(kind, start, mark);
        self.depth -= 1;
        Some(())
    }

    pub fn parameters(&mut self) -> Option<()> {
        let (mark, start) = (self.grown.mark(), self.tokens.start);
        self.expect(Token::Open)?;
        while self.tokens.token != Token::Close {
            self.pattern_with_default()?;
            match self.tokens.token {
                Token::Comma => self.advance()?,
                _ => break,
            }
        }
        self.expect(Token::Close)?;
        self.close(PARAMETERS, start, mark);
        self.grown.set_last_field(field::PARAMETERS);
        Some(())
    }

    fn pattern_with_default(&mut self) -> Option<()> {
        let (mark, start) = (self.grown.mark(), self.tokens.start);
        if self.tokens.token == Token::Dots {
            self.advance()?;
            self.pattern()?;
            self.close(REST, start, mark);
            return Some(());
        }
        self.pattern()?;
        if self.tokens.token == Token::Equals {
            self.default_value(ASSIGNMENT_PATTERN, start, mark)?;
        }
        Some(())
    }

    fn default_value(&mut self, kind: u16, start: usize, mark: usize) -> Option<()> {
        self.grown.set_field(mark, field::LEFT);
        self.advance()?;
        self.outside_of_for(Self::expression)?;
        self.grown.set_last_field(field::RIGHT);
        self.close(kind, start, mark);
        Some(())
    }

    /// A name, or parts of a value with names.
    pub fn pattern(&mut self) -> Option<()> {
        self.deeper()?;
        let (mark, start) = (self.grown.mark(), self.tokens.start);
        match self.tokens.token {
            Token::Name => self.name()?,
            Token::OpenSquare => {
                self.advance()?;
                while self.tokens.token != Token::CloseSquare {
                    if self.tokens.token != Token::Comma {
                        self.pattern_with_default()?;
                    }
                    match self.tokens.token {
                        Token::Comma => self.advance()?,
                        _ => break,
                    }
                }
                self.expect(Token::CloseSquare)?;
                self.close(ARRAY_PATTERN, start, mark);
            }
            Token::OpenBrace => {
                self.advance()?;
                while self.tokens.token != Token::CloseBrace {
                    self.part()?;
                    match self.tokens.token {
                        Token::Comma => self.advance()?,
                        _ => break,
                    }
                }
                self.expect(Token::CloseBrace)?;
                self.close(OBJECT_PATTERN, start, mark);
            }
            _ => return None,
        }
        self.depth -= 1;
        Some(())
    }

    /// `a`, `a = 1`, `a: b`, `...a` in braces.
    fn part(&mut self) -> Option<()> {
        let (mark, start) = (self.grown.mark(), self.tokens.start);
        if self.tokens.token == Token::Dots {
            return self.pattern_with_default();
        }
        let (is_name, end) = (self.tokens.token == Token::Name, self.tokens.end);
        self.property_name()?;
        if self.tokens.token == Token::Colon {
            self.grown.set_field(mark, field::KEY);
            self.advance()?;
            self.pattern_with_default()?;
            self.grown.set_last_field(field::VALUE);
            self.close(PAIR_PATTERN, start, mark);
            return Some(());
        }
        if !is_name {
            return None;
        }
        self.grown.drop_since(mark);
        self.grown.leaf(SHORTHAND_PATTERN, start, end);
        if self.tokens.token == Token::Equals {
            self.default_value(OBJECT_ASSIGNMENT_PATTERN, start, mark)?;
        }
        Some(())
    }

    /// What a member is called where it is made.
    pub fn property_name(&mut self) -> Option<()> {
        let (mark, start) = (self.grown.mark(), self.tokens.start);
        match self.tokens.token {
            Token::Name | Token::Word(_) => self.leaf(PROPERTY),
            Token::Private => self.leaf(PRIVATE),
            Token::Number => self.leaf(NUMBER),
            Token::Quote => self.string(),
            Token::OpenSquare => {
                self.advance()?;
                self.outside_of_for(Self::expression)?;
                self.expect(Token::CloseSquare)?;
                self.close(COMPUTED, start, mark);
                Some(())
            }
            _ => None,
        }
    }

    fn is_star(&self) -> bool {
        self.tokens.token == Token::Binary(TIMES) && self.tokens.text() == b"*"
    }

    /// Does `get`, `async` or `*` stand here, and not a member of that name?
    pub fn is_prefix(&self) -> bool {
        if self.is_star() {
            return true;
        }
        let is_meant = [&b"get"[..], b"set", b"async", b"static"].iter().any(|word| self.is_name(word));
        is_meant
            && !matches!(self.tokens.byte(self.next_byte(self.tokens.end)), b'(' | b',' | b':' | b'}' | b'=' | b';')
    }

    /// A method from its first word on.
    pub fn method(&mut self, start: usize, mark: usize) -> Option<()> {
        for _ in 0..4 {
            if self.is_prefix() {
                self.advance()?;
            }
        }
        self.property_name()?;
        self.method_rest(start, mark)
    }

    /// A method whose name was read.
    pub fn method_rest(&mut self, start: usize, mark: usize) -> Option<()> {
        self.grown.set_field(mark, field::NAME);
        self.parameters()?;
        self.block()?;
        self.close(METHOD, start, mark);
        Some(())
    }

    pub fn class(&mut self, kind: u16) -> Option<()> {
        self.deeper()?;
        let (mark, start) = (self.grown.mark(), self.tokens.start);
        self.advance()?;
        if self.tokens.token == Token::Name {
            self.name()?;
            self.grown.set_last_field(field::NAME);
        }
        if self.tokens.token == Token::Word(Word::Extends) {
            let (inner, begin) = (self.grown.mark(), self.tokens.start);
            self.advance()?;
            self.postfix(true)?;
            self.close(CLASS_HERITAGE, begin, inner);
        }
        let (inner, begin) = (self.grown.mark(), self.tokens.start);
        self.expect(Token::OpenBrace)?;
        while self.tokens.token != Token::CloseBrace {
            self.class_member()?;
        }
        self.advance()?;
        self.close(CLASS_BODY, begin, inner);
        self.close(kind, start, mark);
        self.depth -= 1;
        Some(())
    }

    fn class_member(&mut self) -> Option<()> {
        let (mark, start) = (self.grown.mark(), self.tokens.start);
        if self.tokens.token == Token::Semicolon {
            return self.advance();
        }
        if self.is_name(b"static") && self.is_prefix() {
            self.advance()?;
            if self.tokens.token == Token::OpenBrace {
                self.block()?;
                self.close(STATIC_BLOCK, start, mark);
                return Some(());
            }
        }
        // A field called `get` that ends with its line.
        if self.is_prefix() && !self.is_star() && self.next_is_on_new_line() {
            return None;
        }
        if self.is_prefix() {
            return self.method(start, mark);
        }
        self.property_name()?;
        if self.tokens.token == Token::Open {
            return self.method_rest(start, mark);
        }
        self.grown.set_field(mark, field::PROPERTY);
        if self.tokens.token == Token::Equals {
            self.advance()?;
            self.outside_of_for(Self::expression)?;
            self.grown.set_last_field(field::VALUE);
        }
        self.close(FIELD, start, mark);
        match self.tokens.token {
            Token::Semicolon => self.advance(),
            Token::CloseBrace => Some(()),
            _ => self.tokens.on_new_line.then_some(()),
        }
    }
}
