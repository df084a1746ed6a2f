//! Known secrets by name. What is redacted is each value in every form in which programs usually print it.

mod encodings;

use std::fmt;

use crate::needles::Breaks;

/// Shorter values occur in ordinary text by chance.
pub const SHORTEST: usize = 8;
/// Whoever insists may have these redacted too.
pub const SHORTEST_ANYWAY: usize = 4;
/// Longer values are looked for piece by piece.
const PIECE: usize = 2048;
/// A value that has this many bytes is none.
pub const LONGEST: usize = 1 << 20;
/// Lines of a value that are looked for on their own.
const LINE: usize = 20;

/// What became of a value. Whoever adds one must look: a value that is refused will be shown.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Added {
    /// It will not be shown.
    Kept,
    /// Not looked for: so short that ordinary text would have it.
    TooShort,
    /// Not looked for: a word or number that ordinary text is full of.
    TooCommon,
    /// Not looked for: longer than any secret.
    TooLong,
}

/// Named secrets. Says nothing of their values, not even to a debugger.
#[derive(Clone, Default)]
pub struct Values {
    names: Vec<String>,
    pub(crate) forms: Vec<Form>,
}

/// One way to write a value.
#[derive(Clone)]
pub(crate) struct Form {
    pub bytes: Vec<u8>,
    pub name: u32,
    /// Base64 without the letter at its end that depends on what follows.
    pub open_end: bool,
    pub breaks: Breaks,
}

impl fmt::Debug for Values {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Values({} names)", self.names.len())
    }
}

impl Values {
    pub fn new() -> Values {
        Values::default()
    }

    /// A value that shall not be shown; its name stands in its place. A line break at its end is no part of it.
    pub fn add(&mut self, name: &str, value: &[u8]) -> Added {
        let value = trimmed(value);
        if value.len() < SHORTEST {
            return Added::TooShort;
        }
        if is_common(value) {
            return Added::TooCommon;
        }
        self.add_anyway(name, value)
    }

    /// The same for values that are short or common: ordinary text may suffer.
    pub fn add_anyway(&mut self, name: &str, value: &[u8]) -> Added {
        let value = trimmed(value);
        if value.len() < SHORTEST_ANYWAY {
            return Added::TooShort;
        }
        if value.len() > LONGEST {
            return Added::TooLong;
        }
        let number = self.names.len() as u32;
        self.names.push(shown(name, value, number));
        if value.len() <= PIECE {
            self.forms.extend(encodings::of(value, number));
        } else {
            // The last piece reaches back, so that none is short.
            let pieces = value.len().div_ceil(PIECE);
            for piece in 0..pieces {
                let start = (piece * PIECE).min(value.len() - PIECE);
                self.forms.extend(encodings::of(&value[start..start + PIECE], number));
            }
        }
        for line in value.split(|letter| matches!(letter, b'\n' | b'\r')) {
            let line = line.trim_ascii();
            if line.len() >= LINE && line.len() < value.len() && line.len() <= PIECE && !is_header(line) {
                self.forms.extend(encodings::of(line, number));
            }
        }
        Added::Kept
    }

    pub fn is_empty(&self) -> bool {
        self.forms.is_empty()
    }

    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }
}

fn trimmed(value: &[u8]) -> &[u8] {
    let end = value.iter().rposition(|letter| !matches!(letter, b'\n' | b'\r')).map_or(0, |last| last + 1);
    &value[..end]
}

/// Names stand in output: no letter of theirs may do more than that, and none may tell the value.
fn shown(name: &str, value: &[u8], number: u32) -> String {
    let plain: String = name
        .chars()
        .take(64)
        .map(|letter| if letter.is_ascii_alphanumeric() || "_-./".contains(letter) { letter } else { '_' })
        .collect();
    let tells = memchr::memmem::find(plain.as_bytes(), value).is_some();
    if plain.is_empty() || tells { format!("secret-{}", number + 1) } else { plain }
}

fn is_header(line: &[u8]) -> bool {
    line.starts_with(b"-----") || line.starts_with(b"Proc-Type:") || line.starts_with(b"Comment:")
}

/// Values that are settings rather than secrets.
fn is_common(value: &[u8]) -> bool {
    const WORDS: &[&str] = &[
        "password", "passw0rd", "localhost", "production", "development", "undefined", "username", "changeme",
        "redacted", "disabled", "enabled", "required", "optional", "default", "anonymous", "postgres", "postgresql",
        "internal", "external", "testtest", "test1234", "password1", "password123", "administrator", "example.com",
        "127.0.0.1", "0.0.0.0", "application/json", "text/plain", "/bin/bash", "/usr/bin", "/usr/local/bin",
        "https://", "http://", "xterm-256color", "en_us.utf-8", "c.utf-8", "truecolor",
    ];
    let small = value.to_ascii_lowercase();
    let one_letter = value.iter().all(|letter| *letter == value[0]);
    let few_digits = value.len() < 10 && value.iter().all(u8::is_ascii_digit);
    let all_spaces = value.iter().all(u8::is_ascii_whitespace);
    WORDS.iter().any(|word| word.as_bytes() == small) || one_letter || few_digits || all_spaces
}
