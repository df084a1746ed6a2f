//! `belljar diff`: what a sandbox changed, or how two differ.

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::ArgMatches;
use model::{Change, ChangeKind, Patch, Sandboxes, Tally, Thing, ThingKind, Trouble, Wording};

use crate::words::{self, Layout};
use crate::{NOT_SET_UP, kept};

pub fn diff(matches: &ArgMatches, sandboxes: &dyn Sandboxes) -> u8 {
    match look(matches, sandboxes) {
        Ok(code) => code,
        Err(trouble) => kept::complain(&trouble),
    }
}

fn look(matches: &ArgMatches, sandboxes: &dyn Sandboxes) -> Result<u8, Trouble> {
    let Meant { which, other, paths } = meant(matches, sandboxes, true)?;
    if matches.get_flag("patch") {
        let wording = if matches.get_flag("exact") { for_a_person()? } else { Wording::WithoutSecrets };
        let Patch { bytes, taken_out } = sandboxes.patch(&which, other.as_deref(), &paths, wording)?;
        if taken_out > 0 {
            words::say(&format!(
                "belljar: {taken_out} secrets are taken out: this patch can be read, not applied; `--exact` leaves them in"
            ));
        }
        return Ok(print_patch(&bytes));
    }
    let changes = match &other {
        Some(other) => sandboxes.compare(&which, other, &paths)?,
        None => sandboxes.changes(&which, &paths)?,
    };
    let text = match matches.get_flag("json") {
        true => words::json(&changes, Layout::Page),
        false => Ok(words::page(lines(&changes.sandbox, &changes.changes))),
    };
    Ok(if words::print(text) { 0 } else { NOT_SET_UP })
}

/// What an agent reads may go anywhere; it needs no secret to see what changed.
fn for_a_person() -> Result<Wording, Trouble> {
    match model::agents::detected(std::env::vars_os()) {
        None => Ok(Wording::Exact),
        Some(agent) => Err(Trouble {
            message: format!("{agent} is not shown secrets"),
            fix: "leave `--exact` out, or take the changes with `belljar apply`".to_owned(),
        }),
    }
}

/// Which sandbox, perhaps another, and paths.
pub struct Meant {
    pub which: String,
    pub other: Option<String>,
    pub paths: Vec<PathBuf>,
}

/// So much of an id is no file's name by chance.
const CLEAR: usize = 8;

/// Words are sandboxes as long as they can be, and then paths.
pub fn meant(matches: &ArgMatches, sandboxes: &dyn Sandboxes, two: bool) -> Result<Meant, Trouble> {
    let words: Vec<&OsString> = matches.get_many::<OsString>("words").into_iter().flatten().collect();
    let mut rest = words.as_slice();
    let mut found = Vec::new();
    while let Some((word, later)) = rest.split_first() {
        if found.len() == if two { 2 } else { 1 } {
            break;
        }
        let text = word.to_string_lossy();
        match sandboxes.find(&text) {
            // Neither is guessed: the one takes all of a sandbox, the other a file of the last.
            Ok(_) if text.len() < CLEAR && text != "last" && Path::new(word).symlink_metadata().is_ok() => {
                return Err(Trouble {
                    message: format!("`{text}` may be a sandbox or a path"),
                    fix: format!("write `./{text}`, or more of the sandbox's id"),
                });
            }
            Ok(_) => found.push(text.into_owned()),
            Err(_) if is_path(word) => break,
            Err(trouble) => {
                let fix = format!("{}; if it is a path: `-- {text}`", trouble.fix);
                return Err(Trouble { fix, ..trouble });
            }
        }
        rest = later;
    }
    let paths = matches.get_many::<PathBuf>("paths").into_iter().flatten().cloned();
    let paths = rest.iter().map(PathBuf::from).chain(paths).collect();
    let mut found = found.into_iter();
    Ok(Meant { which: found.next().unwrap_or_else(|| "last".to_owned()), other: found.next(), paths })
}

fn is_path(word: &OsString) -> bool {
    let bytes = word.as_encoded_bytes();
    bytes.contains(&b'/') || bytes.contains(&b'.') || Path::new(word).symlink_metadata().is_ok()
}

/// To a program as it is; to a terminal without anything that commands it.
fn print_patch(patch: &[u8]) -> u8 {
    let mut out = std::io::stdout().lock();
    let written = match rustix::termios::isatty(rustix::stdio::stdout()) {
        false => out.write_all(patch),
        true => patch.split(|byte| *byte == b'\n').try_for_each(|line| {
            let line = String::from_utf8_lossy(line);
            let tabs: Vec<String> = line.split('\t').map(words::line).collect();
            writeln!(out, "{}", tabs.join("\t"))
        }),
    };
    if written.and_then(|()| out.flush()).is_ok() { 0 } else { NOT_SET_UP }
}

/// What people read: ordinary changes, then what somebody is asked about, what must be named, and what is never taken.
pub fn lines(sandbox: &str, changes: &[Change]) -> Vec<String> {
    let several = changes.iter().any(|change| change.workspace != changes[0].workspace);
    let shown = |change: &Change| match several {
        true => change.workspace.join(&change.path.0).display().to_string(),
        false => change.path.display().to_string(),
    };
    let mut lines = Vec::new();
    // Each change once, under the strictest that holds of it.
    let group = |change: &Change| match change {
        Change { refused: Some(why), .. } => (3, why.clone()),
        Change { protected: Some(why), .. } => (2, why.clone()),
        Change { asked: Some(why), .. } => (1, why.clone()),
        _ => (0, String::new()),
    };
    let titles = ["", "asked about before they are taken:", "protected, and only taken when named:", "never taken:"];
    for (number, title) in titles.iter().enumerate() {
        let mut begun = title.is_empty();
        for (change, why) in changes.iter().map(|change| (change, group(change))) {
            let (of, why) = why;
            if of != number {
                continue;
            }
            if !begun {
                lines.push((*title).to_owned());
                begun = true;
            }
            let why = if why.is_empty() { why } else { format!("   {why}") };
            lines.push(format!("  {} {}{}{why}", letter(change), shown(change), detail(change)));
        }
    }
    lines.push(format!("{sandbox}: {}", words::tally(&Tally::of(changes))));
    lines
}

fn letter(change: &Change) -> char {
    match change.kind {
        ChangeKind::Added => 'A',
        ChangeKind::Modified => 'M',
        ChangeKind::Deleted => 'D',
        ChangeKind::Renamed => 'R',
        ChangeKind::Mode => 'm',
        ChangeKind::Type => 'T',
    }
}

fn detail(change: &Change) -> String {
    let kind = |thing: &Thing| match thing.kind {
        ThingKind::File => "file",
        ThingKind::Folder => "folder",
        ThingKind::Link => "link",
        ThingKind::Special => "special file",
    };
    let target =
        |thing: &Thing| thing.target.as_ref().map_or(String::new(), |target| format!(" -> {}", target.display()));
    let mut text = String::new();
    match (change.kind, &change.was, &change.is) {
        (ChangeKind::Renamed, ..) => {
            let from = change.from.as_ref().map_or(String::new(), |from| from.display().to_string());
            text += &format!("   was {from}");
        }
        (ChangeKind::Type, Some(was), Some(is)) => text += &format!("   {} is a {}{}", kind(was), kind(is), target(is)),
        (_, _, Some(is)) if is.kind == ThingKind::Link => text += &target(is),
        (ChangeKind::Added | ChangeKind::Deleted, was, is) => {
            let folder = was.as_ref().or(is.as_ref()).is_some_and(|thing| thing.kind == ThingKind::Folder);
            text += if folder { "/" } else { "" };
        }
        _ => {}
    }
    if let (Some(was), Some(is)) = (&change.was, &change.is)
        && was.mode != is.mode
        && change.kind != ChangeKind::Type
        && is.kind != ThingKind::Link
    {
        text += &format!("   mode {:03o} is {:03o}", was.mode, is.mode);
    }
    if change.binary {
        let size = |thing: &Option<Thing>| {
            thing.as_ref().map_or_else(|| "nothing".to_owned(), |thing| words::size(thing.size))
        };
        text += &format!("   binary, {} is {}", size(&change.was), size(&change.is));
    }
    if let (Some(added), Some(removed)) = (change.lines_added, change.lines_removed) {
        text += &format!("   +{added} -{removed}");
    }
    text
}
