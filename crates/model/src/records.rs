//! The record of everything that happened, as it is read and checked: plain data, and the seam to it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Trouble;

/// What front-ends ask of the record. It has no function that removes an entry.
pub trait Records {
    /// The newest `most` of those that are asked for, in their order.
    fn newest(&self, query: &EntryQuery, most: usize) -> Result<Vec<Entry>, Trouble>;
    /// All of them in their order, until `each` says no.
    fn each(&self, query: &EntryQuery, each: &mut dyn FnMut(Entry) -> bool) -> Result<(), Trouble>;
    /// The same, and then those that are still to come.
    fn follow(&self, query: &EntryQuery, each: &mut dyn FnMut(Entry) -> bool) -> Result<(), Trouble>;
    fn verify(&self, against: &Against) -> Result<Soundness, Trouble>;
    /// The statement that a run ended with, under its signature. `which`: the start of its id, or `last`.
    fn receipt(&self, which: &str) -> Result<Value, Trouble>;
    /// What is said under a signature, if this key signed it; else that of this user's record.
    fn open_receipt(&self, envelope: &Value, key: Option<&Path>) -> Result<Value, Trouble>;
    /// The key that signs; made, if there is none yet.
    fn key(&self) -> Result<KeyShown, Trouble>;
    /// Moves whole segments whose entries are all older.
    fn archive(&self, older_than: Duration, folder: &Path, only_tell: bool) -> Result<Archived, Trouble>;
    /// Who is told checkpoints, and how many of them they could not be told yet.
    fn anchors(&self) -> Result<Vec<(Anchor, usize)>, Trouble>;
    fn add_anchor(&self, anchor: &Anchor) -> Result<(), Trouble>;
    /// Whether there was such a one.
    fn remove_anchor(&self, anchor: &Anchor) -> Result<bool, Trouble>;
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    #[serde(rename = "n")]
    pub number: u64,
    pub at: String,
    /// Words with dots between them, such as `run.ended`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Whether something was refused.
    #[serde(default, skip_serializing_if = "is_false")]
    pub denied: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    #[serde(default)]
    pub data: Value,
    /// The chain up to here.
    #[serde(default)]
    pub hash: String,
}

fn is_false(value: &bool) -> bool {
    !*value
}

/// Which entries. All that is said must be so.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EntryQuery {
    /// The start of an id is enough.
    pub run: Option<String>,
    pub user: Option<String>,
    pub agent: Option<String>,
    pub denied: bool,
    /// Any of these: whole kinds, or first words of them (`run` for `run.ended`).
    pub kinds: Vec<String>,
    /// None of these.
    pub except: Vec<String>,
    /// From this time on and up to this one, written as in entries; the start of a time will do.
    pub since: Option<String>,
    pub until: Option<String>,
    /// Entries after this one only.
    pub after: u64,
}

/// What the record is checked against that does not lie beside it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Against {
    /// The key that must have signed; else the one beside the record.
    pub key: Option<PathBuf>,
    /// Files of checkpoints that anchors kept.
    pub anchors: Vec<PathBuf>,
    /// Folders with segments that were moved away.
    pub archives: Vec<PathBuf>,
    /// Instead of this user's own.
    pub folder: Option<PathBuf>,
}

/// Something that is not as it was written.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(tag = "fault", rename_all = "kebab-case")]
pub enum Fault {
    /// Its bytes are not those that were hashed.
    Edited {
        entry: u64,
        segment: u64,
        line: u64,
    },
    /// It is whole, but the next one names another in its place.
    Replaced {
        entry: u64,
        segment: u64,
    },
    Missing {
        from: u64,
        to: u64,
    },
    /// It stands elsewhere than it was written.
    Moved {
        entry: u64,
        segment: u64,
        line: u64,
    },
    /// It stands there twice.
    Repeated {
        entry: u64,
        segment: u64,
        line: u64,
    },
    /// A line that is no entry.
    Foreign {
        segment: u64,
        line: u64,
        after: u64,
    },
    /// The note of the last writer knows of later entries.
    Truncated {
        from: u64,
        to: u64,
    },
    /// A checkpoint whose signature or head is not right: what is before it was made anew.
    Signature {
        entry: u64,
        segment: u64,
        why: String,
    },
    /// Too many entries without a checkpoint: no writer of ours leaves so many.
    Unsigned {
        from: u64,
        to: u64,
    },
    /// An anchor has a checkpoint that the record does not have any more.
    RolledBack {
        anchored: u64,
        last: u64,
    },
    /// An anchor has another head for this entry.
    Rewritten {
        entry: u64,
    },
    /// A checkpoint of an anchor that this key never signed.
    ForeignAnchor {
        entry: u64,
    },
    /// The index of a segment would hide entries from whoever looks for them.
    Index {
        segment: u64,
    },
}

/// What was found when all of the record was read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Soundness {
    pub installation: String,
    pub key: String,
    pub segments: u64,
    pub entries: u64,
    pub first: u64,
    pub last: u64,
    pub head: String,
    pub checkpoints: u64,
    /// Entries at the end that no checkpoint is about yet.
    pub unsigned: u64,
    /// Bytes at the end that were never a whole entry. The next writer says so.
    pub torn_bytes: u64,
    /// Checkpoints of anchors that were found here.
    pub anchored: u64,
    /// Entries before the first one here, which were moved to an archive.
    pub archived: u64,
    pub faults: Vec<Fault>,
    pub faults_not_listed: u64,
}

impl Soundness {
    pub fn is_sound(&self) -> bool {
        self.faults.is_empty() && self.faults_not_listed == 0
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KeyShown {
    pub id: String,
    pub public_key: String,
    pub file: PathBuf,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Archived {
    pub segments: Vec<PathBuf>,
    /// The last entry that was moved.
    pub to: u64,
    pub bytes: u64,
}

/// Who is told each checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Anchor {
    /// Gets a line for each.
    File(PathBuf),
    /// Is started with `sh -c`, and gets it on its standard input.
    Command(String),
    /// Gets each posted, as JSON.
    Https(HttpsAnchor),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct HttpsAnchor {
    pub url: String,
    /// Lines of headers that it wants to see.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header_file: Option<PathBuf>,
    /// Certificates of the only authorities that are believed; else those of the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authorities: Option<PathBuf>,
}

impl Anchor {
    /// Whether both are one place, whatever it wants to see.
    pub fn is_at_the_place_of(&self, other: &Anchor) -> bool {
        match (self, other) {
            (Anchor::Https(one), Anchor::Https(other)) => one.url == other.url,
            _ => self == other,
        }
    }
}

impl std::fmt::Display for Anchor {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Anchor::File(path) => write!(formatter, "file {}", path.display()),
            Anchor::Command(command) => write!(formatter, "command {command}"),
            // What follows a `?` may be a token.
            Anchor::Https(https) => write!(formatter, "https {}", https.url.split('?').next().unwrap_or_default()),
        }
    }
}
