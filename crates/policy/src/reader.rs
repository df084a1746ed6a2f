//! Policy files: TOML, every key known, every error with its place.

use std::time::Duration;

use model::{Asked, Wall};
use serde::Deserialize;

/// What the owner of the machine allows. The default is what holds without any file.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// Ceilings: a request may ask for less, never for more.
    pub limits: Asked,
    pub pass_environment: Vec<String>,
    pub accepted_partly: Vec<Wall>,
    pub accepted_missing: Vec<Wall>,
}

impl Default for Policy {
    fn default() -> Policy {
        Policy {
            limits: Asked::default(),
            pass_environment: Vec::new(),
            // Limits that many hosts can only measure, and a second lock that older kernels have only part of.
            accepted_partly: vec![Wall::Memory, Wall::Disk, Wall::CpuTime, Wall::Landlock],
            accepted_missing: Vec::new(),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {message}")]
pub struct BadPolicy {
    pub file: String,
    pub line: usize,
    pub message: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    version: u32,
    #[serde(default)]
    environment: Environment,
    #[serde(default)]
    limits: Limits,
    #[serde(default)]
    accept_gaps: Vec<String>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Environment {
    #[serde(default)]
    pass: Vec<String>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Limits {
    timeout: Option<String>,
    cpus: Option<String>,
    cpu_time: Option<String>,
    memory: Option<String>,
    pids: Option<u64>,
    disk: Option<String>,
    files: Option<u64>,
    output: Option<String>,
}

impl Policy {
    /// Reads the text of `file`. Whatever is not understood is an error: a rule that is skipped would be a hole.
    pub fn read(file: &str, text: &str) -> Result<Policy, BadPolicy> {
        let bad = |message: String| BadPolicy { file: file.to_owned(), line: 1, message };
        let parsed: File = toml::from_str(text).map_err(|error| {
            let start = error.span().map_or(0, |span| span.start).min(text.len());
            let line = text.as_bytes()[..start].iter().filter(|byte| **byte == b'\n').count() + 1;
            BadPolicy { file: file.to_owned(), line, message: error.message().replace('\n', " ") }
        })?;
        let File { version, environment, limits, accept_gaps } = parsed;
        if version != 1 {
            return Err(bad(format!("version {version} is not known; this belljar reads version 1")));
        }
        let Limits { timeout, cpus, cpu_time, memory, pids, disk, files, output } = limits;
        let duration = |key: &str, text: Option<String>| -> Result<Option<Duration>, BadPolicy> {
            text.map(|text| model::units::duration(&text))
                .transpose()
                .map_err(|error| bad(format!("limits.{key}: {error}")))
        };
        let bytes = |key: &str, text: Option<String>| -> Result<Option<u64>, BadPolicy> {
            text.map(|text| model::units::bytes(&text))
                .transpose()
                .map_err(|error| bad(format!("limits.{key}: {error}")))
        };
        let count = |key: &str, number: Option<u64>| -> Result<Option<u64>, BadPolicy> {
            let checked = number.map(|number| model::units::count(&number.to_string())).transpose();
            checked.map_err(|error| bad(format!("limits.{key}: {error}")))
        };
        let walls: Result<Vec<Wall>, _> = accept_gaps.iter().map(|name| name.parse()).collect();
        Ok(Policy {
            limits: Asked {
                wall_time: duration("timeout", timeout)?,
                millicpus: cpus
                    .map(|text| model::units::processors(&text))
                    .transpose()
                    .map_err(|error| bad(format!("limits.cpus: {error}")))?,
                cpu_time: duration("cpu_time", cpu_time)?,
                memory: bytes("memory", memory)?,
                processes: count("pids", pids)?,
                disk: bytes("disk", disk)?,
                open_files: count("files", files)?,
                output: bytes("output", output)?,
            },
            pass_environment: environment.pass,
            accepted_missing: walls.map_err(|unknown: model::UnknownWall| bad(format!("accept_gaps: {unknown}")))?,
            ..Policy::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_of_nothing_is_refused_however_it_is_written() {
        // The two that are plain numbers were once taken as they were.
        for key in ["timeout", "cpus", "cpu_time", "memory", "pids", "disk", "files", "output"] {
            let zero = if ["pids", "files"].contains(&key) { "0" } else { "\"0\"" };
            let read = Policy::read("policy.toml", &format!("version = 1\nlimits.{key} = {zero}\n"));
            let message = read.expect_err("nothing is no limit").message;
            assert!(message.starts_with(&format!("limits.{key}: `0` is zero")), "{message}");
        }
    }
}
