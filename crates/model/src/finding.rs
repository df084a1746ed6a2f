//! What a scanner found in bytes: never proof of good, sometimes of bad.

use serde::{Deserialize, Serialize};

/// How grave a finding is. The order is the meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    Low,
    Medium,
    High,
    Critical,
}

impl Severity {
    pub const ALL: [Severity; 4] = [Severity::Low, Severity::Medium, Severity::High, Severity::Critical];

    pub fn name(self) -> &'static str {
        match self {
            Severity::Low => "low",
            Severity::Medium => "medium",
            Severity::High => "high",
            Severity::Critical => "critical",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// The rule that says so, such as `python.process.os-system`.
    pub rule: String,
    /// What kind of thing it is about, such as `process` or `secret`: the unit of policies and of tables.
    pub class: String,
    pub severity: Severity,
    /// The number in the Common Weakness Enumeration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwe: Option<u32>,
    pub message: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub fix: String,
    pub at: Spot,
    /// A few words of what was found, safe to show. Never a secret's value.
    pub excerpt: String,
}

impl Finding {
    /// For people: `x.py:3:1: high: it starts a shell (python.process.os-system)`.
    pub fn line(&self) -> String {
        let Finding { rule, severity, message, at, .. } = self;
        format!("{}:{}:{}: {}: {message} ({rule})", at.name, at.line, at.column, severity.name())
    }
}

/// Where in what was scanned. Lines and columns count from 1, columns in letters; bytes from 0.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Spot {
    /// The file, or what else it was: `-c`, `standard input`; inside of something, what and what in it.
    pub name: String,
    pub line: u32,
    pub column: u32,
    pub start: u64,
    pub end: u64,
}

/// What scanners say of the code of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inspected {
    /// The gravest first.
    pub findings: Vec<Finding>,
    /// What could not be looked at, and why: programs without source, files that are not there.
    pub unread: Vec<String>,
}
