//! Commands on sandboxes that are kept.

use std::time::Duration;

use clap::ArgMatches;
use model::{KeptSandbox, Sandboxes, Service, Trouble};
use serde::Serialize;

use crate::words::{self, Layout};
use crate::{NOT_SET_UP, arguments, branches, run};

const KNOWN: &[&str] = &["ps", "show", "create", "discard", "rm", "snapshot", "rollback", "fork", "gc", "open", "stop"];

pub fn knows(name: &str) -> bool {
    KNOWN.contains(&name)
}

pub fn exec(matches: &ArgMatches, service: &dyn Service) -> u8 {
    let which = text(matches, "which").unwrap_or_default();
    run::run_by(matches, |request| service.sandboxes().run_in(which, request))
}

pub fn answer(name: &str, matches: &ArgMatches, sandboxes: &dyn Sandboxes) -> u8 {
    let which = || text(matches, "which").unwrap_or("last");
    let done = match name {
        "ps" => sandboxes.list().map(|list| tell(matches, &list, || table(&list))),
        "show" => sandboxes.find(which()).map(|found| tell(matches, &found, || about(&found))),
        "create" => return create(matches, sandboxes),
        "discard" => sandboxes.discard(which()).map(|gone| {
            tell(matches, &gone, || {
                vec![format!("{}: changes thrown away, {} given back", called(&gone), words::size(gone.disk))]
            })
        }),
        "open" => return open(matches, which(), sandboxes),
        "stop" => {
            sandboxes.stop(which()).map(|kept| tell(matches, &kept, || vec![format!("{}: stopped", called(&kept))]))
        }
        "rm" => remove(matches, sandboxes),
        "snapshot" => sandboxes
            .snapshot(which(), text(matches, "name"))
            .map(|name| tell(matches, &Named { snapshot: &name }, || vec![name.clone()])),
        "rollback" => sandboxes.roll_back(which(), text(matches, "snapshot")).map(|name| {
            tell(matches, &Named { snapshot: &name }, || vec![format!("{} is what it was at {name}", which())])
        }),
        "fork" => {
            let number = matches.get_one::<u16>("number").copied().unwrap_or(1);
            if let Some(context) = text(matches, "context") {
                return branches::fork(matches, sandboxes, which(), usize::from(number), context);
            }
            sandboxes
                .fork(which(), usize::from(number))
                .map(|forks| tell(matches, &forks, || forks.iter().map(called).collect()))
        }
        "gc" => {
            let older_than = matches.get_one::<Duration>("older-than").copied().unwrap_or(Duration::MAX);
            let dry = matches.get_flag("dry-run");
            sandboxes.collect(older_than, dry).map(|collected| tell(matches, &collected, || garbage(&collected, dry)))
        }
        _ => return NOT_SET_UP,
    };
    done.unwrap_or_else(|trouble| complain(&trouble))
}

#[derive(Serialize)]
struct Named<'a> {
    snapshot: &'a str,
}

fn text<'a>(matches: &'a ArgMatches, name: &str) -> Option<&'a str> {
    matches.try_get_one::<String>(name).ok().flatten().map(String::as_str)
}

pub fn complain(trouble: &Trouble) -> u8 {
    words::say(&format!("belljar: {trouble}"));
    NOT_SET_UP
}

fn tell(matches: &ArgMatches, value: &impl Serialize, lines: impl FnOnce() -> Vec<String>) -> u8 {
    let text = match matches.get_flag("json") {
        true => words::json(value, Layout::Page),
        false => Ok(words::page(lines())),
    };
    if words::print(text) { 0 } else { NOT_SET_UP }
}

fn create(matches: &ArgMatches, sandboxes: &dyn Sandboxes) -> u8 {
    match sandboxes.create(&arguments::request(matches), text(matches, "name")) {
        Ok(made) => tell(matches, &made, || vec![called(&made)]),
        Err(outcome) => {
            match matches.get_flag("json") {
                true => run::say_as_json(&outcome),
                false => words::say(&run::summary(&outcome)),
            }
            wire::code(&outcome)
        }
    }
}

/// Its result is said on standard error, as that of a run: on standard output it says when it is open.
fn open(matches: &ArgMatches, which: &str, sandboxes: &dyn Sandboxes) -> u8 {
    let (json, quiet) = (matches.get_flag("json"), matches.get_flag("quiet"));
    let outcome = sandboxes.stay(which, &|open| {
        if json {
            words::print(words::json(open, Layout::Line).map(|line| line + "\n"));
        } else if !quiet {
            words::print(Ok(words::page([format!("{}: open; `belljar stop {}` ends it", called(open), called(open))])));
        }
    });
    match json {
        true => run::say_as_json(&outcome),
        false if quiet => {}
        false => words::say(&run::summary(&outcome)),
    }
    wire::code(&outcome)
}

fn remove(matches: &ArgMatches, sandboxes: &dyn Sandboxes) -> Result<u8, Trouble> {
    for which in matches.get_many::<String>("which").into_iter().flatten() {
        let gone = sandboxes.remove(which)?;
        words::print(Ok(words::page([format!("{}: removed, {} given back", called(&gone), words::size(gone.disk))])));
    }
    Ok(0)
}

/// What to call it by.
pub fn called(sandbox: &KeptSandbox) -> String {
    sandbox.name.clone().unwrap_or_else(|| sandbox.id.chars().take(8).collect())
}

fn table(list: &[KeptSandbox]) -> Vec<String> {
    if list.is_empty() {
        return vec!["no sandbox runs or is kept".to_owned()];
    }
    let mut rows = vec![["ID", "NAME", "STATE", "USED", "DISK", "WORKSPACE", "COMMAND"].map(str::to_owned)];
    for sandbox in list {
        let workspaces: Vec<String> = sandbox.workspaces.iter().map(|path| path.display().to_string()).collect();
        rows.push([
            sandbox.id.chars().take(8).collect(),
            sandbox.name.clone().unwrap_or_else(|| "-".to_owned()),
            if sandbox.running { "running" } else { "kept" }.to_owned(),
            words::ago(sandbox.used),
            words::size(sandbox.disk),
            workspaces.join(", "),
            shortened(&sandbox.command.join(" ")),
        ]);
    }
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..7).map(width).collect();
    let line = |row: &[String; 7]| {
        let cells: Vec<String> = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        cells.join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

fn shortened(text: &str) -> String {
    const LONGEST: usize = 60;
    match text.chars().count() > LONGEST {
        true => text.chars().take(LONGEST - 1).chain(['…']).collect(),
        false => text.to_owned(),
    }
}

fn about(sandbox: &KeptSandbox) -> Vec<String> {
    let mut lines = vec![format!("id         {}", sandbox.id)];
    lines.extend(sandbox.name.iter().map(|name| format!("name       {name}")));
    lines.push(format!("state      {}", if sandbox.running { "running" } else { "kept" }));
    lines.push(format!("created    {}", words::ago(sandbox.created)));
    lines.push(format!("used       {}", words::ago(sandbox.used)));
    lines.extend(sandbox.workspaces.iter().map(|path| format!("workspace  {}", path.display())));
    if !sandbox.command.is_empty() {
        lines.push(format!("command    {}", sandbox.command.join(" ")));
    }
    lines.push(format!("disk       {}", words::size(sandbox.disk)));
    let snapshots = sandbox.snapshots.iter();
    lines.extend(snapshots.map(|snapshot| format!("snapshot   {}, {}", snapshot.name, words::ago(snapshot.created))));
    lines.extend(sandbox.trouble.iter().map(|trouble| format!("trouble    {trouble}")));
    lines
}

fn garbage(collected: &model::Collected, dry: bool) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for removed in &collected.removed {
        let size = if removed.bytes > 0 { format!("   {}", words::size(removed.bytes)) } else { String::new() };
        lines.push(format!("  {}{size}", removed.what));
    }
    for foreign in &collected.foreign {
        lines.push(format!("  {}   not ours, left alone", foreign.display()));
    }
    let verb = if dry { "would be given back" } else { "given back" };
    lines.push(format!("{} {verb}", words::size(collected.bytes)));
    lines
}
