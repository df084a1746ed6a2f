//! What tools take. The comments here are what a model reads.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use model::Language;
use rmcp::model::JsonObject;
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use service::job::Favored;
use service::{Contents, Wish};

use crate::languages;
use crate::said::Failure;

/// Longer is no limit.
const LONGEST: f64 = 30.0 * 24.0 * 3600.0;
/// Of each stream in a result, in bytes.
const CAPTURED: u64 = 64 << 10;

pub fn read<T: DeserializeOwned>(arguments: Option<JsonObject>) -> Result<T, Failure> {
    let arguments = serde_json::Value::Object(arguments.unwrap_or_default());
    serde_json::from_value(arguments).map_err(|error| {
        Failure::wrong(format!("the arguments can't be understood: {error}")).fix("see the tool's input schema")
    })
}

/// What a run would like to have besides its command; the policy decides.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Network {
    /// Hosts to reach: `HOST[:PORT]`, or `@` and the name of a registry such as `@pypi`.
    pub allow: Vec<String>,
    /// Names of kept secrets that are added outside of the sandbox: `NAME` or `NAME@HOST`. Values never come in.
    pub secrets: Vec<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunCommand {
    /// The program and its words. No shell reads them; for a line of shell: ["sh", "-c", "…"].
    pub command: Vec<String>,
    /// Id or name of the sandbox to run in. Without it: the default sandbox if this server has one, else a new one for this
    /// run, which is kept under the id in the result if the run changed something.
    pub sandbox: Option<String>,
    /// Where it starts, from the workspace on.
    pub directory: Option<PathBuf>,
    /// Its input, as text.
    pub stdin: Option<String>,
    /// Seconds after which it is ended.
    #[schemars(range(min = 0.001))]
    pub timeout: Option<f64>,
    /// Variables to set.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    #[serde(default)]
    pub network: Network,
    /// Files to collect when it has ended: folders or patterns such as `out/*.png`. See `list_artifacts`.
    #[serde(default)]
    pub artifacts: Vec<String>,
    /// Only without a sandbox: files of the new workspace, by their paths in it.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunCode {
    #[schemars(schema_with = "languages::names")]
    pub language: Language,
    /// The code. Without `context`, variables do not stay: what it should be remembered by is a file of the sandbox.
    pub code: String,
    /// Name of a context of python, javascript or bash, in which variables stay from call to call: any name, such as `main`, and the
    /// same one again to go on there. It is made when it is first named, and lives in a `sandbox` that is open. The result's `fresh`
    /// says that it is new, so that nothing of earlier calls is there.
    pub context: Option<String>,
    /// As of `run_command`. With `context`: one that is open.
    pub sandbox: Option<String>,
    /// Where it starts, from the workspace on.
    pub directory: Option<PathBuf>,
    /// Its input, as text.
    pub stdin: Option<String>,
    /// Seconds after which it is ended.
    #[schemars(range(min = 0.001))]
    pub timeout: Option<f64>,
    #[serde(default)]
    pub network: Network,
    /// As of `run_command`.
    #[serde(default)]
    pub artifacts: Vec<String>,
}

impl RunCommand {
    pub fn wish(&mut self) -> Result<Wish, Failure> {
        if self.command.first().is_none_or(String::is_empty) {
            return Err(Failure::wrong("`command` is empty").fix("say the program and its words"));
        }
        let mut wish = Wish {
            command: std::mem::take(&mut self.command),
            environment: std::mem::take(&mut self.environment).into_iter().collect(),
            directory: self.directory.take(),
            artifacts: std::mem::take(&mut self.artifacts),
            capture: Some(CAPTURED),
            ..Wish::default()
        };
        let Network { allow, secrets } = std::mem::take(&mut self.network);
        (wish.allow, wish.secrets) = (allow, secrets);
        wish.limits.wall_time = seconds(self.timeout)?;
        Ok(wish)
    }

    pub fn files(&mut self) -> service::job::Files {
        std::mem::take(&mut self.files).into_iter().map(|(name, text)| (name, Contents::Text(text))).collect()
    }
}

fn seconds(timeout: Option<f64>) -> Result<Option<Duration>, Failure> {
    match timeout {
        None => Ok(None),
        Some(seconds) if (0.001..=LONGEST).contains(&seconds) => Ok(Some(Duration::from_secs_f64(seconds))),
        Some(_) => Err(Failure::wrong(format!("`timeout` is between 0.001 and {LONGEST} seconds"))),
    }
}

/// For code in a context, which has nothing else of its own.
pub fn timed(timeout: Option<f64>) -> Result<Wish, Failure> {
    let mut wish = Wish { capture: Some(CAPTURED), ..Wish::default() };
    wish.limits.wall_time = seconds(timeout)?;
    Ok(wish)
}

impl Network {
    pub fn is_empty(&self) -> bool {
        self.allow.is_empty() && self.secrets.is_empty()
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Diff {
    /// Id or name of the sandbox; the default one if this server has one.
    pub sandbox: Option<String>,
    /// Another sandbox: how that one differs from this.
    pub other: Option<String>,
    /// Only this path, and what is below it.
    pub path: Option<PathBuf>,
    /// With the changes as a unified patch.
    #[serde(default)]
    pub patch: bool,
}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Favor {
    /// Keep what is on the host.
    Ours,
    /// Take what the sandbox made.
    Theirs,
}

impl From<Favor> for Favored {
    fn from(favor: Favor) -> Favored {
        match favor {
            Favor::Ours => Favored::Ours,
            Favor::Theirs => Favored::Theirs,
        }
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Apply {
    /// Id or name of the sandbox; the default one if this server has one.
    pub sandbox: Option<String>,
    /// Only these, and what is below them; everything without it. What is shown apart is only taken when it is named.
    #[serde(default)]
    pub paths: Vec<PathBuf>,
    /// Where both changed the same: `ours` keeps the host's, `theirs` takes the sandbox's.
    pub favor: Option<Favor>,
    /// Only say what would happen; nobody is asked.
    #[serde(default)]
    pub check: bool,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Snapshot {
    /// Id or name of the sandbox; the default one if this server has one.
    pub sandbox: Option<String>,
    /// A name for this state; the next free one without it.
    pub name: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rollback {
    /// Id or name of the sandbox; the default one if this server has one.
    pub sandbox: Option<String>,
    /// Which snapshot; the newest without it.
    pub snapshot: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Fork {
    /// Id or name of the sandbox; the default one if this server has one.
    pub sandbox: Option<String>,
    /// How many.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 64))]
    pub count: usize,
}

fn one() -> usize {
    1
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListArtifacts {
    /// Only those of this run or sandbox, by its id.
    pub of: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GetArtifact {
    /// As `list_artifacts` says it.
    pub id: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExplainDenial {
    /// A run's id, as its result said: what was denied to it while it ran.
    pub run: Option<String>,
    /// A command, as words: what the policy says to it, and why, without running it.
    pub command: Option<Vec<String>>,
    /// Of a command: the sandbox that it would be run in, whose project may have a policy of its own.
    pub sandbox: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RequestPermission {
    /// Exactly the command that is to be run afterwards.
    pub command: Vec<String>,
    /// The sandbox that it is to be run in, as `run_command` will be told.
    pub sandbox: Option<String>,
    /// As `run_command` will be told.
    pub directory: Option<PathBuf>,
    /// As `run_command` will be told.
    #[serde(default)]
    pub network: Network,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadFile {
    /// Id or name of the sandbox; the default one if this server has one.
    pub sandbox: Option<String>,
    /// From the workspace on, or absolute inside the sandbox.
    pub path: String,
    /// From this byte on.
    #[serde(default)]
    pub from: u64,
    /// So many bytes at most.
    #[schemars(range(min = 1, max = 1_048_576))]
    pub length: Option<u64>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WriteFile {
    /// Id or name of the sandbox; the default one if this server has one.
    pub sandbox: Option<String>,
    /// From the workspace on, or absolute inside the sandbox. Folders that lead to it are made.
    pub path: String,
    /// All of its contents, as text. Either this or `base64`.
    pub text: Option<String>,
    /// All of its contents, in base64.
    pub base64: Option<String>,
    /// Only if nothing is there yet.
    #[serde(default)]
    pub new: bool,
    /// Only if what is there has this digest, as `read_file` said it.
    pub digest: Option<String>,
    /// It may be run as a program.
    #[serde(default)]
    pub executable: bool,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Edit {
    /// Exactly this text, which must be there.
    pub old: String,
    /// Stands in its place afterwards.
    pub new: String,
    /// Everywhere; without it, `old` must be there exactly once.
    #[serde(default)]
    pub all: bool,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EditFile {
    /// Id or name of the sandbox; the default one if this server has one.
    pub sandbox: Option<String>,
    /// From the workspace on, or absolute inside the sandbox.
    pub path: String,
    /// One after the other; all of them, or none.
    #[schemars(length(min = 1))]
    pub edits: Vec<Edit>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListFiles {
    /// Id or name of the sandbox; the default one if this server has one.
    pub sandbox: Option<String>,
    /// A folder; the workspace without it.
    pub path: Option<String>,
    /// 1: only what is in it.
    #[serde(default = "first")]
    #[schemars(range(min = 1, max = 32))]
    pub depth: u64,
}

fn first() -> u64 {
    1
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SearchFiles {
    /// Id or name of the sandbox; the default one if this server has one.
    pub sandbox: Option<String>,
    /// What to look for in the lines of files.
    pub pattern: String,
    /// At and below this; the workspace without it.
    pub path: Option<String>,
    /// `pattern` is a regular expression.
    #[serde(default)]
    pub regex: bool,
    #[serde(default)]
    pub ignore_case: bool,
    /// Only files with such names: `*.py`.
    pub names: Option<String>,
    /// So many matches at most.
    #[schemars(range(min = 1, max = 2000))]
    pub most: Option<u64>,
}
