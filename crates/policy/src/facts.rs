//! What was looked up for a request, so that judging it is pure.

use std::ffi::OsString;
use std::path::PathBuf;

use model::{Finding, Ground, Place, Principal, Reason, WorkspaceMode};

#[derive(Clone, Debug, PartialEq)]
pub struct Facts {
    pub principal: Principal,
    pub workspace_mode: WorkspaceMode,
    /// Where the caller is, free of links.
    pub directory: PathBuf,
    /// Where the command is to start, free of links.
    pub start: PathBuf,
    pub home: PathBuf,
    /// Every home whose credentials count: the caller's by environment and by record.
    pub homes: Vec<PathBuf>,
    pub user_name: String,
    pub environment: Vec<(OsString, OsString)>,
    pub ground: Ground,
    pub system: Vec<Place>,
    pub links: Vec<(PathBuf, PathBuf)>,
    pub toolchains: Vec<Place>,
    /// What was named as a workspace, or else the caller's folder if it is fit to be one.
    pub workspaces: Vec<Place>,
    /// They were named, and not just where the caller is.
    pub workspaces_named: bool,
    /// What was asked for, looked up: access included.
    pub asked: Vec<Place>,
    /// What the policy gives to every sandbox, looked up: access included.
    pub given: Vec<Place>,
    pub hide: Vec<(PathBuf, bool)>,
    /// What links in the places of credential stores lead to.
    pub linked_stores: Vec<PathBuf>,
    /// Where belljar keeps its own state, by every path that leads there.
    pub state: Vec<PathBuf>,
    /// Where belljar finds what it obeys: whoever writes to it makes the rules.
    pub policies: Vec<PathBuf>,
    /// Policies in places that are granted: never to be written.
    pub policy_files: Vec<Place>,
    /// Files with secrets in places that are granted besides the workspace: a folder or a file each.
    pub loose_secrets: Vec<(PathBuf, bool)>,
    pub program: Located,
    /// What scanners say of the code that would run.
    pub findings: Vec<Finding>,
    /// A digest of that code, if there is some: a yes is to exactly this.
    pub code: Option<String>,
    /// What is to be heard besides the policy, such as what the monitor says of whoever asks.
    pub reasons: Vec<Reason>,
    /// What the vault says of secrets that are asked for: name, variable inside, what the stand-in begins with.
    pub stored: Vec<(String, String, String)>,
    /// Made anew for each sandbox: what stands for its secrets comes of it.
    pub seed: [u8; 32],
    /// A Java can be started inside.
    pub java: bool,
    pub memory: u64,
    pub inherited_size: u64,
}

/// Where the program was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Located {
    pub path: PathBuf,
}
