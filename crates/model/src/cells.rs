//! Code that keeps its variables: contexts in a sandbox that is open, and cells that are run in them.

use std::os::fd::OwnedFd;

use serde::{Deserialize, Serialize};

use crate::{KeptSandbox, Outcome, Trouble};

/// Of the code of one cell, in bytes: as long as a word of a command may be, because as one it is judged.
pub const MOST_CODE: usize = 128 * 1024 - 1;
/// Of one representation of a result, in bytes.
pub const MOST_PART: usize = 8 << 20;
/// Of all that one cell results in: bytes, and representations.
pub const MOST_RESULT_BYTES: usize = 16 << 20;
pub const MOST_PARTS: usize = 1024;
/// In one sandbox.
pub const MOST_CONTEXTS: usize = 16;
/// Of a context's name.
const LONGEST_NAME: usize = 64;

/// Languages whose interpreters keep what one cell leaves for the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CellLanguage {
    Python,
    Javascript,
    Bash,
}

impl CellLanguage {
    pub const ALL: [CellLanguage; 3] = [CellLanguage::Python, CellLanguage::Javascript, CellLanguage::Bash];

    /// Also the name of the context that is used where none is named.
    pub fn name(self) -> &'static str {
        match self {
            CellLanguage::Python => "python",
            CellLanguage::Javascript => "javascript",
            CellLanguage::Bash => "bash",
        }
    }

    pub fn named(name: &str) -> Option<CellLanguage> {
        CellLanguage::ALL.into_iter().find(|language| language.name() == name)
    }
}

/// Letters, digits, `-`, `_` and `.`.
pub fn is_context_name(name: &str) -> bool {
    let known = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    (1..=LONGEST_NAME).contains(&name.len()) && name.chars().all(known)
}

/// Code to run in a context.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cell {
    pub language: CellLanguage,
    /// The program that runs it, as it is found on the way that the asker has.
    pub program: String,
    pub code: String,
    /// Nothing: the one that bears the language's name.
    pub context: Option<String>,
    pub makes: Makes,
}

impl Cell {
    pub fn context(&self) -> &str {
        self.context.as_deref().unwrap_or(self.language.name())
    }
}

/// Whether a context is made that is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Makes {
    /// What was kept there may be gone, and whoever asks shall learn of it.
    Never,
    IfMissing,
    /// It must be new.
    Always,
}

/// A context as people and programs see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextShown {
    pub name: String,
    pub language: CellLanguage,
    /// A cell runs in it at this moment.
    pub busy: bool,
    /// How many cells there were.
    pub cells: u64,
    /// Seconds since 1970.
    pub created: u64,
}

/// What can be done to a context besides running a cell in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ContextDeed {
    /// What runs in it is to stop; its variables stay.
    Interrupt,
    End,
}

/// What a representation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PartKind {
    Text,
    Html,
    Markdown,
    Latex,
    Svg,
    Json,
    Png,
    Jpeg,
    /// A figure as plotly's own JSON.
    Plotly,
}

impl PartKind {
    pub const ALL: [PartKind; 9] = [
        PartKind::Text,
        PartKind::Html,
        PartKind::Markdown,
        PartKind::Latex,
        PartKind::Svg,
        PartKind::Json,
        PartKind::Png,
        PartKind::Jpeg,
        PartKind::Plotly,
    ];

    pub fn name(self) -> &'static str {
        match self {
            PartKind::Text => "text",
            PartKind::Html => "html",
            PartKind::Markdown => "markdown",
            PartKind::Latex => "latex",
            PartKind::Svg => "svg",
            PartKind::Json => "json",
            PartKind::Png => "png",
            PartKind::Jpeg => "jpeg",
            PartKind::Plotly => "plotly",
        }
    }

    /// Its bytes are no text.
    pub fn is_binary(self) -> bool {
        matches!(self, PartKind::Png | PartKind::Jpeg)
    }

    /// Its bytes are JSON.
    pub fn is_json(self) -> bool {
        matches!(self, PartKind::Json | PartKind::Plotly)
    }
}

/// Something that a cell resulted in, in all the ways that it can be shown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellResult {
    /// It is the value of the last expression, rather than something that was shown on the way.
    pub value: bool,
    pub parts: Vec<CellPart>,
}

/// One way to show it. Of what is no text, `data` is in base64.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellPart {
    pub kind: PartKind,
    pub data: String,
}

/// Why a cell did not come to its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellError {
    pub name: String,
    pub value: String,
    pub traceback: String,
}

/// What came of a cell, besides what is said of every run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellAnswer {
    pub context: String,
    pub language: CellLanguage,
    /// It was made for this cell: there were no variables before it.
    pub fresh: bool,
    /// It is still there, with its variables.
    pub kept: bool,
    /// Why it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost: Option<String>,
    /// Which cell of the context this was, from one.
    pub number: u64,
    /// Somebody, or the time-out, stopped it.
    pub interrupted: bool,
    pub results: Vec<CellResult>,
    /// Representations that were too large or too many, or that a secret made unusable.
    pub left_out: u64,
    /// Secrets that were taken out of results and of the error.
    pub redacted: u64,
    pub error: Option<CellError>,
}

/// A cell that got as far as being judged.
#[derive(Clone, Debug, PartialEq)]
pub struct CellDone {
    pub outcome: Outcome,
    /// Nothing, if it did not run.
    pub answer: Option<CellAnswer>,
}

/// Why there is no cell at all, or nothing was done to a context.
#[derive(Clone, Debug, PartialEq)]
pub enum CellNot {
    /// The sandbox is not open.
    Closed(Trouble),
    /// There is no such context.
    NoContext(Trouble),
    /// It is there, and something is in the way.
    Conflict(Trouble),
    /// What was asked can't be.
    Wrong(Trouble),
    Trouble(Trouble),
}

/// Something that was told of a cell. What comes from inside is a claim.
#[derive(Clone, Debug, PartialEq)]
pub enum CellNews {
    /// By the host: the context is there.
    Begun {
        fresh: bool,
        number: u64,
    },
    Part {
        result: u32,
        value: bool,
        kind: PartKind,
        bytes: Vec<u8>,
    },
    Failed(CellError),
    Done {
        interrupted: bool,
        left_out: u64,
    },
    /// By whoever watches over it: the context is gone.
    Lost(String),
}

pub trait CellHears {
    fn hear(&mut self, news: CellNews);
}

/// For a backend: a cell that was judged.
pub struct CellWork {
    pub context: String,
    pub language: CellLanguage,
    pub makes: Makes,
    /// What the interpreter is told in place of the code, if the context is to be made: code of ours, which takes cells.
    pub kernel: Vec<String>,
    pub code: String,
    /// With this, the code is ours too, and deals with the variables of the context.
    pub parcel: Option<Parcel>,
    pub hears: Box<dyn CellHears>,
}

/// Variables that go from one context to others: bytes that whoever is outside never looks at.
pub struct Parcel {
    pub deed: ParcelDeed,
    pub bytes: OwnedFd,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParcelDeed {
    /// Write them; there is room for so many bytes.
    Save(u64),
    /// Read them. They come over `bytes`, in one message, when they are whole: the context may start meanwhile.
    Load,
}

/// A variable that did not go along, and why. Both are claims of the context's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftBehind {
    pub name: String,
    pub why: String,
}

/// What came of forking a context, or of taking its variables up.
#[derive(Clone, Debug, PartialEq)]
pub struct Branched {
    pub outcome: Outcome,
    /// Nothing, if nothing was written or read.
    pub answer: Option<CellAnswer>,
    /// Sandboxes that begin where this one is. None of them is left if the variables were not written.
    pub forks: Vec<KeptSandbox>,
    pub left: Vec<LeftBehind>,
}

impl Branched {
    /// The context said that it did all of it, and goes on.
    pub fn is_whole(&self) -> bool {
        let ran = matches!(&self.outcome, Outcome::Ran(finished) if finished.overrun.is_none());
        ran && self.answer.as_ref().is_some_and(|answer| answer.kept && answer.error.is_none() && !answer.interrupted)
    }
}
