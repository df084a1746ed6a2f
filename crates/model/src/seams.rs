//! Where rooms meet: each trait is implemented on one side and used on the other.

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::{Enforcement, Grant, Outcome, Request, SetupFailure};

/// What front-ends ask the engine for.
pub trait Service {
    fn run(&self, request: &Request) -> Outcome;
    /// What `run` would do, without doing it.
    fn explain(&self, request: &Request) -> Result<Plan, Outcome>;
    /// What this host can hold.
    fn diagnose(&self) -> Diagnosis;
}

/// A kind of isolation: a grant in, a sandbox out.
pub trait Backend {
    fn name(&self) -> &'static str;
    /// How well each wall would be held for this grant on this host.
    fn assess(&self, grant: &Grant) -> Enforcement;
    /// What `open` would do, step by step. Pure, given what `assess` knows of the host.
    fn plan(&self, grant: &Grant) -> Result<Plan, SetupFailure>;
    /// Raises every wall. `trace`: keep the time that each step takes.
    fn open(&self, grant: &Grant, trace: bool) -> Result<Box<dyn Sandbox>, SetupFailure>;
    /// What this host can hold, tried out for real.
    fn diagnose(&self) -> BackendReport;
}

/// A live enclosed place, with the payload in it.
pub trait Sandbox {
    /// Watches over limits and denials until the end, and leaves nothing behind.
    fn supervise(self: Box<Self>) -> Outcome;
}

/// A plan as people and programs read it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Plan {
    pub backend: String,
    #[serde(serialize_with = "shown")]
    pub program: PathBuf,
    pub arguments: Vec<String>,
    #[serde(serialize_with = "shown")]
    pub directory: PathBuf,
    pub environment: Vec<String>,
    pub steps: Vec<Step>,
    pub enforcement: Enforcement,
}

/// A path that is no text is still shown, as well as it can be.
fn shown<S: serde::Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&path.display())
}

/// One step of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Step {
    /// Who takes it: the parent, before or after the fork, or the child.
    pub by: &'static str,
    pub does: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Diagnosis {
    pub version: String,
    pub kernel: String,
    pub backends: Vec<BackendReport>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BackendReport {
    pub backend: String,
    pub usable: bool,
    pub findings: Vec<Finding>,
    pub enforcement: Enforcement,
}

/// Something of the host that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub what: String,
    pub works: bool,
    pub detail: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub fix: String,
}
