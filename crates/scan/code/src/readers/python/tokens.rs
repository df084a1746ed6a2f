//! Bytes to tokens: one at a time, with lines and indentation. What is not plainly Python gives none.

/// What a token is. Operators that only differ in what they compute are one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token {
    Name,
    Integer,
    Float,
    /// Where a text begins; the strings' reader takes it from there.
    Text,
    Newline,
    Indent,
    Dedent,
    End,
    Open,
    Close,
    OpenSquare,
    CloseSquare,
    OpenBrace,
    CloseBrace,
    Comma,
    Colon,
    Semicolon,
    Dot,
    Ellipsis,
    Arrow,
    Walrus,
    Equals,
    /// `+=` and its like.
    Extends,
    Compares,
    Or,
    Xor,
    And,
    Shift,
    Plus,
    /// `-`, which is also a sign.
    Minus,
    Star,
    Times,
    At,
    StarStar,
    Slash,
    Tilde,
    Bang,
    Word(Word),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word {
    False,
    None,
    True,
    And,
    As,
    Assert,
    Async,
    Await,
    Break,
    Class,
    Continue,
    Def,
    Del,
    Elif,
    Else,
    Except,
    Finally,
    For,
    From,
    Global,
    If,
    Import,
    In,
    Is,
    Lambda,
    Nonlocal,
    Not,
    Or,
    Pass,
    Raise,
    Return,
    Try,
    While,
    With,
    Yield,
}

pub(super) struct Tokens<'s> {
    pub source: &'s str,
    pub bytes: &'s [u8],
    /// The token we are at.
    pub token: Token,
    pub start: usize,
    pub end: usize,
    /// Where the token before it ended.
    pub before: usize,
    /// Brackets that are open: within them, lines and indentation mean nothing.
    pub brackets: usize,
    indents: Vec<usize>,
    dedents: usize,
    at_line_start: bool,
}

impl<'s> Tokens<'s> {
    pub fn of(source: &'s str) -> Tokens<'s> {
        Tokens {
            source,
            bytes: source.as_bytes(),
            token: Token::Newline,
            start: 0,
            end: 0,
            before: 0,
            brackets: 0,
            indents: vec![0],
            dedents: 0,
            at_line_start: true,
        }
    }

    pub fn byte(&self, at: usize) -> u8 {
        self.bytes.get(at).copied().unwrap_or(0)
    }

    pub fn text(&self) -> &'s [u8] {
        self.bytes.get(self.start..self.end).unwrap_or(&[])
    }

    /// On to the next token. `None`: this is not plainly Python.
    pub fn advance(&mut self) -> Option<()> {
        self.before = self.end;
        if self.dedents > 0 {
            self.dedents -= 1;
            return self.is(Token::Dedent, self.start, self.end);
        }
        if self.at_line_start && self.brackets == 0 {
            self.at_line_start = false;
            if let Some(token) = self.line_start()? {
                return self.is(token, self.end, self.end);
            }
        }
        let mut at = self.end;
        loop {
            match self.byte(at) {
                b' ' | b'\t' | 0x0c => at += 1,
                b'\n' if self.brackets > 0 => at += 1,
                b'\r' if self.byte(at + 1) == b'\n' && self.brackets > 0 => at += 2,
                b'\\' if self.byte(at + 1) == b'\n' => at += 2,
                b'\\' if self.byte(at + 1) == b'\r' && self.byte(at + 2) == b'\n' => at += 3,
                b'#' => at = self.line_end(at)?,
                _ => break,
            }
        }
        let start = at;
        match self.byte(at) {
            b'\n' => {
                self.at_line_start = true;
                self.is(Token::Newline, start, at + 1)
            }
            b'\r' if self.byte(at + 1) == b'\n' => {
                self.at_line_start = true;
                self.is(Token::Newline, start, at + 2)
            }
            0 if at >= self.bytes.len() => {
                if self.brackets > 0 {
                    return None;
                }
                // A last line without an end.
                if !matches!(self.token, Token::Newline | Token::Dedent | Token::End) {
                    self.at_line_start = true;
                    return self.is(Token::Newline, start, start);
                }
                self.is(Token::End, start, start)
            }
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | 0x80.. => self.word(start),
            b'0'..=b'9' => self.number(start),
            b'.' if self.byte(at + 1).is_ascii_digit() => self.number(start),
            b'"' | b'\'' => self.is(Token::Text, start, start),
            _ => self.operator(start),
        }
    }

    fn is(&mut self, token: Token, start: usize, end: usize) -> Option<()> {
        (self.token, self.start, self.end) = (token, start, end);
        Some(())
    }

    fn line_end(&self, from: usize) -> Option<usize> {
        let rest = self.bytes.get(from..)?;
        let mut length = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
        if length > 0 && rest.get(length - 1) == Some(&b'\r') {
            length -= 1;
        }
        // Other ends of lines mean different things to different readers.
        (!rest[..length].contains(&b'\r')).then_some(from + length)
    }

    /// Past lines that hold nothing; what the indentation of the first that does means.
    fn line_start(&mut self) -> Option<Option<Token>> {
        let mut at = self.end;
        let mut column = 0;
        loop {
            match self.byte(at) {
                b' ' => (at, column) = (at + 1, column + 1),
                b'\t' => (at, column) = (at + 1, column + 8),
                0x0c => (at, column) = (at + 1, 0),
                b'\n' => (at, column) = (at + 1, 0),
                b'\r' if self.byte(at + 1) == b'\n' => (at, column) = (at + 2, 0),
                b'#' => at = self.line_end(at)?,
                b'\\' | b'\r' => return None,
                _ => break,
            }
        }
        if at >= self.bytes.len() {
            column = 0;
        }
        self.end = at;
        let current = self.indents.last().copied().unwrap_or(0);
        if column > current {
            self.indents.push(column);
            return Some(Some(Token::Indent));
        }
        let mut ended = 0;
        while self.indents.last().is_some_and(|indent| *indent > column) {
            self.indents.pop();
            ended += 1;
        }
        if self.indents.last() != Some(&column) {
            return None;
        }
        self.dedents = usize::saturating_sub(ended, 1);
        Some((ended > 0).then_some(Token::Dedent))
    }

    fn word(&mut self, start: usize) -> Option<()> {
        let mut at = start;
        while is_word(self.byte(at)) {
            at += 1;
        }
        if self.bytes[start..at].iter().any(|byte| *byte >= 0x80) {
            // Letters that are no letters are for the parser to judge.
            let is_plain = |letter: char| letter == '_' || letter.is_alphanumeric();
            if !self.source.get(start..at)?.chars().all(is_plain) {
                return None;
            }
            return self.is(Token::Name, start, at);
        }
        let text = &self.bytes[start..at];
        if at - start <= 2 && matches!(self.byte(at), b'"' | b'\'') {
            let is_prefix = text.iter().all(|byte| b"rbuf".contains(&(byte | 32)));
            return is_prefix.then(|| self.is(Token::Text, start, start)).flatten();
        }
        self.is(keyword(text).map_or(Token::Name, Token::Word), start, at)
    }

    fn number(&mut self, start: usize) -> Option<()> {
        let mut at = start;
        let mut is_float = false;
        if self.byte(at) == b'0' && matches!(self.byte(at + 1) | 32, b'x' | b'o' | b'b') {
            at += 2;
            while self.byte(at).is_ascii_hexdigit() || self.byte(at) == b'_' {
                at += 1;
            }
        } else {
            at = self.digits(at);
            if self.byte(at) == b'.' {
                is_float = true;
                at = self.digits(at + 1);
            }
            if self.byte(at) | 32 == b'e' {
                is_float = true;
                at += 1;
                if matches!(self.byte(at), b'+' | b'-') {
                    at += 1;
                }
                if !self.byte(at).is_ascii_digit() {
                    return None;
                }
                at = self.digits(at);
            }
            if self.byte(at) | 32 == b'j' {
                at += 1;
            }
        }
        if is_word(self.byte(at)) {
            return None;
        }
        self.is(if is_float { Token::Float } else { Token::Integer }, start, at)
    }

    fn digits(&self, from: usize) -> usize {
        let mut at = from;
        while self.byte(at).is_ascii_digit() || self.byte(at) == b'_' && self.byte(at + 1).is_ascii_digit() {
            at += 1;
        }
        at
    }

    fn operator(&mut self, at: usize) -> Option<()> {
        let (second, third) = (self.byte(at + 1), self.byte(at + 2));
        let (token, length) = match (self.byte(at), second) {
            (b'(', _) => (Token::Open, 1),
            (b')', _) => (Token::Close, 1),
            (b'[', _) => (Token::OpenSquare, 1),
            (b']', _) => (Token::CloseSquare, 1),
            (b'{', _) => (Token::OpenBrace, 1),
            (b'}', _) => (Token::CloseBrace, 1),
            (b',', _) => (Token::Comma, 1),
            (b':', b'=') => (Token::Walrus, 2),
            (b':', _) => (Token::Colon, 1),
            (b';', _) => (Token::Semicolon, 1),
            (b'.', b'.') if third == b'.' => (Token::Ellipsis, 3),
            (b'.', _) => (Token::Dot, 1),
            (b'-', b'>') => (Token::Arrow, 2),
            (b'=' | b'!' | b'<' | b'>', b'=') => (Token::Compares, 2),
            (b'=', _) => (Token::Equals, 1),
            (b'!', _) => (Token::Bang, 1),
            (b'<', b'<') | (b'>', b'>') if third == b'=' => (Token::Extends, 3),
            (b'<', b'<') | (b'>', b'>') => (Token::Shift, 2),
            (b'<', b'>') => return None,
            (b'<' | b'>', _) => (Token::Compares, 1),
            (b'*', b'*') | (b'/', b'/') if third == b'=' => (Token::Extends, 3),
            (b'+' | b'-' | b'*' | b'/' | b'%' | b'@' | b'&' | b'|' | b'^', b'=') => (Token::Extends, 2),
            (b'*', b'*') => (Token::StarStar, 2),
            (b'/', b'/') => (Token::Times, 2),
            (b'/', _) => (Token::Slash, 1),
            (b'*', _) => (Token::Star, 1),
            (b'%', _) => (Token::Times, 1),
            (b'@', _) => (Token::At, 1),
            (b'+', _) => (Token::Plus, 1),
            (b'-', _) => (Token::Minus, 1),
            (b'|', _) => (Token::Or, 1),
            (b'^', _) => (Token::Xor, 1),
            (b'&', _) => (Token::And, 1),
            (b'~', _) => (Token::Tilde, 1),
            _ => return None,
        };
        match token {
            Token::Open | Token::OpenSquare | Token::OpenBrace => self.brackets += 1,
            Token::Close | Token::CloseSquare | Token::CloseBrace => self.brackets = self.brackets.checked_sub(1)?,
            _ => {}
        }
        self.is(token, at, at + length)
    }
}

pub(super) fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

fn keyword(text: &[u8]) -> Option<Word> {
    Some(match text {
        b"False" => Word::False,
        b"None" => Word::None,
        b"True" => Word::True,
        b"and" => Word::And,
        b"as" => Word::As,
        b"assert" => Word::Assert,
        b"async" => Word::Async,
        b"await" => Word::Await,
        b"break" => Word::Break,
        b"class" => Word::Class,
        b"continue" => Word::Continue,
        b"def" => Word::Def,
        b"del" => Word::Del,
        b"elif" => Word::Elif,
        b"else" => Word::Else,
        b"except" => Word::Except,
        b"finally" => Word::Finally,
        b"for" => Word::For,
        b"from" => Word::From,
        b"global" => Word::Global,
        b"if" => Word::If,
        b"import" => Word::Import,
        b"in" => Word::In,
        b"is" => Word::Is,
        b"lambda" => Word::Lambda,
        b"nonlocal" => Word::Nonlocal,
        b"not" => Word::Not,
        b"or" => Word::Or,
        b"pass" => Word::Pass,
        b"raise" => Word::Raise,
        b"return" => Word::Return,
        b"try" => Word::Try,
        b"while" => Word::While,
        b"with" => Word::With,
        b"yield" => Word::Yield,
        _ => return None,
    })
}
