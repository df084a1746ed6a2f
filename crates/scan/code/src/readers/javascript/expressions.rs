//! Expressions, by how tightly their operators bind.

use super::Reader;
use super::kinds::*;
use super::tokens::{PLUS, POWER, RELATION, TIMES, Token, Word};
use crate::tree::{Parts, field};

impl Reader<'_> {
    /// One expression, or several with commas between them.
    pub fn expressions(&mut self) -> Option<()> {
        let (mark, start) = (self.grown.mark(), self.tokens.start);
        self.expression()?;
        if self.tokens.token == Token::Comma {
            while self.tokens.token == Token::Comma {
                self.advance()?;
                self.expression()?;
            }
            self.close(SEQUENCE, start, mark);
        }
        Some(())
    }

    pub fn expression(&mut self) -> Option<()> {
        self.deeper()?;
        let (mark, start) = (self.grown.mark(), self.tokens.start);
        if self.is_name(b"yield") {
            self.yields()?;
        } else if !self.arrow()? {
            self.operators(1)?;
            match self.tokens.token {
                Token::Question => {
                    self.advance()?;
                    let in_for = std::mem::replace(&mut self.in_for, false);
                    self.expression()?;
                    self.in_for = in_for;
                    self.expect(Token::Colon)?;
                    self.expression()?;
                    self.close(TERNARY, start, mark);
                }
                Token::Equals => {
                    self.as_target(mark)?;
                    self.assigned(ASSIGNMENT, start, mark)?;
                }
                Token::Extends => {
                    if !matches!(self.grown.kind(mark)?, IDENTIFIER | MEMBER | SUBSCRIPT) {
                        return None;
                    }
                    self.assigned(AUGMENTED, start, mark)?;
                }
                // `a /= b`.
                Token::Slash if self.tokens.text() == b"/=" => {
                    if !matches!(self.grown.kind(mark)?, IDENTIFIER | MEMBER | SUBSCRIPT) {
                        return None;
                    }
                    self.assigned(AUGMENTED, start, mark)?;
                }
                _ => {}
            }
        }
        self.depth -= 1;
        Some(())
    }

    fn assigned(&mut self, kind: u16, start: usize, mark: usize) -> Option<()> {
        self.grown.set_field(mark, field::LEFT);
        self.advance()?;
        self.expression()?;
        self.grown.set_last_field(field::RIGHT);
        self.close(kind, start, mark);
        Some(())
    }

    fn yields(&mut self) -> Option<()> {
        let (mark, start) = (self.grown.mark(), self.tokens.start);
        self.advance()?;
        let is_end = matches!(
            self.tokens.token,
            Token::Close
                | Token::CloseBrace
                | Token::CloseSquare
                | Token::Semicolon
                | Token::Comma
                | Token::Colon
                | Token::End
        );
        if self.tokens.token == Token::Binary(TIMES) && self.tokens.text() == b"*" {
            self.advance()?;
            self.expression()?;
        } else if !is_end && !self.tokens.on_new_line {
            self.expression()?;
        }
        self.close(YIELD, start, mark);
        Some(())
    }

    /// `a => b`, `(a, b) => c`, `async a => b`: was it one?
    fn arrow(&mut self) -> Option<bool> {
        let (mark, start) = (self.grown.mark(), self.tokens.start);
        let mut at = self.tokens.start;
        if self.is_name(b"async") {
            let next = self.next_byte(self.tokens.end);
            let is_meant = self.tokens.byte(next) == b'(' && self.is_before_arrow(next)?
                || super::tokens::is_word(self.tokens.byte(next)) && self.is_name_before_arrow(next);
            if !is_meant {
                return Some(false);
            }
            self.advance()?;
            at = self.tokens.start;
        } else {
            let is_meant = match self.tokens.token {
                Token::Name => self.is_name_before_arrow(at),
                Token::Open => self.is_before_arrow(at)?,
                _ => false,
            };
            if !is_meant {
                return Some(false);
            }
        }
        if self.tokens.byte(at) == b'(' {
            self.parameters()?;
        } else {
            self.name()?;
            self.grown.set_last_field(field::PARAMETER);
        }
        self.expect(Token::Arrow)?;
        match self.tokens.token {
            Token::OpenBrace => self.block()?,
            _ => self.expression()?,
        }
        self.close(ARROW, start, mark);
        Some(true)
    }

    /// An expression of operators that bind at least as tightly as `least`.
    pub fn operators(&mut self, least: u8) -> Option<()> {
        self.deeper()?;
        let (mark, start) = (self.grown.mark(), self.tokens.start);
        self.unary()?;
        loop {
            let binds = match self.tokens.token {
                Token::Binary(binds) => binds,
                Token::Sign => PLUS,
                Token::Slash if self.tokens.text() == b"/" => TIMES,
                Token::Word(Word::Instanceof) => RELATION,
                Token::Word(Word::In) if !self.in_for => RELATION,
                _ => break,
            };
            if binds < least {
                break;
            }
            self.grown.set_field(mark, field::LEFT);
            self.advance()?;
            self.operators(if binds == POWER { POWER } else { binds + 1 })?;
            self.grown.set_last_field(field::RIGHT);
            self.close(BINARY, start, mark);
        }
        self.depth -= 1;
        Some(())
    }

    fn unary(&mut self) -> Option<()> {
        let (mark, start) = (self.grown.mark(), self.tokens.start);
        let kind = match self.tokens.token {
            Token::Not | Token::Sign | Token::Word(Word::Typeof | Word::Void | Word::Delete) => UNARY,
            Token::Step => UPDATE,
            Token::Name if self.is_name(b"await") => AWAIT,
            _ => {
                self.postfix(true)?;
                if self.tokens.token == Token::Step && !self.tokens.on_new_line {
                    self.advance()?;
                    self.close(UPDATE, start, mark);
                }
                return Some(());
            }
        };
        self.deeper()?;
        self.advance()?;
        self.unary()?;
        self.close(kind, start, mark);
        self.depth -= 1;
        Some(())
    }

    /// Something with its members, keys and (`calls`) calls.
    pub fn postfix(&mut self, calls: bool) -> Option<()> {
        let (mark, start) = (self.grown.mark(), self.tokens.start);
        self.primary()?;
        loop {
            match self.tokens.token {
                Token::Dot => {
                    self.grown.set_field(mark, field::OBJECT);
                    self.advance()?;
                    self.member(start, mark)?;
                }
                Token::Chain if calls => {
                    let begin = self.tokens.start;
                    self.grown.leaf(OPTIONAL_CHAIN, begin, self.tokens.end);
                    self.advance()?;
                    match self.tokens.token {
                        Token::Open => {
                            self.grown.set_field(mark, field::FUNCTION);
                            self.arguments()?;
                            self.close(CALL, start, mark);
                        }
                        Token::OpenSquare => {
                            self.grown.set_field(mark, field::OBJECT);
                            self.key(start, mark)?;
                        }
                        _ => {
                            self.grown.set_field(mark, field::OBJECT);
                            self.member(start, mark)?;
                        }
                    }
                }
                Token::OpenSquare => {
                    self.grown.set_field(mark, field::OBJECT);
                    self.key(start, mark)?;
                }
                Token::Open if calls => {
                    self.grown.set_field(mark, field::FUNCTION);
                    self.arguments()?;
                    self.close(CALL, start, mark);
                }
                Token::Backquote if calls => {
                    self.grown.set_field(mark, field::FUNCTION);
                    self.template()?;
                    self.grown.set_last_field(field::ARGUMENTS);
                    self.close(CALL, start, mark);
                }
                _ => return Some(()),
            }
        }
    }

    fn member(&mut self, start: usize, mark: usize) -> Option<()> {
        match self.tokens.token {
            Token::Private => self.leaf(PRIVATE)?,
            Token::Name | Token::Word(_) => self.leaf(PROPERTY)?,
            _ => return None,
        }
        self.grown.set_last_field(field::PROPERTY);
        self.close(MEMBER, start, mark);
        Some(())
    }

    fn key(&mut self, start: usize, mark: usize) -> Option<()> {
        self.advance()?;
        self.outside_of_for(Self::expressions)?;
        self.expect(Token::CloseSquare)?;
        self.close(SUBSCRIPT, start, mark);
        Some(())
    }

    fn arguments(&mut self) -> Option<()> {
        let (mark, start) = (self.grown.mark(), self.tokens.start);
        self.advance()?;
        self.outside_of_for(|reader| reader.items(Token::Close))?;
        self.expect(Token::Close)?;
        self.close(ARGUMENTS, start, mark);
        self.grown.set_last_field(field::ARGUMENTS);
        Some(())
    }

    /// Expressions up to what closes, which stays; some may be left out.
    fn items(&mut self, end: Token) -> Option<()> {
        while self.tokens.token != end {
            match self.tokens.token {
                Token::Comma => {}
                Token::Dots => self.spread()?,
                _ => self.expression()?,
            }
            match self.tokens.token {
                Token::Comma => self.advance()?,
                _ => break,
            }
        }
        Some(())
    }

    fn spread(&mut self) -> Option<()> {
        let (mark, start) = (self.grown.mark(), self.tokens.start);
        self.advance()?;
        self.expression()?;
        self.close(SPREAD, start, mark);
        Some(())
    }

    fn primary(&mut self) -> Option<()> {
        let (mark, start) = (self.grown.mark(), self.tokens.start);
        match self.tokens.token {
            Token::Name if self.is_name(b"undefined") => self.leaf(UNDEFINED),
            Token::Name if self.is_name(b"async") && self.follows(b"function") => self.function(false),
            Token::Name if self.is_name(b"yield") || self.is_name(b"await") => None,
            Token::Name => self.leaf(IDENTIFIER),
            Token::Number => self.leaf(NUMBER),
            Token::Quote => self.string(),
            Token::Backquote => self.template(),
            Token::Slash => self.regex(),
            Token::Word(Word::This) => self.leaf(THIS),
            Token::Word(Word::Super) => self.leaf(SUPER),
            Token::Word(Word::Null) => self.leaf(NULL),
            Token::Word(Word::True) => self.leaf(TRUE),
            Token::Word(Word::False) => self.leaf(FALSE),
            Token::Word(Word::Function) => self.function(false),
            Token::Word(Word::Class) => self.class(CLASS),
            Token::Word(Word::New) => self.new_object(),
            Token::Word(Word::Import) => {
                self.leaf(IMPORT)?;
                if self.tokens.token == Token::Dot {
                    self.advance()?;
                    if !self.is_name(b"meta") {
                        return None;
                    }
                    self.advance()?;
                    self.grown.drop_since(mark);
                    self.close(META, start, mark);
                }
                Some(())
            }
            Token::Open => {
                self.deeper()?;
                self.advance()?;
                self.outside_of_for(Self::expressions)?;
                self.expect(Token::Close)?;
                self.close(PARENTHESIZED, start, mark);
                self.depth -= 1;
                Some(())
            }
            Token::OpenSquare => {
                self.deeper()?;
                self.advance()?;
                self.outside_of_for(|reader| reader.items(Token::CloseSquare))?;
                self.expect(Token::CloseSquare)?;
                self.close(ARRAY, start, mark);
                self.depth -= 1;
                Some(())
            }
            Token::OpenBrace => self.outside_of_for(Self::object),
            _ => None,
        }
    }

    fn new_object(&mut self) -> Option<()> {
        self.deeper()?;
        let (mark, start) = (self.grown.mark(), self.tokens.start);
        self.advance()?;
        if self.tokens.token == Token::Dot {
            self.advance()?;
            if !self.is_name(b"target") {
                return None;
            }
            self.advance()?;
            self.close(META, start, mark);
        } else {
            self.postfix(false)?;
            self.grown.set_last_field(field::CONSTRUCTOR);
            if self.tokens.token == Token::Open {
                self.arguments()?;
            }
            self.close(NEW, start, mark);
        }
        self.depth -= 1;
        Some(())
    }

    fn object(&mut self) -> Option<()> {
        self.deeper()?;
        let (mark, start) = (self.grown.mark(), self.tokens.start);
        self.advance()?;
        while self.tokens.token != Token::CloseBrace {
            let (one, begin) = (self.grown.mark(), self.tokens.start);
            if self.tokens.token == Token::Dots {
                self.spread()?;
            } else {
                let is_word = matches!(self.tokens.token, Token::Name);
                if self.is_prefix() {
                    self.method(begin, one)?;
                } else {
                    self.property_name()?;
                    match self.tokens.token {
                        Token::Colon => {
                            self.grown.set_field(one, field::KEY);
                            self.advance()?;
                            self.expression()?;
                            self.grown.set_last_field(field::VALUE);
                            self.close(PAIR, begin, one);
                        }
                        Token::Open => self.method_rest(begin, one)?,
                        Token::Comma | Token::CloseBrace if is_word => {
                            self.grown.turn(one, |_| Some((SHORTHAND, Parts::None)))?;
                        }
                        _ => return None,
                    }
                }
            }
            match self.tokens.token {
                Token::Comma => self.advance()?,
                _ => break,
            }
        }
        self.expect(Token::CloseBrace)?;
        self.close(OBJECT, start, mark);
        self.depth -= 1;
        Some(())
    }

    /// What was read as an expression is set.
    pub fn as_target(&mut self, mark: usize) -> Option<()> {
        self.grown.turn(mark, |kind| match kind {
            IDENTIFIER | MEMBER | SUBSCRIPT => Some((kind, Parts::None)),
            ARRAY => Some((ARRAY_PATTERN, Parts::All)),
            OBJECT => Some((OBJECT_PATTERN, Parts::All)),
            PAIR => Some((PAIR_PATTERN, Parts::Last)),
            SHORTHAND => Some((SHORTHAND_PATTERN, Parts::None)),
            SPREAD => Some((REST, Parts::All)),
            ASSIGNMENT => Some((ASSIGNMENT_PATTERN, Parts::First)),
            _ => None,
        })
    }
}
