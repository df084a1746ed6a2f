//! What a sandbox did to somebody's files, and what became of it: plain data.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use serde::ser::SerializeStruct;
use serde::{Deserialize, Serialize, Serializer};

/// How the workspace is given to the command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WorkspaceMode {
    /// Writable; changes are kept apart until somebody takes them.
    #[default]
    Cow,
    /// Writable, and the real files change.
    Direct,
    Readonly,
}

impl WorkspaceMode {
    pub fn name(self) -> &'static str {
        match self {
            WorkspaceMode::Cow => "cow",
            WorkspaceMode::Direct => "direct",
            WorkspaceMode::Readonly => "readonly",
        }
    }
}

/// Where the changes to one layered place are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stack {
    pub place: PathBuf,
    pub kept: Kept,
    /// Nanoseconds since 1970. The command starts when the clock that files get their times from is past this, so that
    /// a file with an earlier time is one that the command saw; zero where that is so already.
    pub begun: i64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kept {
    /// Over the real files: earlier changes, the newest first, and a folder with `upper` and `work` in it for new ones.
    Overlay { earlier: Vec<PathBuf>, layer: PathBuf },
    /// In a copy of all of it, where the host's kernel or filesystem can do no better.
    Copy { tree: PathBuf },
}

/// A sandbox that is kept, or that runs now.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct KeptSandbox {
    pub id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    pub running: bool,
    /// Somebody stays with it, so that more can be run in it.
    pub open: bool,
    /// Seconds since 1970.
    pub created: u64,
    pub used: u64,
    pub command: Vec<String>,
    pub workspaces: Vec<Shown>,
    pub snapshots: Vec<Snapshot>,
    /// Bytes that its own layers take on disk.
    pub disk: u64,
    /// It was made to be used again, and stays when its changes are taken or thrown away.
    pub made: bool,
    /// Why its changes could not be looked at, if so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Snapshot {
    pub name: String,
    pub created: u64,
}

/// What a sandbox changed.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Changes {
    pub sandbox: String,
    pub changes: Vec<Change>,
}

/// One path that is not as it was.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    pub workspace: Shown,
    /// Below the workspace.
    pub path: Shown,
    pub kind: ChangeKind,
    /// What it was called before, if it was renamed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<Shown>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub was: Option<Thing>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is: Option<Thing>,
    /// Neither side is text, or one is too long to look at.
    pub binary: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lines_added: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lines_removed: Option<usize>,
    /// Why it is only taken when it is named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protected: Option<String>,
    /// Why a person is asked before it is taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked: Option<String>,
    /// Why it is never taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ChangeKind {
    Added,
    Modified,
    Deleted,
    Renamed,
    /// Only what may be done with it.
    Mode,
    /// A file that is a link now, or a folder, or the other way round.
    Type,
}

/// One side of a change.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Thing {
    pub kind: ThingKind,
    /// Permission bits.
    pub mode: u32,
    pub size: u64,
    /// Where a link leads to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<Shown>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ThingKind {
    File,
    Folder,
    Link,
    /// A device, a socket or a pipe.
    Special,
}

/// How many of each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    pub added: usize,
    pub modified: usize,
    pub deleted: usize,
    pub renamed: usize,
    pub protected: usize,
    pub refused: usize,
}

impl Tally {
    pub fn of(changes: &[Change]) -> Tally {
        let mut tally = Tally::default();
        for change in changes {
            match change.kind {
                ChangeKind::Added => tally.added += 1,
                ChangeKind::Deleted => tally.deleted += 1,
                ChangeKind::Renamed => tally.renamed += 1,
                ChangeKind::Modified | ChangeKind::Mode | ChangeKind::Type => tally.modified += 1,
            }
            tally.protected += usize::from(change.protected.is_some());
            tally.refused += usize::from(change.refused.is_some());
        }
        tally
    }

    pub fn all(&self) -> usize {
        let Tally { added, modified, deleted, renamed, protected: _, refused: _ } = self;
        added + modified + deleted + renamed
    }
}

/// What a run left behind to be looked at.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Leftover {
    pub sandbox: String,
    #[serde(flatten)]
    pub tally: Tally,
    /// It could not be looked at; it is kept all the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub manifest: Option<Manifest>,
    /// The first of them, for the record.
    #[serde(skip)]
    pub listed: Vec<Change>,
}

/// All that a run changed, as one digest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Manifest {
    pub blake3: String,
    /// Files that are in it by their size and time only, because there was too much in them.
    pub by_size: u64,
}

/// What to take of a sandbox's changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Taking {
    /// Only these, and what is below them; everything if empty.
    pub paths: Vec<PathBuf>,
    /// Whose side to take where both have changed the same.
    pub favor: Option<Favor>,
    /// Only tell what would happen.
    pub check: bool,
    /// A person agreed to what has this digest: see [`Taken::asked_digest`].
    pub agreed: Option<String>,
    /// It is this agent that takes: then a person must agree to all of it, whatever the policy lets pass.
    pub agent: Option<String>,
}

/// Has a say in each path at the commit gate, besides what the gate knows by itself.
pub trait Gatekeeper {
    /// `folder`: it is one, or is gone; else something stands where a folder could.
    fn at(&self, path: &Path, folder: bool) -> Crossing;
}

/// What a gatekeeper says, each with the reason; nothing where it is free.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Crossing {
    /// Taken only when it is named.
    pub named: Option<Apart>,
    /// Taken only when a person agrees.
    pub asked: Option<String>,
    pub never: Option<String>,
}

/// Something that is shown apart, and which path it is that must be named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Apart {
    /// The path itself, or the folder around it that is kept apart as a whole.
    pub root: PathBuf,
    pub reason: String,
}

/// A gatekeeper who lets everything pass.
pub struct OpenGate;

impl Gatekeeper for OpenGate {
    fn at(&self, _: &Path, _: bool) -> Crossing {
        Crossing::default()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Favor {
    /// Keep what is on the host.
    Ours,
    /// Take what the sandbox made.
    Theirs,
}

/// What became of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Taken {
    pub sandbox: String,
    pub taken: Vec<Deed>,
    pub conflicts: Vec<Deed>,
    /// Protected, and not named.
    pub held_back: Vec<Deed>,
    pub refused: Vec<Deed>,
    /// Would be taken if a person agreed; then nothing at all is taken yet.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub asked: Vec<Deed>,
    /// Of exactly what is asked: paths, contents, and what they would take the place of.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub asked_digest: String,
    /// What is asked, for whoever has to agree.
    #[serde(skip)]
    pub proposed: Vec<Proposed>,
    /// Why nobody agreed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unanswered: Option<String>,
    /// An earlier taking that did not come to its end, and what was done about it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub recovered: Vec<String>,
    /// Nothing is left to be taken, so the sandbox is gone or empty.
    pub complete: bool,
}

/// One path, and what was done with it or why not.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Deed {
    pub workspace: Shown,
    pub path: Shown,
    pub what: String,
}

/// A change that a person is asked about: what stands on the host now, and what would stand there.
#[derive(Clone, Debug, PartialEq)]
pub struct Proposed {
    pub workspace: Shown,
    pub path: Shown,
    pub was: Option<Thing>,
    pub is: Option<Thing>,
    /// Lines that come and go; nothing where it is no text, or too long to look at.
    pub lines: Option<(usize, usize)>,
    /// As a unified diff, or as much of it as a person reads. Bytes that are no text are written out as `\xff`.
    pub diff: String,
    /// The rest of that diff.
    pub unshown: Option<Unshown>,
}

/// What nobody is shown, so that it can be looked for: how much it is, and a digest of the whole that it is the end of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unshown {
    pub lines: usize,
    pub bytes: usize,
    pub digest: String,
}

/// What cleaning up removes, or would.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Collected {
    pub removed: Vec<Removed>,
    pub bytes: u64,
    /// Found in the state folder, and not ours to touch.
    pub foreign: Vec<Shown>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Removed {
    pub what: String,
    pub bytes: u64,
}

/// Something that could not be done, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    pub message: String,
    pub fix: String,
}

impl std::fmt::Display for Trouble {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}; fix: {}", self.message, self.fix)
    }
}

impl std::error::Error for Trouble {}

/// A path as JSON shows it: text where it is text, and else its bytes as well.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Shown(pub PathBuf);

impl Shown {
    pub fn of(bytes: &[u8]) -> Shown {
        Shown(PathBuf::from(OsStr::from_bytes(bytes)))
    }

    pub fn bytes(&self) -> &[u8] {
        self.0.as_os_str().as_bytes()
    }
}

impl std::ops::Deref for Shown {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl Serialize for Shown {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if let Some(text) = self.0.to_str() {
            return serializer.serialize_str(text);
        }
        let mut fields = serializer.serialize_struct("Path", 2)?;
        fields.serialize_field("shown", &self.0.to_string_lossy())?;
        fields.serialize_field("bytes", self.bytes())?;
        fields.end()
    }
}
