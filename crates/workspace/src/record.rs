//! What is remembered of a sandbox.

use std::ffi::OsString;
use std::path::PathBuf;

use model::{Asked, NetworkAsked, Request, Wall, WorkspaceMode};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    pub id: String,
    pub name: Option<String>,
    /// Made to be used again, rather than left by a run.
    pub made: bool,
    /// Milliseconds since 1970.
    pub created: u64,
    pub used: u64,
    /// What ran last.
    pub command: Vec<String>,
    pub settings: Settings,
    pub workspaces: Vec<Workspace>,
    /// The earliest first; the last is written to.
    pub layers: Vec<String>,
    pub snapshots: Vec<Snapshot>,
    /// When a run began whose changes nobody has looked at yet.
    pub moment: Option<i64>,
    /// The start of the machine in which the last run was.
    pub boot: Option<String>,
}

impl Record {
    pub fn top(&self) -> &str {
        self.layers.last().map_or("", String::as_str)
    }

    /// As short as is worth showing.
    pub fn short(&self) -> &str {
        self.id.get(..8).unwrap_or(&self.id)
    }

    /// What it is called where people read it.
    pub fn shown(&self) -> String {
        self.name.clone().unwrap_or_else(|| self.short().to_owned())
    }

    /// Every layer that it needs, its snapshots' included.
    pub fn needed(&self) -> impl Iterator<Item = &String> {
        self.layers.iter().chain(self.snapshots.iter().flat_map(|snapshot| &snapshot.layers))
    }
}

/// A real folder, and which one it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workspace {
    pub path: OsString,
    pub device: u64,
    pub inode: u64,
    pub owner: (u32, u32),
    /// Layers are whole copies, because this host can do no better.
    pub copied: bool,
}

impl Workspace {
    pub fn path(&self) -> PathBuf {
        PathBuf::from(&self.path)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    pub name: String,
    pub created: u64,
    pub layers: Vec<String>,
}

/// The part of a request that a sandbox keeps for its next run. What it may do is judged anew each time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    read: Vec<OsString>,
    write: Vec<OsString>,
    hide: Vec<OsString>,
    environment: Vec<(OsString, Option<OsString>)>,
    directory: Option<OsString>,
    limits: Asked,
    accept_gaps: Vec<String>,
    backend: Option<String>,
    /// Older records have none.
    #[serde(default)]
    artifacts: Vec<String>,
    #[serde(default)]
    network: NetworkAsked,
    #[serde(default)]
    image: Option<String>,
    #[serde(default)]
    runtime: Option<String>,
}

impl Settings {
    /// `from`: the folder that paths of the request start in.
    pub fn of(request: &Request, from: &std::path::Path) -> Settings {
        let absolute = |paths: &[PathBuf]| paths.iter().map(|path| from.join(path).into_os_string()).collect();
        Settings {
            read: absolute(&request.read),
            write: absolute(&request.write),
            hide: absolute(&request.hide),
            environment: request.environment.clone(),
            directory: request.directory.as_ref().map(|path| from.join(path).into_os_string()),
            limits: request.limits.clone(),
            accept_gaps: request.accept_gaps.iter().map(Wall::to_string).collect(),
            backend: request.backend.clone(),
            artifacts: request.artifacts.clone(),
            network: request.network.clone(),
            image: request.image.clone(),
            runtime: request.runtime.clone(),
        }
    }

    /// The request for one more run: what is asked for now goes before what was asked for then.
    pub fn request(&self, workspaces: &[Workspace], now: &Request) -> Request {
        let paths = |kept: &[OsString], now: &[PathBuf]| kept.iter().map(PathBuf::from).chain(now.to_vec()).collect();
        let then = &self.limits;
        let limits = &now.limits;
        Request {
            command: now.command.clone(),
            read: paths(&self.read, &now.read),
            write: paths(&self.write, &now.write),
            hide: paths(&self.hide, &now.hide),
            workspaces: workspaces.iter().map(Workspace::path).collect(),
            workspace_mode: WorkspaceMode::Cow,
            environment: self.environment.iter().chain(&now.environment).cloned().collect(),
            directory: now.directory.clone().or_else(|| self.directory.as_ref().map(PathBuf::from)),
            terminal: now.terminal,
            limits: Asked {
                wall_time: limits.wall_time.or(then.wall_time),
                millicpus: limits.millicpus.or(then.millicpus),
                cpu_time: limits.cpu_time.or(then.cpu_time),
                memory: limits.memory.or(then.memory),
                processes: limits.processes.or(then.processes),
                disk: limits.disk.or(then.disk),
                open_files: limits.open_files.or(then.open_files),
                output: limits.output.or(then.output),
            },
            accept_gaps: self
                .accept_gaps
                .iter()
                .filter_map(|name| name.parse().ok())
                .chain(now.accept_gaps.clone())
                .collect(),
            backend: now.backend.clone().or_else(|| self.backend.clone()),
            artifacts: self.artifacts.iter().chain(&now.artifacts).cloned().collect(),
            network: self.network.with(&now.network),
            image: now.image.clone().or_else(|| self.image.clone()),
            runtime: now.runtime.clone().or_else(|| self.runtime.clone()),
            // Of whoever asks now, not of whoever made it.
            agent: now.agent.clone(),
            capture: now.capture,
            trace: now.trace,
            revisions: now.revisions.clone(),
            run: now.run.clone(),
        }
    }
}
