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
    pub network: NetworkAsked,
    pub directory: Option<PathBuf>,
    pub terminal: bool,
    pub limits: Asked,
    /// Walls that may be missing.
    pub accept_gaps: Vec<Wall>,
    /// Nothing leaves the choice to us.
    pub backend: Option<String>,
    /// Run in an image, and not on the host's own system.
    pub image: Option<String>,
    /// The engine's runtime to run it with.
    pub runtime: Option<String>,
    /// Files to collect when it has ended: folders or patterns, from each workspace on, or absolute within one.
    pub artifacts: Vec<String>,
    /// Which agent it is for, as it says itself: rules for that name are heard as well.
    pub agent: Option<String>,
    /// Keep so many bytes of each stream for the result.
    pub capture: Option<u64>,
    /// Say how long each step took.
    pub trace: bool,
    /// Revisions of the policy, one of which it is to be judged under; with none, whatever is in force.
    pub revisions: Vec<String>,
    /// The id that it has in the record, from whoever gave it one before it was asked.
    pub run: Option<String>,
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

/// What of the network is asked for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct NetworkAsked {
    /// Hosts to reach: `HOST[:PORT]`, or `@` and the name of a registry.
    pub allow: Vec<String>,
    /// Hosts not to reach, whatever a policy gives.
    pub deny: Vec<String>,
    /// No network, whatever a policy gives.
    pub none: bool,
    /// Secrets to add outside: `NAME`, or `NAME@HOST`.
    pub secrets: Vec<String>,
    /// Servers inside to be reached from the host's loopback: its port, then theirs.
    pub publish: Vec<(u16, u16)>,
    /// Names with the address to dial for them.
    pub pinned: Vec<(String, std::net::IpAddr)>,
}

impl NetworkAsked {
    /// What was asked for then, and what is asked for now.
    pub fn with(&self, now: &NetworkAsked) -> NetworkAsked {
        let both = |then: &[String], now: &[String]| then.iter().chain(now).cloned().collect();
        NetworkAsked {
            allow: both(&self.allow, &now.allow),
            deny: both(&self.deny, &now.deny),
            none: self.none || now.none,
            secrets: both(&self.secrets, &now.secrets),
            publish: self.publish.iter().chain(&now.publish).copied().collect(),
            pinned: self.pinned.iter().chain(&now.pinned).cloned().collect(),
        }
    }
}
