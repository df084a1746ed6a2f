//! What somebody asks for. Nothing in a request can widen a policy; it is data to be judged.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{Wall, WorkspaceMode};

/// A command to run, and what the asker would like it to have.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Request {
    pub command: Vec<OsString>,
    pub read: Vec<PathBuf>,
    pub write: Vec<PathBuf>,
    pub hide: Vec<PathBuf>,
    /// Instead of the folder that the asker is in.
    pub workspaces: Vec<PathBuf>,
    pub workspace_mode: WorkspaceMode,
    /// A name alone is taken from the asker's environment.
    pub environment: Vec<(OsString, Option<OsString>)>,
    pub directory: Option<PathBuf>,
    pub terminal: bool,
    pub limits: Asked,
    /// Walls that may be missing.
    pub accept_gaps: Vec<Wall>,
    pub backend: Option<String>,
    /// Files to collect when it has ended: folders or patterns, from each workspace on, or absolute within one.
    pub artifacts: Vec<String>,
    /// Which agent it is for, as it says itself: rules for that name are heard as well.
    pub agent: Option<String>,
    /// Keep so many bytes of each stream for the result.
    pub capture: Option<u64>,
    /// Say how long each step took.
    pub trace: bool,
}

/// Limits as asked for; what is not asked for is up to the policy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Asked {
    pub wall_time: Option<Duration>,
    /// Thousandths of a processor.
    pub millicpus: Option<u32>,
    pub cpu_time: Option<Duration>,
    pub memory: Option<u64>,
    pub processes: Option<u64>,
    pub disk: Option<u64>,
    pub open_files: Option<u64>,
    pub output: Option<u64>,
}
