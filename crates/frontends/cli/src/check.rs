//! `belljar check`: what the policy says to something, without doing it.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::ArgMatches;
use model::{Check, Checked, Judgement, Policies, Reason, Ruling};

use crate::words::{self, Layout};

/// Wrong usage, as sysexits(3) has it: the other codes are answers.
pub const USAGE: u8 = 64;

pub fn check(matches: &ArgMatches, policies: &dyn Policies) -> u8 {
    let asked = match asked(matches) {
        Ok(asked) => asked,
        Err(message) => return complain(&message),
    };
    let agent = matches.get_one::<String>("agent").map(String::as_str);
    let candidate = matches.get_one::<PathBuf>("policy").map(PathBuf::as_path);
    let checked = match policies.check(&asked, agent, candidate) {
        Ok(checked) => checked,
        Err(trouble) => return complain(&format!("belljar: {trouble}")),
    };
    let text = match matches.get_flag("json") {
        true => words::json(&checked, Layout::Page),
        false => Ok(words::page(lines(&checked))),
    };
    if !words::print(text) {
        return USAGE;
    }
    match checked.judgement.ruling {
        Ruling::Allow => 0,
        Ruling::Deny => 2,
        Ruling::Ask => 3,
    }
}

fn complain(message: &str) -> u8 {
    words::say(message);
    USAGE
}

fn asked(matches: &ArgMatches) -> Result<Check, String> {
    let path = |name: &str| matches.get_one::<PathBuf>(name).cloned();
    if let Some(file) = path("code") {
        return Ok(Check::Code { file, language: matches.get_one::<String>("language").cloned() });
    }
    if let Some(path) = path("path") {
        return Ok(match matches.get_one::<String>("op").map(String::as_str) {
            Some("write") => Check::Write(path),
            Some("commit") => Check::Commit(path),
            _ => Check::Read(path),
        });
    }
    if let Some(host) = matches.get_one::<String>("host") {
        let text = |name: &str| matches.get_one::<String>(name).cloned();
        let request = match (text("method"), text("url")) {
            (None, None) => None,
            (method, url) => Some((method.unwrap_or_else(|| "GET".to_owned()), url.unwrap_or_else(|| "/".to_owned()))),
        };
        return read_host(host, request);
    }
    let words: Vec<OsString> = matches.get_many::<OsString>("command").into_iter().flatten().cloned().collect();
    match words.as_slice() {
        [] => Err("belljar: there is nothing to check; name a command: `belljar check 'git push'`".to_owned()),
        // One word is a line, as one would type it; several are a command's words.
        [line] => match line.to_str() {
            Some(line) => Ok(Check::Line(line.to_owned())),
            None => Err("belljar: the command is no text in UTF-8; write it in UTF-8".to_owned()),
        },
        _ => Ok(Check::Words(words)),
    }
}

fn read_host(host: &str, request: Option<(String, String)>) -> Result<Check, String> {
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) if !name.contains(':') || name.ends_with(']') => (name, port),
        _ => (host, "443"),
    };
    match port.parse() {
        Ok(port) if port > 0 && !name.is_empty() => Ok(Check::Host { name: name.to_owned(), port, request }),
        _ => Err(format!("belljar: `{host}` is no host; write `example.org` or `example.org:8080`")),
    }
}

/// The verdict, then who says so and why.
pub fn lines(checked: &Checked) -> Vec<String> {
    let Checked { judgement: Judgement { ruling, reasons }, envelope, revision: _ } = checked;
    let mut lines = vec![format!("{}: {} `{}`", ruling.name(), envelope.action, envelope.resource)];
    for Reason { ruling, rule, place, why, action, about, grant } in reasons {
        let place = if place.is_empty() { String::new() } else { format!(" ({place})") };
        lines.push(format!("  {} by {rule}{place}", ruling.name()));
        let is_part = *about != envelope.resource.to_string();
        if is_part || *action != envelope.action {
            lines.push(format!("    about: {action} `{about}`"));
        }
        lines.push(format!("    why: {why}"));
        if *ruling != Ruling::Allow {
            lines.push(format!("    what would allow it: {grant}"));
        }
    }
    lines
}
