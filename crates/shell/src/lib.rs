//! What a line for a shell, or the words of a command, would start.
//!
//! It steers what people are asked; it is never the wall. What it does not understand it says so, in `unclear`: whoever
//! judges a reading must treat that as a reason to ask. No I/O, no panics, and time that grows with the text.

mod arithmetic;
mod builtins;
mod code;
mod compound;
mod draft;
mod escapes;
mod holes;
mod interpreters;
mod launchers;
mod options;
mod parse;
mod printed;
mod read;
mod redirects;
mod simple;
mod sleeping;
mod start;
mod tools;
mod tree;
mod word;
mod words;

pub use simple::{Code, Origin, STANDARD, Script, Simple, quoted};
pub use word::{Piece, Word};

/// Longer texts are not read.
pub const LONGEST: usize = 256 * 1024;
/// Deeper nesting is not read: one level for each group, substitution or shell within a shell.
pub const DEEPEST: usize = 32;

/// All commands that would be started, as far as the text tells, and what it does not tell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// What stands in a substitution comes before the command it is part of.
    pub commands: Vec<Simple>,
    /// Sentences. Where there is one, `commands` may not be all.
    pub unclear: Vec<String>,
    /// There is something `unclear`, and it is no more than that commands run what those in their `fed_by` print.
    pub only_printed: bool,
}

/// A line or script, as bash would read it.
pub fn of_line(line: &str) -> Reading {
    read::line(line)
}

/// Words as they would be executed, without a shell between.
pub fn of_words(words: &[String]) -> Reading {
    read::words(words)
}
