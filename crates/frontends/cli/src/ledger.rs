//! `belljar ledger`: is the record what was written, who signs it, who else is told, and where old parts go.

use std::path::PathBuf;
use std::time::Duration;

use clap::ArgMatches;
use model::{Against, Anchor, Fault, HttpsAnchor, Records, Soundness, Trouble};

use crate::words::{self, Layout};
use crate::{NOT_SET_UP, kept};

pub fn ledger(matches: &ArgMatches, records: &dyn Records) -> u8 {
    let done = match matches.subcommand() {
        Some(("verify", matches)) => verify(matches, records),
        Some(("key", matches)) => key(matches, records),
        Some(("archive", matches)) => archive(matches, records),
        Some(("anchor", matches)) => anchor(matches, records),
        _ => return NOT_SET_UP,
    };
    done.unwrap_or_else(|trouble| kept::complain(&trouble))
}

fn verify(matches: &ArgMatches, records: &dyn Records) -> Result<u8, Trouble> {
    let paths = |name| matches.get_many::<PathBuf>(name).into_iter().flatten().cloned().collect();
    let path = |name| matches.get_one::<PathBuf>(name).cloned();
    let against =
        Against { key: path("key"), anchors: paths("anchor"), archives: paths("archive"), folder: path("folder") };
    let found = records.verify(&against)?;
    let text = match matches.get_flag("json") {
        true => words::json(&found, Layout::Page),
        false => Ok(words::page(lines(&found))),
    };
    if !words::print(text) {
        return Ok(NOT_SET_UP);
    }
    Ok(u8::from(!found.is_sound()))
}

fn lines(found: &Soundness) -> Vec<String> {
    let Soundness { entries, first, last, segments, checkpoints, unsigned, torn_bytes, anchored, archived, .. } = found;
    let mut lines: Vec<String> = found.faults.iter().map(said).collect();
    if found.faults_not_listed > 0 {
        lines.push(format!("and {} more faults", found.faults_not_listed));
    }
    let verdict = if found.is_sound() { "sound" } else { "NOT sound" };
    let mut line = format!("{verdict}: {entries} entries ({first} to {last}) in {}", counted(*segments, "segment"));
    line += &format!(", {} signed by key {}", counted(*checkpoints, "checkpoint"), found.key);
    if *anchored > 0 {
        line += &format!(", {anchored} of them anchored");
    }
    lines.push(line);
    if *archived > 0 {
        lines.push(format!("entries 1 to {archived} are in an archive: name it with --archive to read them too"));
    }
    if *unsigned > 0 {
        lines.push(format!("the last {unsigned} entries have no checkpoint yet: the next run's end signs them"));
    }
    if *torn_bytes > 0 {
        lines.push(format!(
            "{torn_bytes} bytes at the end are of an entry that was never whole: the next one says so in the record"
        ));
    }
    if found.is_sound() && *anchored == 0 {
        lines.push("no anchor was asked: an end that was cut off, with its note, would not be seen".to_owned());
    }
    lines
}

fn counted(count: u64, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

fn said(fault: &Fault) -> String {
    let range = |from: &u64, to: &u64| match from == to {
        true => format!("entry {from}"),
        false => format!("entries {from} to {to}"),
    };
    match fault {
        Fault::Edited { entry, segment, line } => format!("entry {entry} was edited (segment {segment}, line {line})"),
        Fault::Replaced { entry, segment } => {
            format!("entry {entry} was replaced by another, as entry {} tells (segment {segment})", entry + 1)
        }
        Fault::Missing { from, to } => format!("{} removed", range(from, to)),
        Fault::Moved { entry, segment, line } => format!("entry {entry} was moved (segment {segment}, line {line})"),
        Fault::Repeated { entry, segment, line } => {
            format!("entry {entry} stands there twice (segment {segment}, line {line})")
        }
        Fault::Foreign { segment, line, after } => {
            format!("a line after entry {after} is no entry (segment {segment}, line {line})")
        }
        Fault::Truncated { from, to } => format!("{} cut off at the end", range(from, to)),
        Fault::Signature { entry, segment, why } => {
            format!(
                "the checkpoint at entry {entry} does not hold: {why}; what is before it was made anew (segment {segment})"
            )
        }
        Fault::Unsigned { from, to } => format!("{} without a checkpoint: no belljar writes so many", range(from, to)),
        Fault::RolledBack { anchored, last } => {
            format!("rolled back: an anchor knows entry {anchored}, and the record ends with entry {last}")
        }
        Fault::Rewritten { entry } => format!("rewritten: an anchor has another hash for entry {entry}"),
        Fault::ForeignAnchor { entry } => {
            format!("an anchor's checkpoint of entry {entry} is not signed by this key, or is of another record")
        }
        Fault::Index { segment } => {
            format!("the index of segment {segment} would hide entries: remove it, they are found without it")
        }
    }
}

fn key(matches: &ArgMatches, records: &dyn Records) -> Result<u8, Trouble> {
    let key = records.key()?;
    let text = match matches.get_flag("json") {
        true => words::json(&key, Layout::Page),
        false => {
            Ok(format!("{}{}", key.public_key, words::page([format!("# key {}, in {}", key.id, key.file.display())])))
        }
    };
    Ok(if words::print(text) { 0 } else { NOT_SET_UP })
}

fn archive(matches: &ArgMatches, records: &dyn Records) -> Result<u8, Trouble> {
    let older_than = matches.get_one::<Duration>("older-than").copied().unwrap_or_default();
    let folder = matches.get_one::<PathBuf>("to").cloned().unwrap_or_default();
    let only_tell = matches.get_flag("dry-run");
    let archived = records.archive(older_than, &folder, only_tell)?;
    let text = match matches.get_flag("json") {
        true => words::json(&archived, Layout::Page),
        false => Ok(words::page([match archived.segments.len() {
            0 => "nothing: no whole segment is that old".to_owned(),
            count => format!(
                "{count} segments ({}), up to entry {}{}",
                words::size(archived.bytes),
                archived.to,
                if only_tell { " would be moved" } else { " moved" }
            ),
        }])),
    };
    Ok(if words::print(text) { 0 } else { NOT_SET_UP })
}

fn anchor(matches: &ArgMatches, records: &dyn Records) -> Result<u8, Trouble> {
    let file = matches.get_one::<PathBuf>("file").cloned().map(Anchor::File);
    let path = |name: &str| matches.get_one::<PathBuf>(name).cloned();
    let https = matches.get_one::<String>("https").map(|url| {
        Anchor::Https(HttpsAnchor { url: url.clone(), header_file: path("header-file"), authorities: path("ca") })
    });
    let named = file.or(https).or_else(|| matches.get_one::<String>("command").cloned().map(Anchor::Command));
    match (named, matches.get_flag("remove")) {
        (Some(anchor), true) => {
            if !records.remove_anchor(&anchor)? {
                let message = format!("there is no anchor `{anchor}`");
                return Err(Trouble { message, fix: "see `belljar ledger anchor`".to_owned() });
            }
        }
        (Some(anchor), false) => records.add_anchor(&anchor)?,
        (None, true) => {
            let message = "no anchor is named".to_owned();
            return Err(Trouble { message, fix: "name it: `belljar ledger anchor --remove --file PATH`".to_owned() });
        }
        (None, false) => {}
    }
    let anchors = records.anchors()?;
    let text = match matches.get_flag("json") {
        true => words::json(&anchors, Layout::Page),
        false if anchors.is_empty() => {
            Ok(words::page(["nobody is told checkpoints; add a file: belljar ledger anchor --file PATH".to_owned()]))
        }
        false => Ok(words::page(anchors.iter().map(|(anchor, waiting)| match waiting {
            0 => anchor.to_string(),
            count => format!("{anchor}   {count} checkpoints could not be told yet"),
        }))),
    };
    Ok(if words::print(text) { 0 } else { NOT_SET_UP })
}
