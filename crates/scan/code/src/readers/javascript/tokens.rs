//! Bytes to tokens: one at a time. What is not plainly JavaScript gives none.

/// What a token is. Operators that only differ in what they compute are one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token {
    Name,
    Private,
    Number,
    /// Where a text begins; the strings' reader takes it from there.
    Quote,
    Backquote,
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
    Dots,
    Arrow,
    Question,
    /// `?.`
    Chain,
    Equals,
    /// `+=` and its like.
    Extends,
    /// `??`, `||`, `&&` and the others between two values, by how tightly they bind.
    Binary(u8),
    /// `+` and `-`, which are also signs.
    Sign,
    /// `/`, or where a regular expression begins. Also `/=`.
    Slash,
    /// `++` and `--`.
    Step,
    /// `!` and `~`.
    Not,
    Word(Word),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word {
    Break,
    Case,
    Catch,
    Class,
    Const,
    Continue,
    Debugger,
    Default,
    Delete,
    Do,
    Else,
    Export,
    Extends,
    False,
    Finally,
    For,
    Function,
    If,
    Import,
    In,
    Instanceof,
    New,
    Null,
    Return,
    Super,
    Switch,
    This,
    Throw,
    True,
    Try,
    Typeof,
    Var,
    Void,
    While,
    With,
}

pub(super) const NULLISH: u8 = 1;
pub(super) const OR: u8 = 2;
pub(super) const AND: u8 = 3;
pub(super) const BITS_OR: u8 = 4;
pub(super) const BITS_XOR: u8 = 5;
pub(super) const BITS_AND: u8 = 6;
pub(super) const EQUALITY: u8 = 7;
pub(super) const RELATION: u8 = 8;
pub(super) const SHIFT: u8 = 9;
pub(super) const PLUS: u8 = 10;
pub(super) const TIMES: u8 = 11;
pub(super) const POWER: u8 = 12;

pub(super) struct Tokens<'s> {
    pub source: &'s str,
    pub bytes: &'s [u8],
    /// The token we are at.
    pub token: Token,
    pub start: usize,
    pub end: usize,
    /// Where the token before it ended.
    pub before: usize,
    /// Does it begin a line?
    pub on_new_line: bool,
}

impl<'s> Tokens<'s> {
    pub fn of(source: &'s str) -> Tokens<'s> {
        let bytes = source.as_bytes();
        Tokens { source, bytes, token: Token::Semicolon, start: 0, end: 0, before: 0, on_new_line: true }
    }

    pub fn byte(&self, at: usize) -> u8 {
        self.bytes.get(at).copied().unwrap_or(0)
    }

    pub fn text(&self) -> &'s [u8] {
        self.bytes.get(self.start..self.end).unwrap_or(&[])
    }

    /// On to the next token. `None`: this is not plainly JavaScript.
    pub fn advance(&mut self) -> Option<()> {
        self.before = self.end;
        self.on_new_line = false;
        let mut at = self.end;
        loop {
            match self.byte(at) {
                b' ' | b'\t' | 0x0b | 0x0c => at += 1,
                b'\n' | b'\r' => {
                    at += 1;
                    self.on_new_line = true;
                }
                b'/' if matches!(self.byte(at + 1), b'/' | b'*') => {
                    let end = comment_end(self.bytes, at)?;
                    self.on_new_line |= memchr::memchr2(b'\n', b'\r', &self.bytes[at..end]).is_some();
                    at = end;
                }
                _ => break,
            }
        }
        match self.byte(at) {
            0 if at >= self.bytes.len() => self.is(Token::End, at, at),
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'$' | 0x80.. => self.word(at),
            b'#' if is_word(self.byte(at + 1)) && !self.byte(at + 1).is_ascii_digit() => {
                let end = self.word_end(at + 1)?;
                self.is(Token::Private, at, end)
            }
            b'0'..=b'9' => self.number(at),
            b'.' if self.byte(at + 1).is_ascii_digit() => self.number(at),
            b'"' | b'\'' => self.is(Token::Quote, at, at + 1),
            b'`' => self.is(Token::Backquote, at, at + 1),
            _ => self.operator(at),
        }
    }

    fn is(&mut self, token: Token, start: usize, end: usize) -> Option<()> {
        (self.token, self.start, self.end) = (token, start, end);
        Some(())
    }

    fn word_end(&self, start: usize) -> Option<usize> {
        let mut at = start;
        let mut is_ascii = true;
        while is_word(self.byte(at)) {
            is_ascii &= self.byte(at) < 0x80;
            at += 1;
        }
        // `\u0065val` and letters that are no letters are for the parser to judge.
        let is_plain = |letter: char| letter.is_ascii() || letter.is_alphanumeric();
        let is_it = self.byte(at) != b'\\' && (is_ascii || self.source.get(start..at)?.chars().all(is_plain));
        is_it.then_some(at)
    }

    fn word(&mut self, start: usize) -> Option<()> {
        let end = self.word_end(start)?;
        self.is(keyword(&self.bytes[start..end]).map_or(Token::Name, Token::Word), start, end)
    }

    fn number(&mut self, start: usize) -> Option<()> {
        let mut at = start;
        let digits = |from: usize| {
            let mut at = from;
            while self.byte(at).is_ascii_digit() || self.byte(at) == b'_' && self.byte(at + 1).is_ascii_digit() {
                at += 1;
            }
            at
        };
        if self.byte(at) == b'0' && matches!(self.byte(at + 1) | 32, b'x' | b'o' | b'b') {
            at += 2;
            while self.byte(at).is_ascii_hexdigit() || self.byte(at) == b'_' {
                at += 1;
            }
        } else {
            at = digits(at);
            if self.byte(at) == b'.' {
                at = digits(at + 1);
            }
            if self.byte(at) | 32 == b'e' {
                at += 1;
                if matches!(self.byte(at), b'+' | b'-') {
                    at += 1;
                }
                at = digits(at);
            }
        }
        if self.byte(at) == b'n' {
            at += 1;
        }
        if is_word(self.byte(at)) {
            return None;
        }
        self.is(Token::Number, start, at)
    }

    fn operator(&mut self, at: usize) -> Option<()> {
        let rest = self.bytes.get(at..)?;
        let (token, length) = match rest {
            [b'(', ..] => (Token::Open, 1),
            [b')', ..] => (Token::Close, 1),
            [b'[', ..] => (Token::OpenSquare, 1),
            [b']', ..] => (Token::CloseSquare, 1),
            [b'{', ..] => (Token::OpenBrace, 1),
            [b'}', ..] => (Token::CloseBrace, 1),
            [b',', ..] => (Token::Comma, 1),
            [b':', ..] => (Token::Colon, 1),
            [b';', ..] => (Token::Semicolon, 1),
            [b'.', b'.', b'.', ..] => (Token::Dots, 3),
            [b'.', ..] => (Token::Dot, 1),
            [b'=', b'>', ..] => (Token::Arrow, 2),
            [b'=' | b'!', b'=', b'=', ..] => (Token::Binary(EQUALITY), 3),
            [b'=' | b'!', b'=', ..] => (Token::Binary(EQUALITY), 2),
            [b'=', ..] => (Token::Equals, 1),
            [b'!' | b'~', ..] => (Token::Not, 1),
            [b'?', b'?', b'=', ..] => (Token::Extends, 3),
            [b'?', b'?', ..] => (Token::Binary(NULLISH), 2),
            [b'?', b'.', digit, ..] if !digit.is_ascii_digit() => (Token::Chain, 2),
            [b'?', ..] => (Token::Question, 1),
            [b'|', b'|', b'=', ..] | [b'&', b'&', b'=', ..] => (Token::Extends, 3),
            [b'|', b'|', ..] => (Token::Binary(OR), 2),
            [b'&', b'&', ..] => (Token::Binary(AND), 2),
            // `<!--` begins a comment in some places, `-->` in others.
            [b'<', b'!', b'-', b'-', ..] | [b'-', b'-', b'>', ..] => return None,
            [b'>', b'>', b'>', b'=', ..] => (Token::Extends, 4),
            [b'>', b'>', b'>', ..] => (Token::Binary(SHIFT), 3),
            [b'<', b'<', b'=', ..] | [b'>', b'>', b'=', ..] | [b'*', b'*', b'=', ..] => (Token::Extends, 3),
            [b'<', b'<', ..] | [b'>', b'>', ..] => (Token::Binary(SHIFT), 2),
            [b'<' | b'>', b'=', ..] => (Token::Binary(RELATION), 2),
            [b'<' | b'>', ..] => (Token::Binary(RELATION), 1),
            [b'+', b'+', ..] | [b'-', b'-', ..] => (Token::Step, 2),
            [b'/', b'=', ..] => (Token::Slash, 2),
            [b'+' | b'-' | b'*' | b'%' | b'&' | b'|' | b'^', b'=', ..] => (Token::Extends, 2),
            [b'*', b'*', ..] => (Token::Binary(POWER), 2),
            [b'+' | b'-', ..] => (Token::Sign, 1),
            [b'/', ..] => (Token::Slash, 1),
            [b'*' | b'%', ..] => (Token::Binary(TIMES), 1),
            [b'&', ..] => (Token::Binary(BITS_AND), 1),
            [b'|', ..] => (Token::Binary(BITS_OR), 1),
            [b'^', ..] => (Token::Binary(BITS_XOR), 1),
            _ => return None,
        };
        self.is(token, at, at + length)
    }
}

pub(super) fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte >= 0x80
}

/// Where a comment ends. One that holds what ends a line for some readers is for the parser.
pub(super) fn comment_end(bytes: &[u8], start: usize) -> Option<usize> {
    let rest = bytes.get(start + 2..)?;
    let length = match bytes.get(start + 1)? {
        b'*' => memchr::memmem::find(rest, b"*/")? + 2,
        _ => memchr::memchr2(b'\n', b'\r', rest).unwrap_or(rest.len()),
    };
    let is_odd = |comment: &[u8]| {
        memchr::memmem::find(comment, b"\xe2\x80\xa8").is_some()
            || memchr::memmem::find(comment, b"\xe2\x80\xa9").is_some()
    };
    let comment = &rest[..length];
    (comment.is_ascii() || !is_odd(comment)).then_some(start + 2 + length)
}

fn keyword(text: &[u8]) -> Option<Word> {
    Some(match text {
        b"break" => Word::Break,
        b"case" => Word::Case,
        b"catch" => Word::Catch,
        b"class" => Word::Class,
        b"const" => Word::Const,
        b"continue" => Word::Continue,
        b"debugger" => Word::Debugger,
        b"default" => Word::Default,
        b"delete" => Word::Delete,
        b"do" => Word::Do,
        b"else" => Word::Else,
        b"export" => Word::Export,
        b"extends" => Word::Extends,
        b"false" => Word::False,
        b"finally" => Word::Finally,
        b"for" => Word::For,
        b"function" => Word::Function,
        b"if" => Word::If,
        b"import" => Word::Import,
        b"in" => Word::In,
        b"instanceof" => Word::Instanceof,
        b"new" => Word::New,
        b"null" => Word::Null,
        b"return" => Word::Return,
        b"super" => Word::Super,
        b"switch" => Word::Switch,
        b"this" => Word::This,
        b"throw" => Word::Throw,
        b"true" => Word::True,
        b"try" => Word::Try,
        b"typeof" => Word::Typeof,
        b"var" => Word::Var,
        b"void" => Word::Void,
        b"while" => Word::While,
        b"with" => Word::With,
        _ => return None,
    })
}
