//! What functions are given.

use super::Reader;
use super::kinds::*;
use super::tokens::Token;
use crate::tree::field;

impl Reader<'_> {
    /// Up to `end`, which stays.
    pub fn parameters(&mut self, end: Token, are_typed: bool) -> Option<()> {
        while self.tokens.token != end {
            self.parameter(end, are_typed)?;
            match self.tokens.token {
                Token::Comma => self.advance()?,
                _ => break,
            }
        }
        Some(())
    }

    fn parameter(&mut self, end: Token, is_typed: bool) -> Option<()> {
        let (mark, start) = (self.grown.mark(), self.tokens.start);
        let mut is_plain = false;
        match self.tokens.token {
            Token::Slash => return self.leaf(POSITIONAL_SEPARATOR),
            Token::Star | Token::StarStar => {
                let is_double = self.tokens.token == Token::StarStar;
                let (from, to) = (self.tokens.start, self.tokens.end);
                self.advance()?;
                if !is_double && (self.tokens.token == Token::Comma || self.tokens.token == end) {
                    self.grown.leaf(KEYWORD_SEPARATOR, from, to);
                    return Some(());
                }
                self.name()?;
                self.close(if is_double { DICTIONARY_SPLAT_PATTERN } else { LIST_SPLAT_PATTERN }, start, mark);
            }
            _ => {
                is_plain = true;
                self.name()?;
            }
        }
        let has_type = is_typed && self.tokens.token == Token::Colon;
        if has_type {
            self.advance()?;
            self.kind_of_value()?;
        }
        if is_plain && self.tokens.token == Token::Equals {
            self.grown.set_field(mark, field::NAME);
            self.advance()?;
            self.expression()?;
            self.grown.set_last_field(field::VALUE);
            self.close(if has_type { TYPED_DEFAULT_PARAMETER } else { DEFAULT_PARAMETER }, start, mark);
        } else if has_type {
            self.close(TYPED_PARAMETER, start, mark);
        }
        Some(())
    }
}
