//! `belljar token`: for the person whose machine it is.

use std::io::Write;

use clap::ArgMatches;
use model::agents;

use crate::config;
use crate::tokens::{Scope, Tokens, Wanted};
use crate::words::state_folder;

pub fn token(matches: &ArgMatches) -> Result<(), String> {
    let (name, matches) = matches.subcommand().ok_or("there is nothing to do; see `belljar token --help`")?;
    // Where the service that the tokens are for keeps them.
    let written = if matches.contains_id("state") { None } else { config::state(matches)? };
    let folder = written
        .or_else(|| state_folder(matches))
        .ok_or("there is no folder for state; fix: set HOME, or `--state DIR`")?;
    let tokens = Tokens::at(folder);
    match name {
        "create" => create(matches, &tokens),
        "list" => {
            let mut text = String::new();
            for token in tokens.list().map_err(|error| error.to_string())? {
                let scopes: Vec<&str> = token.scopes.iter().map(|scope| scope.name()).collect();
                let agent = token.agent.map_or(String::new(), |agent| format!("  agent {agent}"));
                text += &format!("{}  {}  {}{agent}  {}\n", token.id, token.tenant, scopes.join(","), token.name);
            }
            print(&text)
        }
        "revoke" => {
            refuse_agents()?;
            let id = matches.get_one::<String>("id").map(String::as_str).unwrap_or_default();
            match tokens.revoke(id).map_err(|error| error.to_string())? {
                true => Ok(()),
                false => Err(format!("there is no token `{id}`; fix: see `belljar token list`")),
            }
        }
        _ => Err("there is no such command; see `belljar token --help`".to_owned()),
    }
}

fn create(matches: &ArgMatches, tokens: &Tokens) -> Result<(), String> {
    refuse_agents()?;
    let text = |name: &str| matches.get_one::<String>(name).cloned();
    let wanted = Wanted {
        name: text("name").unwrap_or_default(),
        tenant: text("tenant").unwrap_or_default(),
        scopes: matches.get_many::<Scope>("scopes").into_iter().flatten().copied().collect(),
        agent: text("agent"),
        lasts: matches.get_one::<std::time::Duration>("expires").map(std::time::Duration::as_secs),
    };
    let (_, token) = tokens.create(wanted).map_err(|error| error.to_string())?;
    print(&format!("{token}\n"))
}

/// Whoever makes tokens decides who approves.
fn refuse_agents() -> Result<(), String> {
    let environment: Vec<_> = std::env::vars_os().collect();
    match agents::no_person(&environment) {
        None => Ok(()),
        Some(who) => Err(format!("{who} may not make or revoke tokens; fix: do it in a terminal of your own")),
    }
}

fn print(text: &str) -> Result<(), String> {
    std::io::stdout().write_all(text.as_bytes()).map_err(|error| format!("cannot print: {error}"))
}
