//! What came of a request.

use std::time::Duration;

use serde::Serialize;

use crate::{
    Alert, Captured, Enforcement, Gathered, Held, Inspected, Leftover, Redacted, Refusal, Traffic, Unguarded, Wall,
};

/// The end of every request. `Refused` is as good an answer as `Ran`.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    Ran(Box<Finished>),
    Refused(Refusal),
    /// The sandbox could not be raised, so nothing ran.
    NotSetUp(SetupFailure),
    /// The sandbox stood, but the program could not be started in it.
    NotStarted(StartFailure),
}

/// A program that ran to its end, or to ours.
#[derive(Clone, Debug, PartialEq)]
pub struct Finished {
    /// The id under which everything of it is in the record.
    pub run: String,
    pub exit: Exit,
    pub overrun: Option<Overrun>,
    pub usage: Usage,
    pub denials: Vec<Denial>,
    /// Denials that came after the list was full.
    pub denials_not_listed: u64,
    /// Bytes of output that were not passed on.
    pub output_dropped: u64,
    pub enforcement: Enforcement,
    /// Walls that were not fully held, because the policy or the asker accepts that.
    pub accepted_gaps: Vec<(Wall, Held)>,
    pub backend: String,
    /// Why this one.
    pub because: String,
    /// What it stood on, if that was an image.
    pub image: Option<ImageUsed>,
    /// What it changed in its workspaces, if anything.
    pub leftover: Option<Leftover>,
    /// What scanners said of its code before it ran.
    pub inspected: Inspected,
    /// What was taken out of its output.
    pub redacted: Vec<Redacted>,
    /// What it said, if that was to be kept.
    pub captured: Option<Captured>,
    /// Secrets by their names that were not looked for in it.
    pub unguarded: Vec<Unguarded>,
    /// What went out to the network, where there was a way.
    pub traffic: Option<Traffic>,
    /// What the monitor said of it.
    pub alerts: Vec<Alert>,
    /// What was collected, if anything was to be.
    pub gathered: Option<Gathered>,
    pub timing: Vec<Timing>,
}

/// An image that a sandbox stands on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ImageUsed {
    /// As it was asked for, or belljar's own.
    pub name: String,
    /// Of its configuration, which names all of its layers. The sandbox is made from this, whatever the name means later.
    pub digest: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    Code(i32),
    Signal(i32),
}

/// A limit that ended the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Overrun {
    WallTime,
    CpuTime,
    Memory,
    Disk,
    /// Somebody asked us to end it.
    Cancelled,
    /// Whoever asked for it may run nothing any more.
    Suspended,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Usage {
    #[serde(serialize_with = "seconds")]
    pub wall_time: Duration,
    #[serde(serialize_with = "seconds")]
    pub user_time: Duration,
    #[serde(serialize_with = "seconds")]
    pub system_time: Duration,
    /// Peak memory: of all processes together where control groups tell, else of the largest one.
    pub peak_memory: u64,
    /// Times the kernel ended a process for want of memory.
    pub out_of_memory_kills: u64,
}

pub(crate) fn seconds<S: serde::Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(duration.as_secs_f64())
}

/// A call that the sandbox refused. Repeated ones are counted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Denial {
    pub wall: Wall,
    /// The call's name.
    pub call: String,
    /// What exactly of it was refused, where the call as such is allowed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    pub program: String,
    pub process: i32,
    pub times: u64,
}

/// How long one step of the set-up took.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Timing {
    pub step: String,
    pub nanoseconds: u64,
}

/// Why no sandbox could be raised: nothing of the payload has run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetupFailure {
    pub wall: Option<Wall>,
    pub message: String,
    pub fix: String,
    /// Laying changes over files failed; with copies of the files it might not.
    pub layers: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartFailure {
    pub found: bool,
    pub message: String,
    pub fix: String,
}
