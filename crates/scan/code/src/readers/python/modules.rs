//! What comes in.

use super::Reader;
use super::kinds::*;
use super::tokens::{Token, Word};
use crate::tree::field;

impl Reader<'_> {
    /// `a.b`, or `a.b as c`.
    pub fn module(&mut self) -> Option<()> {
        let (mark, start) = (self.grown.mark(), self.tokens.start);
        self.dotted_name()?;
        if self.tokens.token == Token::Word(Word::As) {
            self.grown.set_field(mark, field::NAME);
            self.advance()?;
            self.name()?;
            self.grown.set_last_field(field::ALIAS);
            self.close(ALIASED_IMPORT, start, mark);
        }
        self.grown.set_last_field(field::NAME);
        Some(())
    }

    fn dotted_name(&mut self) -> Option<()> {
        let (mark, start) = (self.grown.mark(), self.tokens.start);
        self.name()?;
        while self.tokens.token == Token::Dot {
            self.advance()?;
            self.name()?;
        }
        self.close(DOTTED_NAME, start, mark);
        Some(())
    }

    pub fn import_from(&mut self) -> Option<()> {
        let (mark, start) = (self.grown.mark(), self.tokens.start);
        self.advance()?;
        let is_future = self.tokens.text() == b"__future__";
        let begin = self.tokens.start;
        if matches!(self.tokens.token, Token::Dot | Token::Ellipsis) {
            let inner = self.grown.mark();
            while matches!(self.tokens.token, Token::Dot | Token::Ellipsis) {
                self.advance()?;
            }
            self.close(IMPORT_PREFIX, begin, inner);
            if self.tokens.token == Token::Name {
                self.dotted_name()?;
            }
            self.close(RELATIVE_IMPORT, begin, inner);
        } else {
            self.dotted_name()?;
        }
        self.grown.set_last_field(field::MODULE_NAME);
        if is_future {
            self.grown.drop_since(mark);
        }
        self.expect(Token::Word(Word::Import))?;
        match self.tokens.token {
            Token::Star if !is_future => self.leaf(WILDCARD_IMPORT)?,
            Token::Open => {
                self.advance()?;
                loop {
                    self.module()?;
                    if self.tokens.token != Token::Comma {
                        break;
                    }
                    self.advance()?;
                    if self.tokens.token == Token::Close {
                        break;
                    }
                }
                self.expect(Token::Close)?;
            }
            _ => self.separated(Self::module)?,
        }
        self.close(if is_future { FUTURE_IMPORT } else { IMPORT_FROM }, start, mark);
        Some(())
    }
}
