//! Findings in the Static Analysis Results Interchange Format, 2.1.0, as code hosts read it.

use std::collections::BTreeMap;

use model::{Finding, Scanned, Severity};
use serde_json::{Value, json};

pub fn log(scanned: &Scanned, version: &str) -> Value {
    let mut rules: BTreeMap<&str, &Finding> = BTreeMap::new();
    for finding in &scanned.findings {
        rules.entry(&finding.rule).or_insert(finding);
    }
    let places: BTreeMap<&str, usize> = rules.keys().enumerate().map(|(place, rule)| (*rule, place)).collect();
    let notes: Vec<Value> = scanned.unread.iter().map(|unread| note(unread)).collect();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "belljar",
                "version": version,
                "rules": rules.values().map(|finding| rule(finding)).collect::<Vec<_>>(),
            } },
            "columnKind": "unicodeCodePoints",
            "invocations": [{ "executionSuccessful": true, "toolExecutionNotifications": notes }],
            "results": scanned.findings.iter().map(|finding| result(finding, &places)).collect::<Vec<_>>(),
        }],
    })
}

fn note(text: &str) -> Value {
    json!({ "level": "warning", "message": { "text": format!("not scanned: {text}") } })
}

fn rule(finding: &Finding) -> Value {
    let Finding { rule, class, severity, cwe, message, fix, .. } = finding;
    let mut tags = vec!["security".to_owned(), class.clone()];
    tags.extend(cwe.map(|number| format!("external/cwe/cwe-{number:03}")));
    json!({
        "id": rule,
        "shortDescription": { "text": message },
        "help": { "text": if fix.is_empty() { message } else { fix } },
        "defaultConfiguration": { "level": level(*severity) },
        "properties": { "tags": tags, "security-severity": score(*severity) },
    })
}

fn result(finding: &Finding, places: &BTreeMap<&str, usize>) -> Value {
    let Finding { rule, severity, message, at, excerpt, .. } = finding;
    // What was found inside of something is told of the place in the file where that stands.
    let text = at.within().map_or_else(|| message.clone(), |within| format!("{message} (in {within})"));
    json!({
        "ruleId": rule,
        "ruleIndex": places.get(rule.as_str()),
        "level": level(*severity),
        "message": { "text": text },
        "locations": [{ "physicalLocation": {
            "artifactLocation": { "uri": uri(&at.name) },
            "region": {
                "startLine": at.line.max(1),
                "startColumn": at.column.max(1),
                "snippet": { "text": excerpt },
            },
        } }],
    })
}

fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Critical | Severity::High => "error",
        Severity::Medium => "warning",
        Severity::Low => "note",
    }
}

/// As code hosts sort by it.
fn score(severity: Severity) -> &'static str {
    match severity {
        Severity::Critical => "9.5",
        Severity::High => "8.0",
        Severity::Medium => "5.0",
        Severity::Low => "2.0",
    }
}

/// A path as a relative reference.
fn uri(path: &str) -> String {
    let path = path.strip_prefix("./").unwrap_or(path);
    path.bytes()
        .map(|byte| match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => char::from(byte).to_string(),
            byte => format!("%{byte:02X}"),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Inside, Spot};

    #[test]
    fn a_place_is_in_a_file_whatever_the_file_is_called_and_whatever_is_in_it() {
        let finding = |name: &str, inside: Vec<Inside>| Finding {
            rule: "a.b".to_owned(),
            class: "a".to_owned(),
            severity: Severity::High,
            cwe: None,
            message: "it is bad".to_owned(),
            fix: String::new(),
            at: Spot { name: name.to_owned(), line: 3, column: 5, inside, ..Spot::default() },
            excerpt: String::new(),
        };
        let shell = Inside { what: "shell".to_owned(), line: 7, column: 9 };
        let findings = vec![finding("./a > b.py", Vec::new()), finding("x.py", vec![shell])];
        let log = log(&Scanned { findings, ..Scanned::default() }, "1");
        let of = |place: usize| &log["runs"][0]["results"][place];
        let location = |place: usize| &of(place)["locations"][0]["physicalLocation"];
        assert_eq!(location(0)["artifactLocation"]["uri"], "a%20%3E%20b.py");
        assert_eq!(location(1)["artifactLocation"]["uri"], "x.py");
        assert_eq!(
            (&location(1)["region"]["startLine"], &location(1)["region"]["startColumn"]),
            (&json!(3), &json!(5))
        );
        assert_eq!(of(1)["message"]["text"], "it is bad (in its shell, line 7)");
    }
}
