//! Scanning files for people and for CI, apart from any run.

use std::path::PathBuf;

use serde::Serialize;

use crate::{Finding, Trouble};

pub trait Scans {
    /// What is in these files, and in all files of these folders. Links are not followed.
    fn scan(&self, paths: &[PathBuf]) -> Result<Scanned, Trouble>;
    /// Every rule, by its name.
    fn rules(&self) -> Result<Vec<RuleInfo>, Trouble>;
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Scanned {
    pub files: u64,
    pub bytes: u64,
    /// In the order of the files, and in a file from the top.
    pub findings: Vec<Finding>,
    /// What could not be read, and why.
    pub unread: Vec<String>,
}

/// A rule of the scanner, for those who list them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RuleInfo {
    pub id: String,
    pub class: String,
    pub severity: crate::Severity,
    pub languages: Vec<String>,
    pub message: String,
}
