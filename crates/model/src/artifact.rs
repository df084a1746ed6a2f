//! What leaves a sandbox as a file, or would have: plain data, and the seams through which it is decided on.

use std::fs::File;
use std::io::Write;

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use crate::{Finding, Shown, Trouble};

/// A file that a run made and that was asked for. Of one that is withheld, this is all that is kept.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Artifact {
    pub id: String,
    /// Of the run that made it: all that one run made have the same.
    pub run: String,
    /// The sandbox it ran in, where changes were kept apart. It may be gone by now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<String>,
    pub workspace: Shown,
    /// Below the workspace.
    pub path: Shown,
    pub size: u64,
    /// All that is kept of its mode.
    pub executable: bool,
    /// BLAKE3 of its contents; none if they were not read.
    pub digest: Option<String>,
    /// What it is by its contents, as a media type.
    pub kind: String,
    #[serde(flatten)]
    pub fate: Fate,
    pub findings: Vec<Finding>,
    /// Seconds since 1970.
    pub created: u64,
}

/// What is said of contents that nobody could tell apart.
pub const UNKNOWN_KIND: &str = "application/octet-stream";

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    Released,
    Withheld(Withheld),
}

/// Why something stays where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Withheld {
    pub reason: String,
    pub rule: String,
}

impl Withheld {
    pub fn new(rule: &str, reason: impl Into<String>) -> Withheld {
        Withheld { reason: reason.into(), rule: rule.to_owned() }
    }
}

impl Artifact {
    pub fn withheld(&self) -> Option<&Withheld> {
        match &self.fate {
            Fate::Released => None,
            Fate::Withheld(withheld) => Some(withheld),
        }
    }
}

impl Serialize for Fate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Fate::Released => {
                let mut fields = serializer.serialize_struct("Fate", 1)?;
                fields.serialize_field("released", &true)?;
                fields.end()
            }
            Fate::Withheld(Withheld { reason, rule }) => {
                let mut fields = serializer.serialize_struct("Fate", 3)?;
                fields.serialize_field("released", &false)?;
                fields.serialize_field("reason", reason)?;
                fields.serialize_field("rule", rule)?;
                fields.end()
            }
        }
    }
}

/// All that was collected of one run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Gathered {
    pub run: String,
    pub artifacts: Vec<Artifact>,
    /// Files that came after the list was full: neither kept nor looked at.
    pub not_listed: u64,
    /// Why not everything could be collected; then what is not listed was not released.
    pub trouble: Option<String>,
}

/// What somebody who looks into contents makes of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Examined {
    /// A media type.
    pub kind: String,
    pub findings: Vec<Finding>,
}

/// Looks into contents. They are hostile: whoever parses them does so in a jar of its own.
pub trait Examiner {
    /// `contents` is a copy of ours that nobody else can change, read from its beginning; its descriptor can be given to
    /// a worker, or its bytes through a pipe. What can't be examined is an error, and is not released.
    fn examine(&self, name: &str, contents: &File, size: u64) -> Result<Examined, Trouble>;
}

/// Has the say in what is released.
pub trait ReleaseGate {
    /// By name and size alone, before a byte is read: why it is withheld, if it is.
    fn at_sight(&self, name: &str, size: u64) -> Option<Withheld>;
    /// By what is in it.
    fn within(&self, name: &str, contents: &File, size: u64) -> (Examined, Option<Withheld>);
}

/// Artifacts of earlier runs. `which` is an id, or the start of one that is unique.
pub trait Artifacts {
    /// The newest first; `of`: a run's or a sandbox's id or the start of it, a sandbox's name, or `last` for the last run.
    fn list(&self, of: Option<&str>) -> Result<Vec<Artifact>, Trouble>;
    fn find(&self, which: &str) -> Result<Artifact, Trouble>;
    /// Writes the contents out, once it is known that they are what was released.
    fn copy(&self, which: &str, to: &mut dyn Write) -> Result<Artifact, Trouble>;
    fn remove(&self, which: &str) -> Result<Artifact, Trouble>;
}
