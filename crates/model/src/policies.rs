//! What can be asked about policies, besides being judged by them.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::{Envelope, Judgement, Ruling, Trouble};

/// What front-ends ask of the engine about policies. `candidate`: a file that is taken for the user's own.
pub trait Policies {
    /// What the policy says to something, without doing it.
    fn check(&self, asked: &Check, agent: Option<&str>, candidate: Option<&Path>) -> Result<Checked, Trouble>;
    /// What is in force here, and from where.
    fn show(&self) -> Result<InForce, Trouble>;
    /// What is wrong with a file, or with all that are in force.
    fn lint(&self, file: Option<&Path>) -> Result<Vec<Remark>, Trouble>;
    /// The form of policy files, or what rules in another language may speak of.
    fn schema(&self, language: Option<&str>) -> Result<&'static str, Trouble>;
    /// How what is in force would change.
    fn compare(&self, candidate: &Path) -> Result<Comparison, Trouble>;
    /// What would be answered differently to what was asked for in the past; by default as far back as is known.
    fn replay(&self, candidate: &Path, recorded: Option<&Path>) -> Result<Replay, Trouble>;
    /// Lets the project's file count in full, as it is now.
    fn trust(&self, folder: &Path) -> Result<Trusted, Trouble>;
    /// Takes that back.
    fn distrust(&self, folder: &Path) -> Result<PathBuf, Trouble>;
}

/// A project's file that counts in full from now on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trusted {
    pub file: PathBuf,
    pub says: Vec<SaidLine>,
}

/// Something that one would like to know the answer to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Check {
    /// A line for a shell.
    Line(String),
    Words(Vec<OsString>),
    /// A file; its language is told by its name or its first line, if it is not said.
    Code {
        file: PathBuf,
        language: Option<String>,
    },
    Read(PathBuf),
    Write(PathBuf),
    Commit(PathBuf),
    Host {
        name: String,
        port: u16,
        /// Method and path of a request to it; else the connection.
        request: Option<(String, String)>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Checked {
    #[serde(flatten)]
    pub judgement: Judgement,
    pub envelope: Envelope,
    pub revision: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct InForce {
    pub revision: String,
    pub files: Vec<PolicyFile>,
    /// Each owner's say, as lines that can be compared.
    pub voices: Vec<Said>,
    pub notes: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PolicyFile {
    pub file: String,
    pub owner: &'static str,
    /// For a project's file: whether the user trusts it as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trusted: Option<bool>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Said {
    pub owner: &'static str,
    pub lines: Vec<SaidLine>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct SaidLine {
    pub text: String,
    /// `file:line`, or a preset.
    pub place: String,
}

/// Something about a policy file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Remark {
    /// Nothing runs with it.
    pub is_error: bool,
    /// `file:line`.
    pub place: String,
    pub message: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Comparison {
    pub only_now: Vec<String>,
    pub only_then: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Replay {
    pub replayed: usize,
    /// Stricter than now.
    pub newly_denied: Vec<Changed>,
    /// Looser than now.
    pub newly_allowed: Vec<Changed>,
}

/// An envelope that would be answered differently, and how often it was asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Changed {
    pub envelope: Envelope,
    pub now: Ruling,
    pub then: Ruling,
    pub rule: String,
    pub place: String,
    pub why: String,
    pub times: usize,
}
