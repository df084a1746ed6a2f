//! What tools answer with, as their output schemas say.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// What came of a run.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct Ran {
    /// Its id in the record: for `explain_denial`, and for the resources `belljar://runs/ID/log` and `…/record`.
    pub run: Option<String>,
    /// The sandbox that keeps what it changed; nothing if there is none.
    pub sandbox: Option<String>,
    /// Exit code; nothing if a signal ended it.
    pub exit: Option<i64>,
    pub signal: Option<i64>,
    /// Which limit ended it, if one did.
    pub overrun: Option<Value>,
    /// It was told to end before it did.
    pub cancelled: bool,
    pub stdout: String,
    pub stderr: String,
    /// Bytes of either that are left out in the middle; the log resource may have more.
    pub left_out: u64,
    /// How many paths it changed, by kind; nothing if none.
    pub changes: Option<Value>,
    /// Calls that were refused while it ran.
    pub denials: Vec<Value>,
    /// What scanners said of the code before it ran.
    pub findings: Vec<Value>,
    /// Files that it handed over, or would have.
    pub artifacts: Vec<Value>,
    /// What went out to the network, where there was a way.
    pub network: Option<Value>,
    /// Of code in a context: `results` with all their representations but images, which come as content; `error` with its traceback;
    /// whether the context is `fresh`, and whether it was `kept`.
    pub cell: Option<Value>,
}

/// What a sandbox changed.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Changed {
    pub sandbox: String,
    /// One entry for each path: `path`, `kind`, and why it would be asked about, held back or refused.
    pub changes: Vec<Value>,
    /// A unified patch, without secrets, where it was asked for.
    pub patch: Option<String>,
    /// Bytes of the patch that were too many.
    pub left_out: u64,
}

/// What was taken onto real files, and what was not.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Applied {
    pub sandbox: String,
    pub taken: Vec<Value>,
    /// Both sides changed it; see `favor`.
    pub conflicts: Vec<Value>,
    /// Only taken when it is named in `paths`.
    pub held_back: Vec<Value>,
    /// Never taken.
    pub refused: Vec<Value>,
    /// Of a check: what a person would be asked about.
    pub asked: Vec<Value>,
    /// Nothing is left to be taken.
    pub complete: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct Snapped {
    pub sandbox: String,
    pub snapshot: String,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct Forked {
    pub sandbox: String,
    /// Ids of the new sandboxes.
    pub forks: Vec<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct Artifacts {
    pub artifacts: Vec<Value>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct ArtifactContents {
    pub id: String,
    pub path: String,
    /// A media type, by its contents.
    pub kind: String,
    pub size: u64,
    /// Its contents, if they are text.
    pub text: Option<String>,
    /// Its contents, if they are not.
    pub base64: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct Explained {
    /// Of a command: `allow`, `ask` or `deny`.
    pub ruling: Option<String>,
    /// Of a command: which rules say so, why, and the smallest change of the policy that would turn it around.
    pub reasons: Vec<Value>,
    /// Of a run: entries of the record about what was denied.
    pub denials: Vec<Value>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct Permission {
    /// `already`: the policy allows it; `by-answer`: a person said yes.
    pub permitted: String,
    /// What to do now.
    pub next: String,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct FileRead {
    pub sandbox: String,
    pub path: String,
    /// Its contents, if they are text.
    pub text: Option<String>,
    /// Its contents, if they are not.
    pub base64: Option<String>,
    /// Bytes in this answer.
    pub bytes: u64,
    /// Bytes in the file.
    pub size: u64,
    /// There is more after it.
    pub cut: bool,
    /// BLAKE3 of the whole file, where all of it was read.
    pub digest: Option<String>,
    /// Secrets that were taken out.
    pub redacted: u64,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct FileWritten {
    pub sandbox: String,
    pub path: String,
    pub bytes: u64,
    /// BLAKE3 of what is there now.
    pub digest: Option<String>,
    /// Of an edit: how many places were changed.
    pub replaced: u64,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct FileList {
    pub sandbox: String,
    /// `path`, `kind`, `size`, `mode`, `modified`, and `target` of a link.
    pub entries: Vec<Value>,
    /// There are more.
    pub cut: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct FileMatches {
    pub sandbox: String,
    /// `path`, `line`, `column`, `text`.
    pub matches: Vec<Value>,
    /// Files that are no text, or too large.
    pub skipped: u64,
    /// There are more.
    pub cut: bool,
}
