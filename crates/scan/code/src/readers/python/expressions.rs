//! Expressions, by how tightly their operators bind.

use super::Reader;
use super::kinds::*;
use super::tokens::{Token, Word};
use crate::tree::{Parts, field};

const OR: u8 = 1;
const AND: u8 = 2;
const NOT_: u8 = 3;
const COMPARE: u8 = 4;
const BITS_OR: u8 = 5;
const BITS_XOR: u8 = 6;
const BITS_AND: u8 = 7;
const SHIFT: u8 = 8;
const PLUS: u8 = 9;
const TIMES: u8 = 10;
const SIGN: u8 = 11;
const POWER: u8 = 12;

impl Reader<'_> {
    /// One expression, whatever it is: also `a if b else c`, `lambda: a` and `a := b`.
    pub fn expression(&mut self) -> Option<()> {
        self.deeper()?;
        let (mark, start) = (self.grown.mark(), self.tokens.start);
        if self.tokens.token == Token::Word(Word::Lambda) {
            self.lambda()?;
        } else {
            self.operators(OR)?;
            match self.tokens.token {
                Token::Word(Word::If) => {
                    self.advance()?;
                    self.operators(OR)?;
                    self.expect(Token::Word(Word::Else))?;
                    self.expression()?;
                    self.close(CONDITIONAL, start, mark);
                }
                Token::Walrus => {
                    if self.grown.kind(mark) != Some(IDENTIFIER) {
                        return None;
                    }
                    self.grown.set_field(mark, field::NAME);
                    self.advance()?;
                    self.expression()?;
                    self.grown.set_last_field(field::VALUE);
                    self.close(NAMED_EXPRESSION, start, mark);
                }
                _ => {}
            }
        }
        self.depth -= 1;
        Some(())
    }

    /// An expression of operators that bind at least as tightly as `least`.
    pub fn operators(&mut self, least: u8) -> Option<()> {
        self.deeper()?;
        let (mark, start) = (self.grown.mark(), self.tokens.start);
        match self.tokens.token {
            Token::Word(Word::Not) if least <= NOT_ => self.prefixed(NOT, NOT_, mark)?,
            Token::Minus | Token::Plus | Token::Tilde if least <= POWER => self.prefixed(UNARY, SIGN, mark)?,
            Token::Word(Word::Await) => self.prefixed(AWAIT, SIGN, mark)?,
            _ => self.primary()?,
        }
        loop {
            let (kind, binds) = match self.tokens.token {
                Token::Word(Word::Or) => (BOOLEAN, OR),
                Token::Word(Word::And) => (BOOLEAN, AND),
                Token::Compares | Token::Word(Word::In | Word::Is | Word::Not) => (COMPARISON, COMPARE),
                Token::Or => (BINARY, BITS_OR),
                Token::Xor => (BINARY, BITS_XOR),
                Token::And => (BINARY, BITS_AND),
                Token::Shift => (BINARY, SHIFT),
                Token::Plus | Token::Minus => (BINARY, PLUS),
                Token::Star | Token::Slash | Token::Times | Token::At => (BINARY, TIMES),
                Token::StarStar => (BINARY, POWER),
                _ => break,
            };
            if binds < least {
                break;
            }
            if kind == COMPARISON {
                // `a < b < c` is one comparison.
                while self.comparison()? {
                    self.operators(COMPARE + 1)?;
                }
                self.close(COMPARISON, start, mark);
                continue;
            }
            self.grown.set_field(mark, field::LEFT);
            self.advance()?;
            // `a ** b ** c` and `a ** -b` bind to the right.
            self.operators(if binds == POWER { SIGN } else { binds + 1 })?;
            self.grown.set_last_field(field::RIGHT);
            self.close(kind, start, mark);
        }
        self.depth -= 1;
        Some(())
    }

    fn prefixed(&mut self, kind: u16, binds: u8, mark: usize) -> Option<()> {
        let start = self.tokens.start;
        self.advance()?;
        self.operators(binds)?;
        self.close(kind, start, mark);
        Some(())
    }

    /// Past one operator that compares, if there is one.
    fn comparison(&mut self) -> Option<bool> {
        match self.tokens.token {
            Token::Compares | Token::Word(Word::In) => self.advance()?,
            Token::Word(Word::Is) => {
                self.advance()?;
                if self.tokens.token == Token::Word(Word::Not) {
                    self.advance()?;
                }
            }
            Token::Word(Word::Not) => {
                self.advance()?;
                self.expect(Token::Word(Word::In))?;
            }
            _ => return Some(false),
        }
        Some(true)
    }

    /// A name, a literal, something in brackets; with its members, calls and keys.
    pub fn primary(&mut self) -> Option<()> {
        let (mark, start) = (self.grown.mark(), self.tokens.start);
        match self.tokens.token {
            Token::Name => self.leaf(IDENTIFIER)?,
            Token::Integer => self.leaf(INTEGER)?,
            Token::Float => self.leaf(FLOAT)?,
            Token::Ellipsis => self.leaf(ELLIPSIS)?,
            Token::Word(Word::True) => self.leaf(TRUE)?,
            Token::Word(Word::False) => self.leaf(FALSE)?,
            Token::Word(Word::None) => self.leaf(NONE)?,
            Token::Text => self.strings()?,
            Token::Open => self.parenthesized()?,
            Token::OpenSquare => self.list()?,
            Token::OpenBrace => self.braces()?,
            _ => return None,
        }
        loop {
            match self.tokens.token {
                Token::Dot => {
                    self.grown.set_field(mark, field::OBJECT);
                    self.advance()?;
                    self.name()?;
                    self.grown.set_last_field(field::ATTRIBUTE);
                    self.close(ATTRIBUTE, start, mark);
                }
                Token::Open => {
                    self.grown.set_field(mark, field::FUNCTION);
                    self.arguments()?;
                    self.grown.set_last_field(field::ARGUMENTS);
                    self.close(CALL, start, mark);
                }
                Token::OpenSquare => {
                    self.grown.set_field(mark, field::VALUE);
                    self.keys()?;
                    self.close(SUBSCRIPT, start, mark);
                }
                _ => return Some(()),
            }
        }
    }

    /// `*a`, where several things may stand.
    pub fn splat_or(&mut self, otherwise: fn(&mut Self) -> Option<()>) -> Option<()> {
        if self.tokens.token != Token::Star {
            return otherwise(self);
        }
        let (mark, start) = (self.grown.mark(), self.tokens.start);
        self.advance()?;
        self.operators(BITS_OR)?;
        self.close(LIST_SPLAT, start, mark);
        Some(())
    }

    fn parenthesized(&mut self) -> Option<()> {
        self.deeper()?;
        let (mark, start) = (self.grown.mark(), self.tokens.start);
        self.advance()?;
        if self.tokens.token == Token::Close {
            self.advance()?;
            self.close(TUPLE, start, mark);
            self.depth -= 1;
            return Some(());
        }
        let is_splat = self.tokens.token == Token::Star;
        match self.tokens.token {
            Token::Word(Word::Yield) => self.yields()?,
            _ => self.splat_or(Self::expression)?,
        }
        let kind = match self.tokens.token {
            Token::Close if !is_splat => PARENTHESIZED,
            Token::Word(Word::For | Word::Async) if !is_splat => {
                self.clauses()?;
                GENERATOR_EXPRESSION
            }
            _ => {
                self.more_items(Token::Close)?;
                TUPLE
            }
        };
        self.expect(Token::Close)?;
        self.close(kind, start, mark);
        self.depth -= 1;
        Some(())
    }

    fn list(&mut self) -> Option<()> {
        self.deeper()?;
        let (mark, start) = (self.grown.mark(), self.tokens.start);
        self.advance()?;
        let mut kind = LIST;
        if self.tokens.token != Token::CloseSquare {
            self.splat_or(Self::expression)?;
            match self.tokens.token {
                Token::Word(Word::For | Word::Async) => {
                    self.clauses()?;
                    kind = LIST_COMPREHENSION;
                }
                _ => self.more_items(Token::CloseSquare)?,
            }
        }
        self.expect(Token::CloseSquare)?;
        self.close(kind, start, mark);
        self.depth -= 1;
        Some(())
    }

    /// What follows the first item, up to what closes.
    fn more_items(&mut self, end: Token) -> Option<()> {
        while self.tokens.token == Token::Comma {
            self.advance()?;
            if self.tokens.token == end {
                break;
            }
            self.splat_or(Self::expression)?;
        }
        Some(())
    }

    fn braces(&mut self) -> Option<()> {
        self.deeper()?;
        let (mark, start) = (self.grown.mark(), self.tokens.start);
        self.advance()?;
        let mut kind = None;
        while self.tokens.token != Token::CloseBrace {
            let (mark, start) = (self.grown.mark(), self.tokens.start);
            let made = match self.tokens.token {
                Token::StarStar => {
                    self.advance()?;
                    self.operators(BITS_OR)?;
                    self.close(DICTIONARY_SPLAT, start, mark);
                    DICTIONARY
                }
                _ => {
                    self.splat_or(Self::expression)?;
                    if self.tokens.token == Token::Colon {
                        self.grown.set_field(mark, field::KEY);
                        self.advance()?;
                        self.expression()?;
                        self.grown.set_last_field(field::VALUE);
                        self.close(PAIR, start, mark);
                        DICTIONARY
                    } else {
                        SET
                    }
                }
            };
            if *kind.get_or_insert(made) != made {
                return None;
            }
            match self.tokens.token {
                Token::Comma => self.advance()?,
                Token::Word(Word::For | Word::Async) => {
                    self.clauses()?;
                    kind = Some(if made == SET { SET_COMPREHENSION } else { DICTIONARY_COMPREHENSION });
                    break;
                }
                _ => break,
            }
        }
        self.expect(Token::CloseBrace)?;
        self.close(kind.unwrap_or(DICTIONARY), start, mark);
        self.depth -= 1;
        Some(())
    }

    /// `for a in b if c`, once or more.
    fn clauses(&mut self) -> Option<()> {
        loop {
            let (mark, start) = (self.grown.mark(), self.tokens.start);
            match self.tokens.token {
                Token::Word(Word::If) => {
                    self.advance()?;
                    self.operators(OR)?;
                    self.close(IF_CLAUSE, start, mark);
                }
                Token::Word(Word::For | Word::Async) => {
                    if self.tokens.token == Token::Word(Word::Async) {
                        self.advance()?;
                    }
                    self.expect(Token::Word(Word::For))?;
                    self.targets()?;
                    self.expect(Token::Word(Word::In))?;
                    self.operators(OR)?;
                    self.grown.set_last_field(field::RIGHT);
                    self.close(FOR_IN_CLAUSE, start, mark);
                }
                _ => return Some(()),
            }
        }
    }

    /// What a loop sets: one thing, or several.
    pub fn targets(&mut self) -> Option<()> {
        let (mark, start) = (self.grown.mark(), self.tokens.start);
        let mut is_list = false;
        loop {
            let one = self.grown.mark();
            let begin = self.tokens.start;
            if self.tokens.token == Token::Star {
                self.advance()?;
                self.primary()?;
                self.close(LIST_SPLAT, begin, one);
            } else {
                self.primary()?;
            }
            self.as_target(one)?;
            if self.tokens.token != Token::Comma {
                break;
            }
            is_list = true;
            self.advance()?;
            if self.tokens.token == Token::Word(Word::In) {
                break;
            }
        }
        if is_list {
            self.close(PATTERN_LIST, start, mark);
        }
        self.grown.set_last_field(field::LEFT);
        Some(())
    }

    /// What was read as an expression is set.
    pub fn as_target(&mut self, mark: usize) -> Option<()> {
        self.grown.turn(mark, |kind| match kind {
            IDENTIFIER | ATTRIBUTE | SUBSCRIPT => Some((kind, Parts::None)),
            TUPLE | PARENTHESIZED => Some((TUPLE_PATTERN, Parts::All)),
            LIST => Some((LIST_PATTERN, Parts::All)),
            LIST_SPLAT => Some((LIST_SPLAT_PATTERN, Parts::All)),
            _ => None,
        })
    }

    pub fn arguments(&mut self) -> Option<()> {
        self.deeper()?;
        let (mark, start) = (self.grown.mark(), self.tokens.start);
        self.advance()?;
        let mut kind = ARGUMENT_LIST;
        while self.tokens.token != Token::Close {
            let (one, begin) = (self.grown.mark(), self.tokens.start);
            match self.tokens.token {
                Token::StarStar | Token::Star => {
                    let is_double = self.tokens.token == Token::StarStar;
                    self.advance()?;
                    self.expression()?;
                    self.close(if is_double { DICTIONARY_SPLAT } else { LIST_SPLAT }, begin, one);
                }
                _ => self.expression()?,
            }
            match self.tokens.token {
                Token::Equals if self.grown.kind(one) == Some(IDENTIFIER) => {
                    self.grown.set_field(one, field::NAME);
                    self.advance()?;
                    self.expression()?;
                    self.grown.set_last_field(field::VALUE);
                    self.close(KEYWORD_ARGUMENT, begin, one);
                }
                // `f(a for a in b)`: the brackets are those of the generator.
                Token::Word(Word::For | Word::Async) if one == mark => {
                    self.clauses()?;
                    kind = GENERATOR_EXPRESSION;
                    break;
                }
                _ => {}
            }
            match self.tokens.token {
                Token::Comma => self.advance()?,
                _ => break,
            }
        }
        self.expect(Token::Close)?;
        self.close(kind, start, mark);
        self.depth -= 1;
        Some(())
    }

    /// `[a]`, `[a:b]`, `[a, b]`.
    fn keys(&mut self) -> Option<()> {
        self.deeper()?;
        self.advance()?;
        loop {
            let (mark, start) = (self.grown.mark(), self.tokens.start);
            if self.tokens.token != Token::Colon {
                self.splat_or(Self::expression)?;
            }
            if self.tokens.token == Token::Colon {
                for _ in 0..2 {
                    if self.tokens.token == Token::Colon {
                        self.advance()?;
                        if !matches!(self.tokens.token, Token::Colon | Token::Comma | Token::CloseSquare) {
                            self.expression()?;
                        }
                    }
                }
                self.close(SLICE, start, mark);
            }
            if self.tokens.token == Token::Comma {
                self.advance()?;
                if self.tokens.token != Token::CloseSquare {
                    continue;
                }
            }
            break;
        }
        self.depth -= 1;
        self.expect(Token::CloseSquare)
    }

    fn lambda(&mut self) -> Option<()> {
        let (mark, start) = (self.grown.mark(), self.tokens.start);
        self.advance()?;
        if self.tokens.token != Token::Colon {
            let (inner, begin) = (self.grown.mark(), self.tokens.start);
            self.parameters(Token::Colon, false)?;
            self.close(LAMBDA_PARAMETERS, begin, inner);
            self.grown.set_last_field(field::PARAMETERS);
        }
        self.expect(Token::Colon)?;
        self.expression()?;
        self.close(LAMBDA, start, mark);
        Some(())
    }

    /// `yield`, `yield a, b`, `yield from a`.
    pub fn yields(&mut self) -> Option<()> {
        let (mark, start) = (self.grown.mark(), self.tokens.start);
        self.advance()?;
        match self.tokens.token {
            Token::Word(Word::From) => {
                self.advance()?;
                self.expression()?;
            }
            Token::Close | Token::Newline | Token::Semicolon | Token::Equals | Token::CloseSquare => {}
            _ => self.expressions()?,
        }
        self.close(YIELD, start, mark);
        Some(())
    }
}
