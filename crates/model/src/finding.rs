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
        format!("{}: {}: {message} ({rule})", at.shown(), severity.name())
    }
}

/// Where in what was scanned. Lines and columns count from 1, columns in letters; bytes from 0.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Spot {
    /// The file, or what else it was: `` `sh -c` code ``, `standard input`.
    pub name: String,
    pub line: u32,
    pub column: u32,
    pub start: u64,
    pub end: u64,
    /// What stands there and holds what was found, the outermost first: code within code.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inside: Vec<Inside>,
}

/// A text within another, and the place in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Inside {
    /// `shell`, `base64`, `recipe` and the like.
    pub what: String,
    pub line: u32,
    pub column: u32,
}

impl Spot {
    /// For people: `x.py:3:5`, `x.py:3:5 (in its base64, line 2)`, `` `sh -c` code, line 1 ``.
    pub fn shown(&self) -> String {
        let Spot { name, line, column, .. } = self;
        // What is no file can't be opened at a column.
        let place = match (line, name.starts_with('`') || name == "standard input") {
            (0, _) => name.clone(),
            (line, true) => format!("{name}, line {line}"),
            (line, false) => format!("{name}:{line}:{column}"),
        };
        match self.within() {
            Some(within) => format!("{place} (in {within})"),
            None => place,
        }
    }

    /// What holds it, innermost last: `its base64, line 2, its shell, line 1`. Where it is on the first line, that is
    /// not said.
    pub fn within(&self) -> Option<String> {
        let one = |Inside { what, line, .. }: &Inside| match line {
            0 | 1 => format!("its {what}"),
            line => format!("its {what}, line {line}"),
        };
        (!self.inside.is_empty()).then(|| self.inside.iter().map(one).collect::<Vec<_>>().join(", "))
    }
}

/// What scanners say of the code of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inspected {
    /// The gravest first.
    pub findings: Vec<Finding>,
    /// What could not be looked at, and why: programs without source, files that are not there.
    pub unread: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_said_as_people_look_for_it() {
        let spot = Spot { name: "a > b.py".to_owned(), line: 3, column: 5, ..Spot::default() };
        assert_eq!(spot.shown(), "a > b.py:3:5");
        let inside = |what: &str, line| Inside { what: what.to_owned(), line, column: 1 };
        let nested = Spot { inside: vec![inside("base64", 2), inside("shell", 1)], ..spot.clone() };
        assert_eq!(nested.shown(), "a > b.py:3:5 (in its base64, line 2, its shell)");
        let words = Spot { name: "`sh -c` code".to_owned(), line: 1, column: 12, ..Spot::default() };
        assert_eq!(words.shown(), "`sh -c` code, line 1");
        assert_eq!(Spot { name: "a.zip".to_owned(), ..Spot::default() }.shown(), "a.zip");
    }
}
