//! `belljar scan`: what is in files, for people, programs and code hosts.

use std::path::PathBuf;

use clap::ArgMatches;
use model::{Finding, Scanned, Scans, Severity};

use crate::NOT_SET_UP;
use crate::sarif;
use crate::words::{self, Layout};

pub fn scan(matches: &ArgMatches, scans: &dyn Scans) -> u8 {
    if matches.get_flag("rules") {
        return list_rules(matches, scans);
    }
    let paths: Vec<PathBuf> = matches.get_many::<PathBuf>("path").into_iter().flatten().cloned().collect();
    let mut scanned = match scans.scan(&paths) {
        Ok(scanned) => scanned,
        Err(trouble) => {
            words::say(&format!("belljar: {trouble}"));
            return NOT_SET_UP;
        }
    };
    let least = severity(matches);
    let all = scanned.findings.len();
    scanned.findings.retain(|finding| finding.severity >= least);
    let less = all - scanned.findings.len();
    let text = if matches.get_flag("sarif") {
        words::json(&sarif::log(&scanned, env!("CARGO_PKG_VERSION")), Layout::Page)
    } else if matches.get_flag("json") {
        words::json(&scanned, Layout::Page)
    } else {
        Ok(words::page(lines(&scanned, less, least)))
    };
    if !words::print(text) {
        return NOT_SET_UP;
    }
    // Nothing found where nothing could be read is no answer.
    if scanned.files == 0 && !scanned.unread.is_empty() {
        return NOT_SET_UP;
    }
    u8::from(!scanned.findings.is_empty())
}

fn severity(matches: &ArgMatches) -> Severity {
    let said = matches.get_one::<String>("severity").map(String::as_str);
    Severity::ALL.into_iter().find(|severity| Some(severity.name()) == said).unwrap_or(Severity::Medium)
}

fn list_rules(matches: &ArgMatches, scans: &dyn Scans) -> u8 {
    let rules = match scans.rules() {
        Ok(rules) => rules,
        Err(trouble) => {
            words::say(&format!("belljar: {trouble}"));
            return NOT_SET_UP;
        }
    };
    let text = match matches.get_flag("json") {
        true => words::json(&rules, Layout::Page),
        false => Ok(words::page(rules.iter().map(|rule| {
            format!("{} ({}, {}): {}", rule.id, rule.severity.name(), rule.languages.join(" "), rule.message)
        }))),
    };
    if words::print(text) { 0 } else { NOT_SET_UP }
}

pub fn lines(scanned: &Scanned, less: usize, least: Severity) -> Vec<String> {
    let Scanned { files, bytes, findings, unread } = scanned;
    let mut lines = Vec::new();
    for finding in findings {
        lines.push(finding.line());
        let Finding { excerpt, fix, .. } = finding;
        if !excerpt.is_empty() {
            lines.push(format!("    {excerpt}"));
        }
        if !fix.is_empty() {
            lines.push(format!("    fix: {fix}"));
        }
    }
    lines.extend(unread.iter().map(|unread| format!("not scanned: {unread}")));
    let count = |severity: Severity| findings.iter().filter(|finding| finding.severity == severity).count();
    let counts: Vec<String> = Severity::ALL
        .iter()
        .rev()
        .map(|severity| (count(*severity), severity.name()))
        .filter(|(count, _)| *count > 0)
        .map(|(count, name)| format!("{count} {name}"))
        .collect();
    let found = if counts.is_empty() { "nothing found".to_owned() } else { counts.join(", ") };
    let less = match less {
        0 => String::new(),
        less => format!("; {less} below {} not shown (`--severity low`)", least.name()),
    };
    lines.push(format!("{files} files, {}: {found}{less}", words::size(*bytes)));
    lines
}
