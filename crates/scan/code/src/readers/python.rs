//! Python: statements, line by line.

mod expressions;
mod kinds;
mod modules;
mod parameters;
mod strings;
mod tokens;

use kinds::*;
use tokens::{Token, Tokens, Word};

use crate::tree::{Growing, Tree, field};

/// Nested deeper, it is for the parser, which needs no stack.
const DEEPEST: usize = 120;

pub(crate) fn read(bytes: &[u8]) -> Option<Tree> {
    let source = std::str::from_utf8(bytes).ok()?;
    let grown = Growing::with_room_for(bytes.len());
    let mut reader = Reader { tokens: Tokens::of(source), grown, depth: 0 };
    reader.advance()?;
    while reader.tokens.token != Token::End {
        reader.statement()?;
    }
    reader.grown.close(MODULE, 0, bytes.len(), 0);
    reader.grown.finish(OURS)
}

struct Reader<'s> {
    tokens: Tokens<'s>,
    grown: Growing,
    depth: usize,
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

    /// The token we are at is a node by itself.
    fn leaf(&mut self, kind: u16) -> Option<()> {
        self.grown.leaf(kind, self.tokens.start, self.tokens.end);
        self.advance()
    }

    fn name(&mut self) -> Option<()> {
        if self.tokens.token == Token::Name { self.leaf(IDENTIFIER) } else { None }
    }

    /// A node from `start` to the end of the token before this one.
    fn close(&mut self, kind: u16, start: usize, mark: usize) {
        self.grown.close(kind, start, self.tokens.before, mark);
    }

    fn statement(&mut self) -> Option<()> {
        let (mark, start) = (self.grown.mark(), self.tokens.start);
        match self.tokens.token {
            Token::Word(Word::If) => {
                self.conditional()?;
                while self.tokens.token == Token::Word(Word::Elif) {
                    let (mark, start) = (self.grown.mark(), self.tokens.start);
                    self.conditional()?;
                    self.close(ELIF, start, mark);
                }
                self.otherwise(Word::Else, ELSE)?;
                self.close(IF, start, mark);
            }
            Token::Word(Word::While) => {
                self.conditional()?;
                self.otherwise(Word::Else, ELSE)?;
                self.close(WHILE, start, mark);
            }
            Token::Word(Word::Try) => {
                self.advance()?;
                self.suite()?;
                while self.tokens.token == Token::Word(Word::Except) {
                    self.except()?;
                }
                self.otherwise(Word::Else, ELSE)?;
                self.otherwise(Word::Finally, FINALLY)?;
                self.close(TRY, start, mark);
            }
            Token::Word(Word::For | Word::With | Word::Def | Word::Async) => self.compound(mark, start)?,
            Token::Word(Word::Class) => self.class()?,
            Token::At => {
                while self.tokens.token == Token::At {
                    let (mark, start) = (self.grown.mark(), self.tokens.start);
                    self.advance()?;
                    self.expression()?;
                    self.close(DECORATOR, start, mark);
                    self.expect(Token::Newline)?;
                }
                let begin = self.tokens.start;
                match self.tokens.token {
                    Token::Word(Word::Class) => self.class()?,
                    Token::Word(Word::Def | Word::Async) => self.compound(self.grown.mark(), begin)?,
                    _ => return None,
                }
                self.close(DECORATED, start, mark);
            }
            _ => self.line()?,
        }
        Some(())
    }

    /// What may stand behind `async`.
    fn compound(&mut self, mark: usize, start: usize) -> Option<()> {
        if self.tokens.token == Token::Word(Word::Async) {
            self.advance()?;
        }
        match self.tokens.token {
            Token::Word(Word::For) => {
                self.advance()?;
                self.targets()?;
                self.expect(Token::Word(Word::In))?;
                self.expressions()?;
                self.grown.set_last_field(field::RIGHT);
                self.suite()?;
                self.otherwise(Word::Else, ELSE)?;
                self.close(FOR, start, mark);
            }
            Token::Word(Word::With) => {
                self.advance()?;
                let (inner, begin) = (self.grown.mark(), self.tokens.start);
                loop {
                    self.with_item()?;
                    match self.tokens.token {
                        Token::Comma => self.advance()?,
                        _ => break,
                    }
                }
                self.close(WITH_CLAUSE, begin, inner);
                self.suite()?;
                self.close(WITH, start, mark);
            }
            Token::Word(Word::Def) => {
                self.advance()?;
                self.name()?;
                self.grown.set_last_field(field::NAME);
                let (inner, begin) = (self.grown.mark(), self.tokens.start);
                self.expect(Token::Open)?;
                self.parameters(Token::Close, true)?;
                self.expect(Token::Close)?;
                self.close(PARAMETERS, begin, inner);
                self.grown.set_last_field(field::PARAMETERS);
                if self.tokens.token == Token::Arrow {
                    self.advance()?;
                    self.kind_of_value()?;
                }
                self.suite()?;
                self.close(FUNCTION, start, mark);
            }
            _ => return None,
        }
        Some(())
    }

    fn with_item(&mut self) -> Option<()> {
        let (mark, start) = (self.grown.mark(), self.tokens.start);
        self.expression()?;
        let is_as = self.tokens.token == Token::Word(Word::As);
        // `with (a, b)`: these may be brackets of an expression, or of several.
        if !is_as && matches!(self.grown.kind(mark), Some(PARENTHESIZED | TUPLE)) {
            return None;
        }
        if is_as {
            self.advance()?;
            let (inner, begin) = (self.grown.mark(), self.tokens.start);
            self.primary()?;
            self.close(AS_PATTERN_TARGET, begin, inner);
            self.grown.set_last_field(field::ALIAS);
            self.close(AS_PATTERN, start, mark);
        }
        self.grown.set_last_field(field::VALUE);
        self.close(WITH_ITEM, start, mark);
        Some(())
    }

    fn class(&mut self) -> Option<()> {
        let (mark, start) = (self.grown.mark(), self.tokens.start);
        self.advance()?;
        self.name()?;
        self.grown.set_last_field(field::NAME);
        if self.tokens.token == Token::Open {
            self.arguments()?;
        }
        self.suite()?;
        self.close(CLASS, start, mark);
        Some(())
    }

    /// `if a:`, `while a:`, `elif a:` with what follows.
    fn conditional(&mut self) -> Option<()> {
        self.advance()?;
        self.expression()?;
        self.suite()
    }

    fn otherwise(&mut self, word: Word, kind: u16) -> Option<()> {
        let (mark, start) = (self.grown.mark(), self.tokens.start);
        if self.tokens.token == Token::Word(word) {
            self.advance()?;
            self.suite()?;
            self.close(kind, start, mark);
        }
        Some(())
    }

    fn except(&mut self) -> Option<()> {
        let (mark, start) = (self.grown.mark(), self.tokens.start);
        self.advance()?;
        if self.tokens.token == Token::Star {
            self.advance()?;
        }
        if self.tokens.token != Token::Colon {
            let (inner, begin) = (self.grown.mark(), self.tokens.start);
            self.expression()?;
            if self.tokens.token == Token::Word(Word::As) {
                self.advance()?;
                let (target, at) = (self.grown.mark(), self.tokens.start);
                self.name()?;
                self.close(AS_PATTERN_TARGET, at, target);
                self.grown.set_last_field(field::ALIAS);
                self.close(AS_PATTERN, begin, inner);
            }
            self.grown.set_last_field(field::VALUE);
        }
        self.suite()?;
        self.close(EXCEPT, start, mark);
        Some(())
    }

    /// `:` and what belongs to it: the rest of the line, or lines further in.
    fn suite(&mut self) -> Option<()> {
        self.deeper()?;
        self.expect(Token::Colon)?;
        let mark = self.grown.mark();
        let mut start = self.tokens.start;
        if self.tokens.token == Token::Newline {
            self.advance()?;
            self.expect(Token::Indent)?;
            start = self.tokens.start;
            while self.tokens.token != Token::Dedent {
                self.statement()?;
            }
            self.advance()?;
        } else {
            self.line()?;
        }
        self.close(BLOCK, start, mark);
        self.depth -= 1;
        Some(())
    }

    /// Statements on one line.
    fn line(&mut self) -> Option<()> {
        loop {
            self.simple()?;
            match self.tokens.token {
                Token::Newline => return self.advance(),
                Token::Semicolon => {
                    self.advance()?;
                    if self.tokens.token == Token::Newline {
                        return self.advance();
                    }
                }
                _ => return None,
            }
        }
    }

    fn simple(&mut self) -> Option<()> {
        let (mark, start) = (self.grown.mark(), self.tokens.start);
        let Token::Word(word) = self.tokens.token else { return self.expression_statement() };
        match word {
            Word::Pass => self.leaf(PASS),
            Word::Break => self.leaf(BREAK),
            Word::Continue => self.leaf(CONTINUE),
            Word::Global | Word::Nonlocal => {
                self.advance()?;
                self.separated(Self::name)?;
                self.close(if word == Word::Global { GLOBAL } else { NONLOCAL }, start, mark);
                Some(())
            }
            Word::Assert => {
                self.advance()?;
                self.separated(Self::expression)?;
                self.close(ASSERT, start, mark);
                Some(())
            }
            Word::Del | Word::Return | Word::Raise => {
                self.advance()?;
                if !matches!(self.tokens.token, Token::Newline | Token::Semicolon | Token::Word(Word::From)) {
                    self.expressions()?;
                }
                if word == Word::Raise && self.tokens.token == Token::Word(Word::From) {
                    self.advance()?;
                    self.expression()?;
                }
                let kind = match word {
                    Word::Del => DELETE,
                    Word::Return => RETURN,
                    _ => RAISE,
                };
                self.close(kind, start, mark);
                Some(())
            }
            Word::Import => {
                self.advance()?;
                self.separated(Self::module)?;
                self.close(IMPORT, start, mark);
                Some(())
            }
            Word::From => self.import_from(),
            _ => self.expression_statement(),
        }
    }

    fn separated(&mut self, one: fn(&mut Self) -> Option<()>) -> Option<()> {
        one(self)?;
        while self.tokens.token == Token::Comma {
            self.advance()?;
            one(self)?;
        }
        Some(())
    }

    /// One expression, or several as a list.
    fn expressions(&mut self) -> Option<()> {
        let (mark, start) = (self.grown.mark(), self.tokens.start);
        if self.several()? {
            self.close(EXPRESSION_LIST, start, mark);
        }
        Some(())
    }

    /// Expressions with commas between them; were there any commas?
    fn several(&mut self) -> Option<bool> {
        let is_splat = self.tokens.token == Token::Star;
        self.splat_or(Self::expression)?;
        let is_list = self.tokens.token == Token::Comma;
        if is_splat && !is_list {
            return None;
        }
        while self.tokens.token == Token::Comma {
            self.advance()?;
            let is_end = matches!(
                self.tokens.token,
                Token::Newline
                    | Token::Semicolon
                    | Token::Equals
                    | Token::Extends
                    | Token::Colon
                    | Token::Close
                    | Token::CloseBrace
                    | Token::CloseSquare
            );
            if is_end {
                break;
            }
            self.splat_or(Self::expression)?;
        }
        Some(is_list)
    }

    fn expression_statement(&mut self) -> Option<()> {
        let (mark, start) = (self.grown.mark(), self.tokens.start);
        let is_print = self.tokens.token == Token::Name && self.tokens.text() == b"print";
        if self.tokens.token == Token::Word(Word::Yield) {
            self.yields()?;
        } else {
            // `print -x` was a statement once.
            if is_print && !b"(.=,:\n\r".contains(&self.next_byte()) {
                return None;
            }
            let is_list = self.several()?;
            self.assignment(mark, start, is_list)?;
        }
        self.close(EXPRESSION_STATEMENT, start, mark);
        Some(())
    }

    /// The first byte behind the token we are at that is no space.
    fn next_byte(&self) -> u8 {
        let rest = self.tokens.bytes.get(self.tokens.end..).unwrap_or(&[]);
        rest.iter().copied().find(|byte| !matches!(byte, b' ' | b'\t')).unwrap_or(b'\n')
    }

    /// What was just read is set to what follows, if it is.
    fn assignment(&mut self, mark: usize, start: usize, is_list: bool) -> Option<()> {
        if !matches!(self.tokens.token, Token::Equals | Token::Extends | Token::Colon) {
            return Some(());
        }
        self.deeper()?;
        for one in mark..self.grown.mark() {
            self.as_target(one)?;
        }
        if is_list {
            self.close(PATTERN_LIST, start, mark);
        }
        self.grown.set_field(mark, field::LEFT);
        let kind = if self.tokens.token == Token::Extends { AUGMENTED_ASSIGNMENT } else { ASSIGNMENT };
        let mut has_value = true;
        if self.tokens.token == Token::Colon {
            if is_list {
                return None;
            }
            self.advance()?;
            self.kind_of_value()?;
            has_value = self.tokens.token == Token::Equals;
        }
        if has_value {
            self.advance()?;
            let (inner, begin) = (self.grown.mark(), self.tokens.start);
            if self.tokens.token == Token::Word(Word::Yield) {
                self.yields()?;
            } else {
                let is_list = self.several()?;
                match self.tokens.token {
                    Token::Equals | Token::Extends => self.assignment(inner, begin, is_list)?,
                    _ if is_list => self.close(EXPRESSION_LIST, begin, inner),
                    _ => {}
                }
            }
            self.grown.set_last_field(field::RIGHT);
        }
        self.close(kind, start, mark);
        self.depth -= 1;
        Some(())
    }

    /// What kind of value something is said to hold: read, and not kept.
    fn kind_of_value(&mut self) -> Option<()> {
        let mark = self.grown.mark();
        self.splat_or(Self::expression)?;
        self.grown.drop_since(mark);
        Some(())
    }
}
