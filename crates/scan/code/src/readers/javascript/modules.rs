//! What comes in, and what goes out.

use super::Reader;
use super::kinds::*;
use super::tokens::{TIMES, Token, Word};
use crate::tree::field;

impl Reader<'_> {
    pub fn import(&mut self, start: usize, mark: usize) -> Option<()> {
        self.advance()?;
        if self.tokens.token != Token::Quote {
            let (inner, begin) = (self.grown.mark(), self.tokens.start);
            if self.tokens.token == Token::Name {
                self.name()?;
                if self.tokens.token == Token::Comma {
                    self.advance()?;
                    self.imported()?;
                }
            } else {
                self.imported()?;
            }
            self.close(IMPORT_CLAUSE, begin, inner);
            self.word(b"from")?;
        }
        self.source()?;
        self.semicolon()?;
        self.close(IMPORT_STATEMENT, start, mark);
        Some(())
    }

    /// `* as a`, or `{a, b as c}`.
    fn imported(&mut self) -> Option<()> {
        let (mark, start) = (self.grown.mark(), self.tokens.start);
        if self.tokens.token == Token::Binary(TIMES) {
            self.advance()?;
            self.word(b"as")?;
            self.name()?;
            self.close(NAMESPACE_IMPORT, start, mark);
            return Some(());
        }
        self.named(IMPORT_SPECIFIER, NAMED_IMPORTS)
    }

    fn named(&mut self, one: u16, all: u16) -> Option<()> {
        let (mark, start) = (self.grown.mark(), self.tokens.start);
        self.expect(Token::OpenBrace)?;
        while self.tokens.token != Token::CloseBrace {
            let (inner, begin) = (self.grown.mark(), self.tokens.start);
            self.module_name()?;
            self.grown.set_last_field(field::NAME);
            if self.is_name(b"as") {
                self.advance()?;
                self.module_name()?;
                self.grown.set_last_field(field::ALIAS);
            }
            self.close(one, begin, inner);
            match self.tokens.token {
                Token::Comma => self.advance()?,
                _ => break,
            }
        }
        self.expect(Token::CloseBrace)?;
        self.close(all, start, mark);
        Some(())
    }

    fn module_name(&mut self) -> Option<()> {
        match self.tokens.token {
            Token::Name => self.leaf(IDENTIFIER),
            Token::Quote => self.string(),
            // `default` is no node: who asks for it is for the parser.
            _ => None,
        }
    }

    fn word(&mut self, word: &[u8]) -> Option<()> {
        if self.is_name(word) { self.advance() } else { None }
    }

    fn source(&mut self) -> Option<()> {
        if self.tokens.token != Token::Quote {
            return None;
        }
        self.string()?;
        self.grown.set_last_field(field::SOURCE);
        Some(())
    }

    pub fn export(&mut self, start: usize, mark: usize) -> Option<()> {
        self.advance()?;
        match self.tokens.token {
            Token::Binary(TIMES) => {
                let (inner, begin) = (self.grown.mark(), self.tokens.start);
                self.advance()?;
                if self.is_name(b"as") {
                    self.advance()?;
                    self.module_name()?;
                    self.close(NAMESPACE_EXPORT, begin, inner);
                }
                self.word(b"from")?;
                self.source()?;
                self.semicolon()?;
            }
            Token::OpenBrace => {
                self.named(EXPORT_SPECIFIER, EXPORT_CLAUSE)?;
                if self.is_name(b"from") {
                    self.advance()?;
                    self.source()?;
                }
                self.semicolon()?;
            }
            Token::Word(Word::Default) => {
                self.advance()?;
                let (inner, is_async) = (self.grown.mark(), self.is_name(b"async") && self.follows(b"function"));
                match self.tokens.token {
                    // With a name or without it: which of the two kinds it is tells the parser.
                    Token::Word(Word::Function | Word::Class) => return self.exported_whole(start, mark),
                    _ if is_async => return self.exported_whole(start, mark),
                    _ => self.expression()?,
                }
                self.grown.set_field(inner, field::VALUE);
                self.semicolon()?;
            }
            Token::Word(Word::Function | Word::Class | Word::Const | Word::Var) => self.statement()?,
            Token::Name if self.is_name(b"let") || self.is_name(b"async") => self.statement()?,
            _ => return None,
        }
        self.close(EXPORT, start, mark);
        Some(())
    }

    /// `export default function f() {}`: declared where it has a name.
    fn exported_whole(&mut self, start: usize, mark: usize) -> Option<()> {
        let inner = self.grown.mark();
        match self.tokens.token {
            Token::Word(Word::Class) => {
                let is_named =
                    super::is_word(self.tokens.byte(self.next_byte(self.tokens.end))) && !self.follows(b"extends");
                self.class(if is_named { CLASS_DECLARATION } else { CLASS })?;
                if !is_named {
                    self.grown.set_field(inner, field::VALUE);
                    self.semicolon()?;
                }
            }
            _ => {
                self.function(false)?;
                let has_name = self.grown.part_of(inner, field::NAME);
                match self.grown.kind(inner)? {
                    FUNCTION_EXPRESSION if has_name => self.grown.turn_one(inner, FUNCTION_DECLARATION),
                    GENERATOR if has_name => self.grown.turn_one(inner, GENERATOR_DECLARATION),
                    _ => {
                        self.grown.set_field(inner, field::VALUE);
                        self.semicolon()?;
                    }
                }
            }
        }
        self.close(EXPORT, start, mark);
        Some(())
    }
}
