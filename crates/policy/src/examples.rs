//! The examples of a rule, tried when its file is read: a rule that does not do what its author thinks is found out now.

use model::{Action, Context, Envelope, Principal, Resource, Ruling};

use crate::argument::Told;
use crate::carried;
use crate::host::{HostPattern, read_host};
use crate::paths::Whereabouts;
use crate::pattern::Roots;
use crate::rule::{Condition, Part, Rule};

/// `wanted`: the rule is about it; else it is not.
pub fn check(rule: &Rule, example: &str, wanted: bool, roots: Roots<'_>) -> Result<(), String> {
    let told =
        rule.actions.iter().map(|action| try_out(rule, *action, example, roots)).collect::<Result<Vec<_>, _>>()?;
    let told = told.into_iter().max().unwrap_or(Told::No);
    let id = &rule.id;
    match (wanted, told) {
        (true, Told::Yes) | (false, Told::No) => Ok(()),
        // Who asks or denies does so, too, when it can't be told.
        (true, Told::Maybe) if rule.then != Ruling::Allow => Ok(()),
        (true, _) => Err(format!("the rule `{id}` says it matches `{}`, but it does not", example.escape_debug())),
        (false, _) => Err(format!("the rule `{id}` says it passes `{}`, but it matches", example.escape_debug())),
    }
}

fn try_out(rule: &Rule, action: Action, example: &str, roots: Roots<'_>) -> Result<Told, String> {
    let bad = |what: &str| format!("`{}` is no {what}, which the rule `{}` is about", example.escape_debug(), rule.id);
    let workspace = roots.project.unwrap_or("/workspace");
    let full = || match example {
        path if path.starts_with('/') => path.to_owned(),
        path if path.starts_with("~/") => format!("{}{}", roots.home, &path[1..]),
        path => format!("{workspace}/{path}"),
    };
    let resource = match action {
        Action::Exec => Resource::Shell(example.to_owned()),
        Action::Code => {
            let (language, bytes) = with_size(rule, example)?;
            Resource::Code { language: Some(language.to_owned()), bytes: bytes.unwrap_or(0) }
        }
        Action::Read | Action::Write | Action::Commit => Resource::Path(full()),
        Action::Environment => Resource::Variable(example.to_owned()),
        Action::Gap => Resource::Wall(example.to_owned()),
        Action::Connect if rule.reads() || example.contains(' ') => {
            request(example).ok_or_else(|| bad("request such as `GET https://example.org/a`"))?
        }
        Action::Connect => {
            let pattern = HostPattern::read(example).map_err(|_| bad("host with a port"))?;
            let port = pattern.port().ok_or_else(|| bad("host with a port"))?;
            Resource::Host { name: pattern.host(), port }
        }
        Action::SecretUse => {
            let (name, host) = example.split_once(" to ").ok_or_else(|| bad("`NAME to HOST`"))?;
            Resource::Secret { name: name.to_owned(), host: host.to_owned() }
        }
        Action::Release => {
            let (name, bytes) = with_size(rule, example)?;
            Resource::Artifact { name: name.to_owned(), bytes: bytes.unwrap_or(0) }
        }
    };
    let mut envelope = Envelope {
        principal: Principal::default(),
        action,
        resource,
        context: Context {
            directory: workspace.to_owned(),
            home: roots.home.to_owned(),
            workspaces: vec![workspace.to_owned()],
            ..Context::default()
        },
    };
    // Examples are about what is done, not about who does it or how: that is taken as given.
    for condition in rule.conditions.all() {
        match condition {
            Condition::Mode(mode) => envelope.context.workspace_mode = *mode,
            Condition::Agent(names) => envelope.principal.agent = names.first().map(|name| name.written().to_owned()),
            _ => {}
        }
    }
    if action != Action::Exec {
        return Ok(rule.matches(&Part::of(&envelope, None)));
    }
    let reading = shell::of_line(example);
    if let Some(unclear) = reading.unclear.first()
        && reading.commands.is_empty()
    {
        return Err(format!("the example `{}` is no command: {unclear}", example.escape_debug()));
    }
    // A rule that allows is not heard about what a command carries.
    let carries = rule.then != Ruling::Allow;
    let mut place = Whereabouts::at(workspace);
    let mut told = Told::No;
    for command in &reading.commands {
        let within = if carries { carried::by(command).commands } else { Vec::new() };
        let heard = std::iter::once(command).chain(&within);
        told = heard.map(|one| rule.matches(&Part::of(&envelope, Some(one)).from(&place))).fold(told, Told::max);
        place.follow(command, roots.home);
    }
    Ok(told)
}

/// `GET https://example.org/a?b`.
fn request(example: &str) -> Option<Resource> {
    let (method, url) = example.split_once(' ')?;
    let (scheme, rest) = url.split_once("://")?;
    let usual = match scheme {
        "https" => 443,
        "http" => 80,
        _ => return None,
    };
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let (name, port) = match authority.rsplit_once(':') {
        Some((name, port)) if !name.contains(':') || name.ends_with(']') => {
            (name, port.parse().ok().filter(|p| *p > 0)?)
        }
        _ => (authority, usual),
    };
    let host = read_host(name)?.to_string();
    let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
    Some(Resource::Request { host, port, method: method.to_owned(), path })
}

/// `python of 2M`: what it is, and how large, which a rule about sizes must be told.
fn with_size<'a>(rule: &Rule, example: &'a str) -> Result<(&'a str, Option<u64>), String> {
    let is_about_sizes = rule.conditions.all().iter().any(|condition| matches!(condition, Condition::LargerThan(_)));
    match example.rsplit_once(" of ") {
        Some((name, size)) if is_about_sizes => {
            let bytes = model::units::bytes(size).map_err(|error| {
                format!("the example `{}` of the rule `{}`: {error}", example.escape_debug(), rule.id)
            })?;
            Ok((name, Some(bytes)))
        }
        None if is_about_sizes => Err(format!(
            "the rule `{}` is about sizes, and its example `{}` has none; write `{} of 2M`",
            rule.id,
            example.escape_debug(),
            example.escape_debug()
        )),
        _ => Ok((example, None)),
    }
}
