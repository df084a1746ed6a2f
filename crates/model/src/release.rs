//! The release gate for what a sandbox says while it runs: bytes pass through here on their way out.

use std::time::{Duration, SystemTime};

use serde::Serialize;

use crate::{Outside, Trouble, Wall};

/// One stream on its way out.
pub trait Outlet {
    /// Appends to `out` what may pass of all that came so far. Some may be held back until more is known.
    fn pass(&mut self, bytes: &[u8], out: &mut Vec<u8>);
    /// Nothing more comes: appends what was held back and may pass.
    fn end(&mut self, out: &mut Vec<u8>);
    /// Whether something is held back.
    fn holds(&self) -> bool;
    /// A person waits for it, and nothing came for a while: appends what was held back and may pass, and begins anew.
    fn rest(&mut self, out: &mut Vec<u8>);
}

/// Whoever writes down what happens in a sandbox while it runs. What can't be written down ends the run.
pub trait Witness {
    /// A sandbox is being raised. Whoever raises it says so while there is time, and before anything of the payload may run: what
    /// was wanted and judged is in the record after this, or nothing of it happens.
    fn raising(&mut self) -> Result<(), Trouble>;
    /// Every wall is up, and these were tried from inside; the payload is being started.
    fn armed(&mut self, proven: &[Wall]);
    /// `last`: the run has ended, and its end will be written with them.
    fn started(&mut self, started: Vec<Started>, last: bool) -> Result<(), Trouble>;
    /// One more was started, and there are too many to tell of each.
    fn one_more(&mut self);
    /// What is used so far: every second or so, of whatever runs that long.
    fn sampled(&mut self, sample: &Sample) -> Result<Goes, Trouble>;
    /// It runs, and nobody waits for us at this moment.
    fn resting(&mut self) {}
    /// All of it has been told to end, and we wait for that: a moment to get ready for what is written then.
    fn ending(&mut self) {}
}

/// Whether a run may go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goes {
    On,
    /// It is ended here and now.
    Ended,
}

/// What all processes of a run have used together up to a moment, as far as the host can tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Sample {
    /// Since its start.
    #[serde(serialize_with = "crate::outcome::seconds")]
    pub after: Duration,
    #[serde(serialize_with = "crate::outcome::seconds")]
    pub processor: Duration,
    /// In use at this moment.
    pub memory: u64,
    pub processes: u64,
    /// Bytes that went through calls such as read and write: files, pipes and sockets alike.
    pub read: u64,
    pub written: u64,
    /// Bytes that passed the release gate.
    pub output: u64,
    pub denials: u64,
}

/// A program that was about to be started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Started {
    #[serde(skip)]
    pub at: SystemTime,
    /// Numbered as the host sees them.
    pub process: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<i32>,
    /// As it was called: from where the caller was.
    pub program: String,
    pub arguments: Vec<String>,
    /// Some words, or the ends of some, could not be read or are too long.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
}

/// A kind of secret that was taken out, and how often.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Redacted {
    /// The format's rule, or the name of the variable whose value it was.
    pub what: String,
    pub times: u64,
}

/// A variable that is a secret by its name, and whose value is not looked for in what comes out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Unguarded {
    pub variable: String,
    pub why: String,
}

/// Whether a text has the secrets that are in what it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wording {
    WithoutSecrets,
    Exact,
}

/// Changes as a patch. With something taken out it can be read, and not applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Patch {
    pub bytes: Vec<u8>,
    pub taken_out: u64,
}

/// What goes in and comes out of a sandbox while it runs. Where there is no outlet, a stream goes straight to the caller.
#[derive(Default)]
pub struct Streams {
    /// What was read of the caller's input already: it comes first.
    pub input: Vec<u8>,
    pub output: Option<Box<dyn Outlet>>,
    pub error: Option<Box<dyn Outlet>>,
    /// Of a sandbox with a terminal of its own.
    pub terminal: Option<Box<dyn Outlet>>,
    /// Is told what happens inside.
    pub witness: Option<Box<dyn Witness>>,
    /// Takes what goes out to the network, where there is one.
    pub outside: Option<Box<dyn Outside>>,
    /// Output and error output are kept apart, even where they go to the same place.
    pub apart: bool,
}

/// What a run said, for its result: without secrets, with everything that commands a terminal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Captured {
    pub stdout: CapturedStream,
    pub stderr: CapturedStream,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CapturedStream {
    /// All of it, or its beginning.
    #[serde(flatten)]
    pub head: CapturedPart,
    /// Bytes between the beginning and the end that were not kept.
    pub left_out: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tail: Option<CapturedPart>,
    /// How many bytes there were.
    pub total: u64,
    /// How many were to be kept.
    pub limit: u64,
}

/// Bytes as text. Where they are none, `base64` has them as they are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CapturedPart {
    pub text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base64: Option<String>,
}
