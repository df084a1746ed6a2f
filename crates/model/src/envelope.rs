//! Who wants to do what to what: the one form in which rules see every crossing of a gate.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::WorkspaceMode;

/// One thing that somebody wants to do. Plain text throughout: it is recorded, replayed and shown to people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Envelope {
    pub principal: Principal,
    pub action: Action,
    pub resource: Resource,
    #[serde(default)]
    pub context: Context,
}

/// Who asks. The user is known from the kernel; the agent's name is a claim, so it can only narrow what the user may.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Principal {
    pub user: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
}

impl fmt::Display for Principal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.agent {
            Some(agent) => write!(out, "{agent} for {}", self.user),
            None => write!(out, "{}", self.user),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Action {
    /// Start a command.
    #[serde(rename = "exec")]
    Exec,
    /// Have code interpreted.
    #[serde(rename = "code")]
    Code,
    /// See a file or folder that is not granted otherwise.
    #[serde(rename = "read")]
    Read,
    /// Change real files without a layer between.
    #[serde(rename = "write")]
    Write,
    /// Pass on a variable of the asker's environment.
    #[serde(rename = "environment")]
    Environment,
    /// Go without a wall that this host can't hold.
    #[serde(rename = "gap")]
    Gap,
    /// Reach a host on the network.
    #[serde(rename = "connect")]
    Connect,
    /// Have a secret added to a request that goes out.
    #[serde(rename = "secret.use")]
    SecretUse,
    /// Give output or a file back to the asker.
    #[serde(rename = "release")]
    Release,
    /// Take a change onto the real files.
    #[serde(rename = "commit")]
    Commit,
}

impl Action {
    pub const ALL: [Action; 10] = [
        Action::Exec,
        Action::Code,
        Action::Read,
        Action::Write,
        Action::Environment,
        Action::Gap,
        Action::Connect,
        Action::SecretUse,
        Action::Release,
        Action::Commit,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Action::Exec => "exec",
            Action::Code => "code",
            Action::Read => "read",
            Action::Write => "write",
            Action::Environment => "environment",
            Action::Gap => "gap",
            Action::Connect => "connect",
            Action::SecretUse => "secret.use",
            Action::Release => "release",
            Action::Commit => "commit",
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

/// What it is done to. Which of these goes with which action: see [`Envelope::is_sound`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Resource {
    /// The words of a command, as it would be started.
    Command(Vec<String>),
    /// A line for a shell.
    Shell(String),
    #[serde(rename_all = "kebab-case")]
    Code {
        /// Unknown where nothing tells.
        language: Option<String>,
        bytes: u64,
    },
    /// Absolute and free of links, as far as it exists.
    Path(String),
    Variable(String),
    Wall(String),
    #[serde(rename_all = "kebab-case")]
    Host {
        /// A name or an address; where somebody asks for many, the pattern that they wrote.
        name: String,
        /// 0 where any is asked for.
        port: u16,
    },
    /// A request that was read on its way to a host.
    #[serde(rename_all = "kebab-case")]
    Request {
        host: String,
        port: u16,
        method: String,
        /// With the query, if there is one.
        path: String,
    },
    #[serde(rename_all = "kebab-case")]
    Secret {
        name: String,
        host: String,
    },
    #[serde(rename_all = "kebab-case")]
    Artifact {
        name: String,
        bytes: u64,
    },
}

/// Where it happens.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Context {
    /// Where the command starts, or the asker is.
    pub directory: String,
    /// The asker's home.
    pub home: String,
    /// The workspaces' roots. None, no list and an empty one mean the same.
    #[serde(deserialize_with = "or_none")]
    pub workspaces: Vec<String>,
    pub workspace_mode: WorkspaceMode,
}

fn or_none<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    Ok(Option::<Vec<String>>::deserialize(deserializer)?.unwrap_or_default())
}

impl Envelope {
    /// Whether the action can be done to such a resource at all.
    pub fn is_sound(&self) -> bool {
        matches!(
            (self.action, &self.resource),
            (Action::Exec, Resource::Command(_) | Resource::Shell(_))
                | (Action::Code, Resource::Code { .. })
                | (Action::Read | Action::Write | Action::Commit, Resource::Path(_))
                | (Action::Environment, Resource::Variable(_))
                | (Action::Gap, Resource::Wall(_))
                | (Action::Connect, Resource::Host { .. } | Resource::Request { .. })
                | (Action::SecretUse, Resource::Secret { .. })
                | (Action::Release, Resource::Artifact { .. })
        )
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Resource::Command(words) => out.write_str(&words.join(" ")),
            Resource::Shell(line) => out.write_str(line),
            Resource::Code { language: Some(language), bytes } => write!(out, "{bytes} bytes of {language}"),
            Resource::Code { language: None, bytes } => write!(out, "{bytes} bytes of code"),
            Resource::Path(path) => out.write_str(path),
            Resource::Variable(name) => out.write_str(name),
            Resource::Wall(name) => out.write_str(name),
            Resource::Host { name, port: 0 } => write!(out, "{name}:*"),
            Resource::Host { name, port } if name.contains(':') => write!(out, "[{name}]:{port}"),
            Resource::Host { name, port } => write!(out, "{name}:{port}"),
            Resource::Request { host, port, method, path } => write!(out, "{method} {host}:{port}{path}"),
            Resource::Secret { name, host } => write!(out, "{name} to {host}"),
            Resource::Artifact { name, .. } => out.write_str(name),
        }
    }
}
