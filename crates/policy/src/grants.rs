//! The smallest change that would turn a no into a yes: what a person can take over, and a model can ask for.

use model::{Envelope, Resource};

use crate::host::HostPattern;
use crate::rule::Rule;

/// Where a default, or silence, is in the way.
pub fn grant_for(envelope: &Envelope, about: &str) -> String {
    match &envelope.resource {
        Resource::Path(path) if envelope.action == model::Action::Read => format!("[files] read = [{}]", quoted(path)),
        Resource::Path(path) if envelope.action == model::Action::Write => {
            format!("[files] write = [{}]", quoted(path))
        }
        Resource::Path(path) => {
            format!("[[rule]] when = {{ action = \"commit\", path = {} }}, then = \"allow\"", quoted(path))
        }
        Resource::Variable(name) => format!("[environment] pass = [{}]", quoted(name)),
        Resource::Wall(name) => format!("[isolation] accept_gaps = [{}]", quoted(name)),
        Resource::Host { name, port } => {
            let host = host(name, *port);
            format!("[network] allow = [{}], or `--allow-net {host}`", quoted(&host))
        }
        Resource::Request { host: name, port, method, path } => format!(
            "[[rule]] when = {{ host = {}, method = {}, url = {} }}, then = \"allow\"",
            quoted(&host(name, *port)),
            quoted(method),
            quoted(path)
        ),
        Resource::Secret { name, host } => format!("[secrets.{name}] hosts = [{}]", quoted(host)),
        Resource::Code { language: Some(language), .. } => format!("[code] languages = [{}]", quoted(language)),
        Resource::Code { language: None, .. } => "say which language it is in".to_owned(),
        Resource::Artifact { .. } => "[defaults] release = \"allow\"".to_owned(),
        Resource::Command(_) | Resource::Shell(_) => {
            let program = about.split_whitespace().next().unwrap_or_default();
            let program = program.rsplit('/').next().unwrap_or(program);
            format!("[[rule]] when = {{ program = {} }}, then = \"allow\"", quoted(program))
        }
    }
}

/// Where nobody knows what a program prints, and a shell would run it.
pub fn grant_for_printed(shell: &str, printing: &[String]) -> String {
    let [shell, printing] = [quoted(shell), printing.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(", ")];
    format!("in your own policy: [[rule]] when = {{ program = {shell}, fed_by = [{printing}] }}, then = \"allow\"")
}

/// Where a rule is in the way.
pub fn grant_for_rule(rule: &Rule) -> String {
    match rule.place.split_once(':') {
        Some(("preset", _)) => format!("disable = [{}]", quoted(&rule.id)),
        _ => format!("a change of the rule `{}` ({})", rule.id, rule.place),
    }
}

/// As one would write it in a rule or a flag.
fn host(name: &str, port: u16) -> String {
    match HostPattern::of_envelope(name, port) {
        Some(pattern) => pattern.to_string(),
        None => format!("{}:{port}", name.escape_debug()),
    }
}

/// As TOML writes a text.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' => quoted += "\\\"",
            '\\' => quoted += "\\\\",
            letter if letter.is_control() => quoted += &format!("\\u{:04X}", u32::from(letter)),
            letter => quoted.push(letter),
        }
    }
    quoted + "\""
}
