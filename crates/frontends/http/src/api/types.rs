//! Bodies as clients write them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use model::{Asked, Language, WorkspaceMode};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use service::job::Files;
use service::{Contents, Wish};
use utoipa::{IntoParams, ToSchema};

use super::languages;
use crate::problem::{Problem, Result};

/// Longer is no limit.
const LONGEST: f64 = 30.0 * 24.0 * 3600.0;
/// Of each stream in a result.
const MOST_CAPTURED: u64 = 16 << 20;
const CAPTURED: u64 = 64 << 10;

/// A file's contents: text, or bytes in base64.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum FileContents {
    Text(String),
    Bytes(Encoded),
}

#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Encoded {
    pub base64: String,
}

pub fn files(sent: BTreeMap<String, FileContents>) -> Files {
    let contents = |contents| match contents {
        FileContents::Text(text) => Contents::Text(text),
        FileContents::Bytes(Encoded { base64 }) => Contents::Bytes { base64 },
    };
    sent.into_iter().map(|(name, sent)| (name, contents(sent))).collect()
}

/// Limits; what is not said is up to the policy.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Seconds after which it is ended.
    #[schema(minimum = 0.001)]
    pub timeout: Option<f64>,
    /// Seconds of processor time, all processes together.
    #[schema(minimum = 0.001)]
    pub cpu_time: Option<f64>,
    /// Processors, such as 0.5.
    #[schema(minimum = 0.001)]
    pub cpus: Option<f64>,
    /// Bytes.
    #[schema(minimum = 1)]
    pub memory: Option<u64>,
    #[schema(minimum = 1)]
    pub processes: Option<u64>,
    /// Bytes in each writable place.
    #[schema(minimum = 1)]
    pub disk: Option<u64>,
    #[schema(minimum = 1)]
    pub open_files: Option<u64>,
    /// Bytes of output, and of error output, that are passed on.
    pub output: Option<u64>,
}

impl Limits {
    fn asked(self) -> Result<Asked> {
        let seconds = |name: &str, value: Option<f64>| match value {
            None => Ok(None),
            Some(value) if (0.001..=LONGEST).contains(&value) => Ok(Some(Duration::from_secs_f64(value))),
            Some(_) => Err(Problem::wrong(format!("`{name}` is between 0.001 and {LONGEST} seconds"))),
        };
        let millicpus = match self.cpus {
            None => None,
            Some(cpus) if (0.001..=4096.0).contains(&cpus) => Some((cpus * 1000.0).round() as u32),
            Some(_) => return Err(Problem::wrong("`cpus` is between 0.001 and 4096")),
        };
        Ok(Asked {
            wall_time: seconds("timeout", self.timeout)?,
            millicpus,
            cpu_time: seconds("cpu_time", self.cpu_time)?,
            memory: self.memory,
            processes: self.processes,
            disk: self.disk,
            open_files: self.open_files,
            output: self.output,
        })
    }
}

/// What of the network it would like to have; the policy decides.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Network {
    /// `HOST[:PORT]`, or `@` and the name of a registry.
    pub allow: Vec<String>,
    pub deny: Vec<String>,
    /// None at all, whatever the policy gives.
    pub none: bool,
    /// Secrets to add outside: `NAME`, or `NAME@HOST`.
    pub secrets: Vec<String>,
}

/// What a command or a sandbox would like to have.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Options {
    pub limits: Limits,
    pub network: Network,
    pub environment: BTreeMap<String, String>,
    /// Where it starts, from the workspace on.
    #[schema(value_type = Option<String>)]
    pub directory: Option<PathBuf>,
    /// `native`, `wasm`, `gvisor`, `container` or `auto`.
    pub backend: Option<String>,
    /// Run in this image of a container engine.
    pub image: Option<String>,
    /// Files to collect when it has ended: folders or patterns.
    pub artifacts: Vec<String>,
    /// Which agent it is for; a token for an agent says so itself.
    pub agent: Option<String>,
    /// Bytes of each stream in the result.
    pub capture: Option<u64>,
    /// A folder of the host to work on, instead of a new one. Only for the tenant `local`.
    #[schema(value_type = Option<String>)]
    pub workspace: Option<PathBuf>,
    /// `cow`, `direct` or `readonly`.
    #[schema(value_type = Option<String>)]
    pub workspace_mode: Option<WorkspaceMode>,
    /// Paths of the host. Only for the tenant `local`.
    #[schema(value_type = Vec<String>)]
    pub read: Vec<PathBuf>,
    #[schema(value_type = Vec<String>)]
    pub write: Vec<PathBuf>,
    #[schema(value_type = Vec<String>)]
    pub hide: Vec<PathBuf>,
}

impl Options {
    pub fn wish(self, command: Vec<String>) -> Result<Wish> {
        let Network { allow, deny, none, secrets } = self.network;
        let capture = self.capture.unwrap_or(CAPTURED);
        if capture > MOST_CAPTURED {
            return Err(Problem::wrong(format!("`capture` is at most {MOST_CAPTURED} bytes")));
        }
        Ok(Wish {
            command,
            environment: self.environment.into_iter().collect(),
            directory: self.directory,
            workspace: self.workspace,
            workspace_mode: self.workspace_mode.unwrap_or_default(),
            read: self.read,
            write: self.write,
            hide: self.hide,
            allow,
            deny,
            no_network: none,
            secrets,
            limits: self.limits.asked()?,
            backend: self.backend,
            image: self.image,
            artifacts: self.artifacts,
            agent: self.agent,
            capture: Some(capture),
            terminal: false,
            revisions: Vec::new(),
            run: None,
        })
    }
}

/// Something to run in a sandbox of its own: a command, or code in a language.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RunRequest {
    /// The program and its words. No shell reads them.
    #[schema(example = json!(["ls", "-l"]))]
    pub command: Option<Vec<String>>,
    #[schema(schema_with = languages::names_or_none)]
    pub language: Option<Language>,
    #[schema(example = "print(6 * 7)")]
    pub code: Option<String>,
    /// Files of its workspace, by their paths in it.
    pub files: BTreeMap<String, FileContents>,
    pub stdin: Option<String>,
    /// Seconds after which it is ended; the same as `options.limits.timeout`.
    #[schema(minimum = 0.001)]
    pub timeout: Option<f64>,
    /// Answer with `text/event-stream`: what it says while it says it, then its result.
    pub stream: bool,
    pub options: Options,
}

/// Something to run in a sandbox that is kept. What it was made with holds; options are added to it.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ExecRequest {
    pub command: Vec<String>,
    pub stdin: Option<String>,
    #[schema(minimum = 0.001)]
    pub timeout: Option<f64>,
    pub stream: bool,
    /// Answer at once; it goes on whoever listens.
    pub background: bool,
    /// Its input stays open for `POST /v1/runs/{id}/stdin`.
    pub interactive: bool,
    pub options: Options,
}

/// A sandbox to be used again and again.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CreateRequest {
    pub name: Option<String>,
    /// What it begins with, instead of an empty workspace.
    pub from: Option<From>,
    pub files: BTreeMap<String, FileContents>,
    /// It stands at once, and stays until it is stopped: what is started in it goes on. Else each command sets it up anew. If it
    /// is not said: yes, where the backend can.
    pub open: Option<bool>,
    /// Seconds for which it stays open.
    #[schema(minimum = 1)]
    pub expires: Option<f64>,
    /// Seconds in which nothing is done in it over this API, after which it is stopped; 300 if neither is said.
    #[schema(minimum = 0)]
    pub idle: Option<f64>,
    pub options: Options,
}

/// Either a template, or another sandbox as it is or was at a snapshot. That one must not be open.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct From {
    pub template: Option<String>,
    pub sandbox: Option<String>,
    pub snapshot: Option<String>,
}

/// A run as it is now.
#[derive(Serialize, ToSchema)]
pub struct RunShown {
    pub id: String,
    /// `running`, `done` or `failed`; `unknown` if the record does not say how it ended.
    pub status: String,
    /// Seconds since 1970.
    pub created: u64,
    /// It was told to end before it did.
    pub cancelled: bool,
    /// What a person would be told at a terminal.
    pub notices: Vec<String>,
    /// As `belljar run --json` says it.
    #[schema(value_type = Option<Object>)]
    pub result: Option<Value>,
    #[schema(value_type = Option<Object>)]
    pub problem: Option<Value>,
    /// It is told from the record: how it ended, without what it said.
    pub recorded: Option<bool>,
}

/// A part of a list. `next` is what to send as `cursor` for the part after it.
#[derive(Serialize, ToSchema)]
pub struct Page {
    #[schema(value_type = Vec<Object>)]
    pub items: Vec<Value>,
    pub next: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct Paging {
    /// At most so many.
    #[param(minimum = 1, maximum = 1000)]
    pub limit: Option<usize>,
    /// As the page before said.
    pub cursor: Option<String>,
}

pub const MOST_ON_A_PAGE: usize = 1_000;

impl Paging {
    pub fn limit(&self) -> Result<usize> {
        match self.limit {
            None => Ok(100),
            Some(limit @ 1..=MOST_ON_A_PAGE) => Ok(limit),
            Some(_) => Err(Problem::wrong(format!("`limit` is between 1 and {MOST_ON_A_PAGE}"))),
        }
    }
}
