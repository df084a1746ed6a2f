//! Work on the files of a sandbox, from outside and yet behind its walls: what is asked, and what comes of it.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::{Outcome, Shown, ThingKind};

/// Of one file that is read or written, in bytes.
pub const MOST_FILE_BYTES: u64 = 64 << 20;
/// Of all that goes into or out of an archive: entries, and bytes.
pub const MOST_ARCHIVED: u64 = 50_000;
pub const MOST_ARCHIVED_BYTES: u64 = 128 << 20;
/// Entries of a list, matches of a search, folders that are watched, names that are removed.
pub const MOST_LISTED_FILES: u64 = 10_000;
pub const MOST_MATCHES: u64 = 2_000;
pub const MOST_WATCHED: u64 = 1_000;
pub const MOST_REMOVED: u64 = 1_000_000;

/// What is to be done. Paths start in the first workspace of the sandbox, or at its root if they begin with `/`; they lead where
/// they would lead a command inside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum FileOperation {
    /// From this byte on, so many, or all.
    Read {
        path: String,
        #[serde(default)]
        from: u64,
        length: Option<u64>,
    },
    /// All of a file, which is new or takes the place of what was there, at once. What comes as input is written.
    Write {
        path: String,
        /// Permission bits; else those of what was there, or of a new file.
        mode: Option<u32>,
        #[serde(default)]
        only: OnlyIf,
        /// Folders that lead to it are made.
        #[serde(default)]
        parents: bool,
    },
    List {
        path: String,
        /// 1: only what is in it.
        depth: u64,
    },
    Stat {
        path: String,
        /// Of what a link leads to, rather than of the link.
        #[serde(default)]
        follow: bool,
    },
    MakeFolder {
        path: String,
        #[serde(default)]
        parents: bool,
    },
    Move {
        path: String,
        to: String,
        /// What is there may go.
        #[serde(default)]
        replace: bool,
    },
    Remove {
        path: String,
        /// A folder, with everything in it.
        #[serde(default)]
        recursive: bool,
    },
    Search {
        path: String,
        pattern: String,
        #[serde(default)]
        regex: bool,
        #[serde(default)]
        ignore_case: bool,
        /// Only files with such names: `*.py`.
        names: Option<String>,
        most: Option<u64>,
    },
    /// A folder and all that is in it, or a file, as an archive (tar).
    Pack { path: String },
    /// An archive (tar) that comes as input, into a folder that is there.
    Unpack { path: String },
    /// What happens in a folder, as lines of JSON on standard output, until somebody ends it.
    Watch {
        path: String,
        #[serde(default)]
        recursive: bool,
    },
}

/// When a file is written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnlyIf {
    #[default]
    Always,
    /// Nothing is there.
    New,
    /// What is there has this BLAKE3.
    Digest(String),
}

impl FileOperation {
    pub fn name(&self) -> &'static str {
        match self {
            FileOperation::Read { .. } => "read",
            FileOperation::Write { .. } => "write",
            FileOperation::List { .. } => "list",
            FileOperation::Stat { .. } => "stat",
            FileOperation::MakeFolder { .. } => "make-folder",
            FileOperation::Move { .. } => "move",
            FileOperation::Remove { .. } => "remove",
            FileOperation::Search { .. } => "search",
            FileOperation::Pack { .. } => "pack",
            FileOperation::Unpack { .. } => "unpack",
            FileOperation::Watch { .. } => "watch",
        }
    }

    pub fn path(&self) -> &str {
        match self {
            FileOperation::Read { path, .. }
            | FileOperation::Write { path, .. }
            | FileOperation::List { path, .. }
            | FileOperation::Stat { path, .. }
            | FileOperation::MakeFolder { path, .. }
            | FileOperation::Move { path, .. }
            | FileOperation::Remove { path, .. }
            | FileOperation::Search { path, .. }
            | FileOperation::Pack { path }
            | FileOperation::Unpack { path }
            | FileOperation::Watch { path, .. } => path,
        }
    }

    /// Whether something is different afterwards.
    pub fn changes(&self) -> bool {
        match self {
            FileOperation::Write { .. }
            | FileOperation::MakeFolder { .. }
            | FileOperation::Move { .. }
            | FileOperation::Remove { .. }
            | FileOperation::Unpack { .. } => true,
            FileOperation::Read { .. }
            | FileOperation::List { .. }
            | FileOperation::Stat { .. }
            | FileOperation::Search { .. }
            | FileOperation::Pack { .. }
            | FileOperation::Watch { .. } => false,
        }
    }
}

/// What a path leads to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FileEntry {
    pub path: Shown,
    pub kind: ThingKind,
    /// Permission bits.
    pub mode: u32,
    pub size: u64,
    /// Seconds since 1970.
    pub modified: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<Shown>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FileMatch {
    pub path: Shown,
    pub line: u64,
    /// In bytes, from 1.
    pub column: u64,
    /// The line, or its beginning, without secrets.
    pub text: String,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FileEvent {
    pub path: Shown,
    pub change: FileChange,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FileChange {
    Made,
    Changed,
    Removed,
    /// More happened than is told.
    Missed,
}

/// What came of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct FileAnswer {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub entries: Vec<FileEntry>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub matches: Vec<FileMatch>,
    /// Entries, matches, or what was changed.
    pub count: u64,
    /// Bytes that were read, written or looked at.
    pub bytes: u64,
    /// What was left out because it is no text, no file, or too large.
    #[serde(skip_serializing_if = "is_zero")]
    pub skipped: u64,
    /// There is more.
    pub cut: bool,
    /// BLAKE3 of a whole file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Secrets that were taken out of it.
    pub redacted: u64,
    /// Of a file that was read, or of an archive.
    #[serde(skip)]
    pub content: Vec<u8>,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Why nothing came of it.
#[derive(Clone, Debug, PartialEq)]
pub enum FilesNot {
    /// The sandbox could not be entered.
    Entered(Box<Outcome>),
    Done(FileFailure),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileFailure {
    pub kind: FileTrouble,
    pub message: String,
    pub fix: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileTrouble {
    NotThere,
    Exists,
    /// It is not what it was said to be.
    Differs,
    /// No file, or no folder.
    WrongKind,
    /// The walls, or its mode.
    Denied,
    TooLarge,
    NoRoom,
    /// What was asked can't be.
    Wrong,
    /// It takes too long.
    TooLong,
    /// Who did it was ended from inside, or said something that means nothing.
    Broken,
}

/// Something that whoever works inside told.
#[derive(Clone, Debug, PartialEq)]
pub enum FileNews {
    Content(Vec<u8>),
    Entry(FileEntry),
    Match(FileMatch),
    Event(FileEvent),
    Done {
        count: u64,
        bytes: u64,
        skipped: u64,
        cut: bool,
        digest: Option<String>,
    },
    Failed(FileFailure),
    /// No such thing was told: it can't be believed.
    Nonsense,
}

/// Hears what is told. What it puts out goes to the caller's output.
pub trait FileHears {
    fn hear(&mut self, news: FileNews, out: &mut Vec<u8>);
}

/// For a backend.
pub struct FileWork {
    pub operation: FileOperation,
    /// Where paths start.
    pub directory: PathBuf,
    /// How much comes as input.
    pub length: u64,
    pub hears: Box<dyn FileHears>,
}
