//! A line as the grammar sees it.

use crate::Word;

/// Pipelines, in the order in which they stand. What joins them decides whether they run, so it is not kept.
pub(crate) type List = Vec<Pipeline>;
pub(crate) type Pipeline = Vec<Command>;

pub(crate) enum Command {
    Simple(Plain),
    /// A group, loop or choice: words it holds, and the lists that it may run.
    Compound(Compound),
}

pub(crate) struct Plain {
    pub assignments: Vec<(String, Written)>,
    pub words: Vec<Written>,
    pub redirects: Vec<Redirect>,
}

#[derive(Default)]
pub(crate) struct Compound {
    /// Beside the shell, which writes to it and reads from it.
    pub is_coprocess: bool,
    /// Of a function, whose body runs later, if at all.
    pub function: Option<String>,
    /// Of a loop.
    pub variable: Option<String>,
    pub words: Vec<Written>,
    pub bodies: Vec<List>,
    pub redirects: Vec<Redirect>,
}

/// A word with what runs when it is expanded.
pub(crate) struct Written {
    pub word: Word,
    pub runs: Vec<Run>,
    /// Variables it holds.
    pub variables: Vec<String>,
}

/// A list within a word.
pub(crate) struct Run {
    pub list: List,
    pub flows: Flows,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flows {
    /// `$(…)`, `` `…` `` and `<(…)`: what it prints reaches the command.
    In,
    /// `>(…)`: what the command prints reaches it.
    Out,
}

pub(crate) struct Redirect {
    pub kind: Kind,
    /// Is it about the input that everything reads by default?
    pub is_stdin: bool,
    pub target: Target,
}

pub(crate) enum Target {
    Word(Written),
    /// A here-document, by its number: it is read later than the redirection.
    Here(usize),
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Read,
    Write,
    ReadWrite,
    /// To or from a descriptor.
    Duplicate,
    /// The word, or the document, is the input.
    Text,
}
