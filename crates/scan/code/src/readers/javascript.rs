//! JavaScript: statements. What a page or a React component would hold besides is for the parser.

mod expressions;
mod functions;
mod kinds;
mod modules;
mod strings;
mod tokens;

use kinds::*;
use tokens::{Token, Tokens, Word, comment_end, is_word};

use crate::tree::{Growing, Tree, field};

/// Nested deeper, it is for the parser, which needs no stack.
const DEEPEST: usize = 200;
/// How often its own length may be looked at to tell brackets of arrows from others.
const LOOKS_AHEAD: usize = 16;

pub(crate) fn read(bytes: &[u8]) -> Option<Tree> {
    let source = std::str::from_utf8(bytes).ok()?;
    let grown = Growing::with_room_for(bytes.len());
    let ahead = bytes.len().saturating_mul(LOOKS_AHEAD);
    let mut reader = Reader { tokens: Tokens::of(source), grown, depth: 0, in_for: false, ahead };
    if bytes.starts_with(b"#!") {
        let end = memchr::memchr2(b'\n', b'\r', bytes).unwrap_or(bytes.len());
        reader.grown.leaf(HASH_BANG, 0, end);
        reader.tokens.end = end;
    }
    reader.advance()?;
    while reader.tokens.token != Token::End {
        reader.statement()?;
    }
    reader.grown.close(PROGRAM, 0, bytes.len(), 0);
    reader.grown.finish(OURS)
}

struct Reader<'s> {
    tokens: Tokens<'s>,
    grown: Growing,
    depth: usize,
    /// In the head of a loop, `in` is no operator.
    in_for: bool,
    /// How much may still be looked at twice.
    ahead: usize,
}

impl Reader<'_> {
    fn advance(&mut self) -> Option<()> {
        self.tokens.advance()
    }

    fn expect(&mut self, token: Token) -> Option<()> {
        if self.tokens.token == token { self.advance() } else { None }
    }

    fn deeper(&mut self) -> Option<()> {
        self.depth += 1;
        (self.depth <= DEEPEST).then_some(())
    }

    fn leaf(&mut self, kind: u16) -> Option<()> {
        self.grown.leaf(kind, self.tokens.start, self.tokens.end);
        self.advance()
    }

    fn name(&mut self) -> Option<()> {
        let is_plain = self.tokens.token == Token::Name && !self.is_name(b"yield") && !self.is_name(b"await");
        if is_plain { self.leaf(IDENTIFIER) } else { None }
    }

    fn is_name(&self, name: &[u8]) -> bool {
        self.tokens.token == Token::Name && self.tokens.text() == name
    }

    /// A node from `start` to the end of the token before this one.
    fn close(&mut self, kind: u16, start: usize, mark: usize) {
        self.grown.close(kind, start, self.tokens.before, mark);
    }

    fn outside_of_for(&mut self, work: impl FnOnce(&mut Self) -> Option<()>) -> Option<()> {
        let in_for = std::mem::replace(&mut self.in_for, false);
        work(self)?;
        self.in_for = in_for;
        Some(())
    }

    /// Past spaces and comments.
    fn next_byte(&self, from: usize) -> usize {
        let mut at = from;
        loop {
            match self.tokens.byte(at) {
                b' ' | b'\t' | b'\n' | b'\r' => at += 1,
                b'/' if matches!(self.tokens.byte(at + 1), b'/' | b'*') => match comment_end(self.tokens.bytes, at) {
                    Some(end) => at = end,
                    None => return at,
                },
                _ => return at,
            }
        }
    }

    fn next_is_on_new_line(&self) -> bool {
        let next = self.next_byte(self.tokens.end);
        self.tokens.bytes.get(self.tokens.end..next).is_some_and(|between| between.contains(&b'\n'))
    }

    /// Does this word follow, on the same line?
    fn follows(&self, word: &[u8]) -> bool {
        let next = self.next_byte(self.tokens.end);
        let is_it = self.tokens.bytes.get(next..).is_some_and(|rest| rest.starts_with(word));
        is_it && !is_word(self.tokens.byte(next + word.len())) && !self.next_is_on_new_line()
    }

    fn is_arrow(&self, at: usize) -> bool {
        self.tokens.byte(at) == b'=' && self.tokens.byte(at + 1) == b'>'
    }

    fn is_name_before_arrow(&self, start: usize) -> bool {
        let mut at = start;
        while is_word(self.tokens.byte(at)) {
            at += 1;
        }
        self.is_arrow(self.next_byte(at))
    }

    /// Are these brackets those of an arrow's parameters? A wrong answer only means that the rest is not understood.
    fn is_before_arrow(&mut self, open: usize) -> Option<bool> {
        let (mut at, mut depth) = (open, 0_usize);
        loop {
            match self.tokens.byte(at) {
                b'(' | b'[' | b'{' => depth += 1,
                b')' | b']' | b'}' => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 {
                        break;
                    }
                }
                quote @ (b'"' | b'\'' | b'`') => {
                    at += 1;
                    while at < self.tokens.bytes.len() && self.tokens.byte(at) != quote {
                        at += if self.tokens.byte(at) == b'\\' { 2 } else { 1 };
                    }
                }
                b'/' if matches!(self.tokens.byte(at + 1), b'/' | b'*') => {
                    at = comment_end(self.tokens.bytes, at)?;
                    continue;
                }
                _ if at >= self.tokens.bytes.len() => return Some(false),
                _ => {}
            }
            at += 1;
        }
        self.ahead = self.ahead.checked_sub(at - open)?;
        Some(self.is_arrow(self.next_byte(at + 1)))
    }

    fn statement(&mut self) -> Option<()> {
        self.deeper()?;
        let (mark, start) = (self.grown.mark(), self.tokens.start);
        match self.tokens.token {
            Token::OpenBrace => self.block()?,
            Token::Semicolon => self.leaf(EMPTY)?,
            Token::Word(word) => self.by_word(word, start, mark)?,
            Token::Name if self.is_name(b"let") && self.begins_declaration() => {
                self.declaration(LEXICAL_DECLARATION, start, mark)?;
            }
            Token::Name if self.is_name(b"async") && self.follows(b"function") => self.function(true)?,
            Token::Name if self.tokens.byte(self.next_byte(self.tokens.end)) == b':' => {
                self.leaf(LABEL)?;
                self.expect(Token::Colon)?;
                self.statement()?;
                self.close(LABELED, start, mark);
            }
            _ => self.expression_statement(start, mark)?,
        }
        self.depth -= 1;
        Some(())
    }

    fn expression_statement(&mut self, start: usize, mark: usize) -> Option<()> {
        self.expressions()?;
        self.semicolon()?;
        self.close(EXPRESSION_STATEMENT, start, mark);
        Some(())
    }

    /// One that is written, or where one is meant.
    fn semicolon(&mut self) -> Option<()> {
        match self.tokens.token {
            Token::Semicolon => self.advance(),
            Token::CloseBrace | Token::End => Some(()),
            _ => self.tokens.on_new_line.then_some(()),
        }
    }

    fn begins_declaration(&self) -> bool {
        let next = self.tokens.byte(self.next_byte(self.tokens.end));
        is_word(next) && !self.follows(b"in") && !self.follows(b"instanceof") || matches!(next, b'{' | b'[')
    }

    fn block(&mut self) -> Option<()> {
        self.deeper()?;
        let (mark, start) = (self.grown.mark(), self.tokens.start);
        let in_for = std::mem::replace(&mut self.in_for, false);
        self.expect(Token::OpenBrace)?;
        while self.tokens.token != Token::CloseBrace {
            self.statement()?;
        }
        self.advance()?;
        self.in_for = in_for;
        self.close(BLOCK, start, mark);
        self.depth -= 1;
        Some(())
    }

    fn parenthesized(&mut self) -> Option<()> {
        let (mark, start) = (self.grown.mark(), self.tokens.start);
        self.expect(Token::Open)?;
        self.expressions()?;
        self.expect(Token::Close)?;
        self.close(PARENTHESIZED, start, mark);
        Some(())
    }

    fn by_word(&mut self, word: Word, start: usize, mark: usize) -> Option<()> {
        match word {
            Word::Var => self.declaration(VARIABLE_DECLARATION, start, mark)?,
            Word::Const => self.declaration(LEXICAL_DECLARATION, start, mark)?,
            Word::Function => self.function(true)?,
            Word::Class => self.class(CLASS_DECLARATION)?,
            Word::If => {
                self.advance()?;
                self.parenthesized()?;
                self.statement()?;
                let (inner, begin) = (self.grown.mark(), self.tokens.start);
                if self.tokens.token == Token::Word(Word::Else) {
                    self.advance()?;
                    self.statement()?;
                    self.close(ELSE, begin, inner);
                }
                self.close(IF, start, mark);
            }
            Word::For => self.for_loop(start, mark)?,
            Word::While => {
                self.advance()?;
                self.parenthesized()?;
                self.statement()?;
                self.close(WHILE, start, mark);
            }
            Word::Do => {
                self.advance()?;
                self.statement()?;
                self.expect(Token::Word(Word::While))?;
                self.parenthesized()?;
                if self.tokens.token == Token::Semicolon {
                    self.advance()?;
                }
                self.close(DO, start, mark);
            }
            Word::Return | Word::Throw => {
                self.advance()?;
                let is_bare = matches!(self.tokens.token, Token::Semicolon | Token::CloseBrace | Token::End);
                if !is_bare && !self.tokens.on_new_line {
                    self.expressions()?;
                } else if word == Word::Throw {
                    return None;
                }
                self.semicolon()?;
                self.close(if word == Word::Return { RETURN } else { THROW }, start, mark);
            }
            Word::Break | Word::Continue => {
                self.advance()?;
                if self.tokens.token == Token::Name && !self.tokens.on_new_line {
                    self.leaf(LABEL)?;
                }
                self.semicolon()?;
                self.close(if word == Word::Break { BREAK } else { CONTINUE }, start, mark);
            }
            Word::Debugger => {
                self.advance()?;
                self.semicolon()?;
                self.close(DEBUGGER, start, mark);
            }
            Word::Switch => self.switch(start, mark)?,
            Word::Try => self.tries(start, mark)?,
            Word::Export => self.export(start, mark)?,
            Word::Import if !matches!(self.tokens.byte(self.next_byte(self.tokens.end)), b'(' | b'.') => {
                self.import(start, mark)?;
            }
            _ => self.expression_statement(start, mark)?,
        }
        Some(())
    }

    fn switch(&mut self, start: usize, mark: usize) -> Option<()> {
        self.advance()?;
        self.parenthesized()?;
        self.grown.set_last_field(field::VALUE);
        let (inner, begin) = (self.grown.mark(), self.tokens.start);
        self.expect(Token::OpenBrace)?;
        while self.tokens.token != Token::CloseBrace {
            let (case, at) = (self.grown.mark(), self.tokens.start);
            let kind = match self.tokens.token {
                Token::Word(Word::Case) => SWITCH_CASE,
                Token::Word(Word::Default) => SWITCH_DEFAULT,
                _ => return None,
            };
            self.advance()?;
            if kind == SWITCH_CASE {
                self.expressions()?;
                self.grown.set_last_field(field::VALUE);
            }
            self.expect(Token::Colon)?;
            while !matches!(self.tokens.token, Token::Word(Word::Case | Word::Default) | Token::CloseBrace) {
                self.statement()?;
            }
            self.close(kind, at, case);
        }
        self.advance()?;
        self.close(SWITCH_BODY, begin, inner);
        self.close(SWITCH, start, mark);
        Some(())
    }

    fn tries(&mut self, start: usize, mark: usize) -> Option<()> {
        self.advance()?;
        self.block()?;
        let (inner, begin) = (self.grown.mark(), self.tokens.start);
        if self.tokens.token == Token::Word(Word::Catch) {
            self.advance()?;
            if self.tokens.token == Token::Open {
                self.advance()?;
                self.pattern()?;
                self.grown.set_last_field(field::PARAMETER);
                self.expect(Token::Close)?;
            }
            self.block()?;
            self.close(CATCH, begin, inner);
        }
        let (inner, begin) = (self.grown.mark(), self.tokens.start);
        if self.tokens.token == Token::Word(Word::Finally) {
            self.advance()?;
            self.block()?;
            self.close(FINALLY, begin, inner);
        }
        self.close(TRY, start, mark);
        Some(())
    }

    /// `const a = b, c = d;`
    fn declaration(&mut self, kind: u16, start: usize, mark: usize) -> Option<()> {
        self.advance()?;
        self.declarators()?;
        self.semicolon()?;
        self.close(kind, start, mark);
        Some(())
    }

    fn declarators(&mut self) -> Option<()> {
        loop {
            let (mark, start) = (self.grown.mark(), self.tokens.start);
            self.pattern()?;
            self.declarator_rest(start, mark)?;
            if self.tokens.token != Token::Comma {
                return Some(());
            }
            self.advance()?;
        }
    }

    fn declarator_rest(&mut self, start: usize, mark: usize) -> Option<()> {
        self.grown.set_field(mark, field::NAME);
        if self.tokens.token == Token::Equals {
            self.advance()?;
            self.expression()?;
            self.grown.set_last_field(field::VALUE);
        }
        self.close(VARIABLE_DECLARATOR, start, mark);
        Some(())
    }

    fn for_loop(&mut self, start: usize, mark: usize) -> Option<()> {
        self.advance()?;
        if self.is_name(b"await") {
            self.advance()?;
        }
        self.expect(Token::Open)?;
        let (inner, begin) = (self.grown.mark(), self.tokens.start);
        let kind = match self.tokens.token {
            Token::Word(Word::Var) => Some(VARIABLE_DECLARATION),
            Token::Word(Word::Const) => Some(LEXICAL_DECLARATION),
            Token::Name if self.is_name(b"let") => Some(LEXICAL_DECLARATION),
            _ => None,
        };
        self.in_for = true;
        if kind.is_some() {
            self.advance()?;
        }
        let first = self.tokens.start;
        match kind {
            Some(_) => self.pattern()?,
            None if self.tokens.token == Token::Semicolon => self.leaf(EMPTY)?,
            None => self.expressions()?,
        }
        let is_each = self.is_name(b"of") || self.tokens.token == Token::Word(Word::In);
        if is_each {
            if kind.is_none() {
                self.as_target(inner)?;
            }
            self.in_for = false;
            self.grown.set_field(inner, field::LEFT);
            self.advance()?;
            self.expressions()?;
            self.grown.set_last_field(field::RIGHT);
            self.expect(Token::Close)?;
            self.statement()?;
            self.close(FOR_IN, start, mark);
            return Some(());
        }
        if let Some(kind) = kind {
            self.declarator_rest(first, inner)?;
            if self.tokens.token == Token::Comma {
                self.advance()?;
                self.declarators()?;
            }
            self.expect(Token::Semicolon)?;
            self.close(kind, begin, inner);
        } else if self.grown.kind(inner) != Some(EMPTY) {
            self.expect(Token::Semicolon)?;
        }
        self.in_for = false;
        if self.tokens.token == Token::Semicolon {
            self.leaf(EMPTY)?;
        } else {
            self.expressions()?;
            self.expect(Token::Semicolon)?;
        }
        if self.tokens.token != Token::Close {
            self.expressions()?;
        }
        self.expect(Token::Close)?;
        self.statement()?;
        self.close(FOR, start, mark);
        Some(())
    }
}
