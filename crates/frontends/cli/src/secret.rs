//! `belljar secret`: keeps secrets, and shows everything about them but their values.

mod value;

use clap::ArgMatches;
use model::{SecretShown, SecretSource, Secrets, Trouble, is_secret_name};

use crate::words::{self, Layout};
use crate::{NOT_SET_UP, arguments, kept};

pub fn secret(matches: &ArgMatches, secrets: &dyn Secrets) -> u8 {
    let done = match matches.subcommand() {
        Some(("set", matches)) => set(matches, secrets),
        Some(("rm", matches)) => remove(matches, secrets),
        Some(("ls", matches)) => list(matches, secrets),
        _ => Ok(NOT_SET_UP),
    };
    done.unwrap_or_else(|trouble| kept::complain(&trouble))
}

fn set(matches: &ArgMatches, secrets: &dyn Secrets) -> Result<u8, Trouble> {
    let name = matches.get_one::<String>("name").map(String::as_str).unwrap_or_default();
    if matches.contains_id("word") {
        return Err(Trouble {
            message: "there is a word too many; if it is the value, others on this machine could read it, and your shell keeps it".to_owned(),
            fix: "type the value when it is asked for, or give it on standard input; change it where it is used".to_owned(),
        });
    }
    // Before anybody types a value for nothing.
    secrets.awaits_value()?;
    let known = secrets.list()?.into_iter().find(|known| known.name == name);
    let source = matches.get_one::<SecretSource>("source").cloned();
    // A new value goes where the last one was; who types one for a command wants it kept.
    let before = known.map(|known| known.source).filter(SecretSource::takes_value);
    let source = source.or(before).unwrap_or(SecretSource::Store);
    let value = match source.takes_value() && is_secret_name(name) {
        true => Some(value::read(name)?),
        false => None,
    };
    let shown = secrets.set(arguments::secrets::secret(matches, source, value))?;
    let hosts = match shown.hosts.as_slice() {
        [] => "for the hosts that `--secret NAME@HOST` or the policy names".to_owned(),
        hosts => format!("for {}", hosts.join(", ")),
    };
    said(matches, &shown, format!("{} is kept ({}), {hosts}", shown.name, shown.source))
}

fn remove(matches: &ArgMatches, secrets: &dyn Secrets) -> Result<u8, Trouble> {
    let name = matches.get_one::<String>("name").map(String::as_str).unwrap_or_default();
    let was = secrets.remove(name)?;
    said(matches, &was, format!("{} is removed", was.name))
}

fn said(matches: &ArgMatches, shown: &SecretShown, line: String) -> Result<u8, Trouble> {
    let text = match matches.get_flag("json") {
        true => words::json(shown, Layout::Page),
        false => Ok(words::page([line])),
    };
    Ok(if words::print(text) { 0 } else { NOT_SET_UP })
}

fn list(matches: &ArgMatches, secrets: &dyn Secrets) -> Result<u8, Trouble> {
    let list = secrets.list()?;
    let text = match matches.get_flag("json") {
        true => words::json(&list, Layout::Page),
        false => Ok(words::page(table(&list))),
    };
    Ok(if words::print(text) { 0 } else { NOT_SET_UP })
}

fn table(list: &[SecretShown]) -> Vec<String> {
    if list.is_empty() {
        return vec!["no secrets are kept; see `belljar secret --help`".to_owned()];
    }
    let mut rows = vec![["NAME", "SOURCE", "HOSTS", "SET", "LAST USED"].map(str::to_owned)];
    let mut troubles = Vec::new();
    for shown in list {
        if let Some(trouble) = &shown.trouble {
            rows.push([shown.name.clone(), "unreadable".to_owned(), "–".to_owned(), "–".to_owned(), "–".to_owned()]);
            troubles.push(format!("belljar: {trouble}"));
            continue;
        }
        let hosts = if shown.hosts.is_empty() { "–".to_owned() } else { shown.hosts.join(" ") };
        let used = shown.last_used.as_ref().map_or_else(|| "–".to_owned(), |at| moment(at));
        rows.push([shown.name.clone(), short(&shown.source.to_string()), hosts, words::ago(shown.set), used]);
    }
    let mut lines = words::columns(&rows);
    lines.extend(troubles);
    lines
}

/// A time of the record, to the second.
fn moment(at: &str) -> String {
    at.get(..19).unwrap_or(at).replace('T', " ")
}

fn short(text: &str) -> String {
    const MOST: usize = 40;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
