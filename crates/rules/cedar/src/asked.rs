//! An envelope in Cedar's terms.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;

use cedar_policy::{Context, Entities, Entity, EntityTypeName, EntityUid, Request, RestrictedExpression, Schema};
use model::{Envelope, Resource, WorkspaceMode};

use crate::vocabulary::{Vocabulary, host_name, is_plain_path, named};

/// What Cedar is asked.
pub(crate) struct Asked {
    pub entities: Entities,
    /// As the agent, where one is claimed; else as the user.
    pub first: Request,
    /// As the user, where `first` is as an agent.
    pub user: Option<Request>,
}

/// With a schema, everything is held against it, which costs. An error says why there is no way to put the question.
pub(crate) fn asked(envelope: &Envelope, words: &Vocabulary, schema: Option<&Schema>) -> Result<Asked, String> {
    if !envelope.is_sound() {
        return Err(format!("`{}` is never done to such a thing", envelope.action));
    }
    let action = words.action(envelope.action).ok_or("it is an unknown action")?;
    let user = named(&words.user, &envelope.principal.user);
    let mut entities = vec![Entity::with_uid(user.clone())];
    let resource = resource(&envelope.resource, words)?;
    let place = context(envelope)?;
    let request = |principal: EntityUid| {
        Request::new(principal, action.clone(), resource.uid(), place.clone(), schema)
            .map_err(|error| error.to_string())
    };
    let (first, user) = match &envelope.principal.agent {
        None => (request(user)?, None),
        Some(name) => {
            let agent = named(&words.agent, name);
            let attributes = [("user", RestrictedExpression::new_entity_uid(user.clone()))];
            entities.push(entity(agent.clone(), attributes, [user.clone()])?);
            (request(agent)?, Some(request(user)?))
        }
    };
    entities.push(resource);
    let entities = Entities::from_entities(entities, schema).map_err(|error| error.to_string())?;
    Ok(Asked { entities, first, user })
}

fn resource(resource: &Resource, words: &Vocabulary) -> Result<Entity, String> {
    let thing = |kind: &EntityTypeName, id: &str| named(kind, id);
    match resource {
        Resource::Command(line) => {
            let program = line.first().map_or("", |first| base_name(first));
            command(words, &line.join(" "), program, line.get(1..).unwrap_or_default())
        }
        Resource::Shell(line) => command(words, line, "", &[]),
        Resource::Code { language, bytes } => {
            let language = language.as_deref().unwrap_or("");
            entity(thing(&words.code, language), [("language", text(language)), ("bytes", number(*bytes))], [])
        }
        Resource::Path(path) => {
            if !is_plain_path(path) {
                return Err("it is no plain absolute path".to_owned());
            }
            let name = base_name(path);
            let extension = name.rsplit_once('.').filter(|(stem, _)| !stem.is_empty()).map_or("", |(_, end)| end);
            let folders = path.match_indices('/').map(|(at, _)| if at == 0 { "/" } else { &path[..at] });
            entity(
                thing(&words.path, path),
                [("path", text(path)), ("name", text(name)), ("extension", text(extension))],
                folders.filter(|folder| folder != path).map(|folder| thing(&words.path, folder)),
            )
        }
        Resource::Variable(name) => entity(thing(&words.variable, name), [("name", text(name))], []),
        Resource::Wall(name) => entity(thing(&words.wall, name), [("name", text(name))], []),
        Resource::Host { name, port } => {
            let name = host_name(name).ok_or("it is no name of a host")?;
            let attributes = [("name", text(&name)), ("port", number(u64::from(*port)))];
            entity(thing(&words.host, &name), attributes, domains(&name, words))
        }
        Resource::Request { host, port, method, path } => {
            let name = host_name(host).ok_or("it is no name of a host")?;
            let port = number(u64::from(*port));
            let attributes = [("name", text(&name)), ("port", port), ("method", text(method)), ("path", text(path))];
            entity(thing(&words.host, &name), attributes, domains(&name, words))
        }
        Resource::Secret { name, host } => {
            let host = host_name(host).ok_or("it goes to what is no name of a host")?;
            let attributes = [("name", text(name)), ("host", text(&host))];
            entity(thing(&words.secret, name), attributes, domains(&host, words))
        }
        Resource::Artifact { name, bytes } => {
            entity(thing(&words.artifact, name), [("name", text(name)), ("bytes", number(*bytes))], [])
        }
    }
}

fn command(words: &Vocabulary, line: &str, program: &str, arguments: &[String]) -> Result<Entity, String> {
    let arguments = RestrictedExpression::new_set(arguments.iter().map(|word| text(word)));
    let attributes = [("line", text(line)), ("program", text(program)), ("arguments", arguments)];
    entity(named(&words.command, line), attributes, [])
}

/// The host's own name and all it is below of. Numbers are below of nothing.
fn domains(host: &str, words: &Vocabulary) -> Vec<EntityUid> {
    let higher = host.match_indices('.').map(|(at, _)| &host[at + 1..]);
    let higher = higher.filter(|_| host.parse::<IpAddr>().is_err());
    std::iter::once(host).chain(higher).map(|name| named(&words.domain, name)).collect()
}

fn context(envelope: &Envelope) -> Result<Context, String> {
    let model::Context { directory, home: _, workspaces, workspace_mode } = &envelope.context;
    let mode = match workspace_mode {
        WorkspaceMode::Cow => "cow",
        WorkspaceMode::Direct => "direct",
        WorkspaceMode::Readonly => "readonly",
    };
    let workspaces = RestrictedExpression::new_set(workspaces.iter().map(|root| text(root)));
    let pairs = [("directory", text(directory)), ("workspaces", workspaces), ("mode", text(mode))];
    Context::from_pairs(pairs.map(|(name, value)| (name.to_owned(), value))).map_err(|error| error.to_string())
}

fn entity<const N: usize>(
    uid: EntityUid,
    attributes: [(&str, RestrictedExpression); N],
    parents: impl IntoIterator<Item = EntityUid>,
) -> Result<Entity, String> {
    let attributes: HashMap<_, _> = attributes.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    Entity::new(uid, attributes, parents.into_iter().collect::<HashSet<_>>()).map_err(|error| error.to_string())
}

fn text(value: &str) -> RestrictedExpression {
    RestrictedExpression::new_string(value.to_owned())
}

/// Cedar counts to half of what we do. More than that is as much as it can say.
fn number(value: u64) -> RestrictedExpression {
    RestrictedExpression::new_long(i64::try_from(value).unwrap_or(i64::MAX))
}

fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use model::{Action, Principal};

    use super::*;
    use crate::vocabulary::SCHEMA_JSON;

    #[test]
    fn every_question_is_what_the_schema_says() {
        let schema = Schema::from_json_str(SCHEMA_JSON).expect("a schema");
        let words = Vocabulary::read().expect("every name");
        for (action, resource) in questions() {
            for agent in [None, Some("claude-code".to_owned())] {
                let principal = Principal { user: "alice".to_owned(), agent };
                let context = model::Context {
                    directory: "/project".to_owned(),
                    workspaces: vec!["/project".to_owned(), "/other".to_owned()],
                    ..Default::default()
                };
                let envelope = Envelope { principal, action, resource: resource.clone(), context };
                assert_eq!(asked(&envelope, &words, Some(&schema)).err(), None, "{envelope:?}");
            }
        }
    }

    fn questions() -> Vec<(Action, Resource)> {
        let name = || "a".to_owned();
        let path = || Resource::Path("/project/a.txt".to_owned());
        vec![
            (Action::Exec, Resource::Command(vec!["/usr/bin/git".to_owned(), "push".to_owned()])),
            (Action::Exec, Resource::Command(Vec::new())),
            (Action::Exec, Resource::Shell("git log | sh".to_owned())),
            (Action::Code, Resource::Code { language: None, bytes: u64::MAX }),
            (Action::Code, Resource::Code { language: Some(name()), bytes: 1 }),
            (Action::Read, path()),
            (Action::Write, Resource::Path("/".to_owned())),
            (Action::Commit, path()),
            (Action::Environment, Resource::Variable(name())),
            (Action::Gap, Resource::Wall(name())),
            (Action::Connect, Resource::Host { name: "a.b.c".to_owned(), port: 443 }),
            (
                Action::Connect,
                Resource::Request {
                    host: "a.b".to_owned(),
                    port: 80,
                    method: "GET".to_owned(),
                    path: "/a?b".to_owned(),
                },
            ),
            (Action::SecretUse, Resource::Secret { name: name(), host: "10.0.0.1".to_owned() }),
            (Action::Release, Resource::Artifact { name: name(), bytes: 3 }),
        ]
    }
}
