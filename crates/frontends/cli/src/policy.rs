//! `belljar policy`: what is in force, whether a file is sound, and what another would change.

use std::path::PathBuf;

use clap::ArgMatches;
use model::{Changed, Comparison, InForce, Policies, Remark, Replay, SaidLine, Trouble, Trusted};
use serde::Serialize;

use crate::NOT_SET_UP;
use crate::words::{self, Layout};

pub fn policy(matches: &ArgMatches, policies: &dyn Policies) -> u8 {
    let Some((name, matches)) = matches.subcommand() else { return NOT_SET_UP };
    let path = |name: &str| matches.try_get_one::<PathBuf>(name).ok().flatten().cloned();
    let done = match name {
        "show" => policies.show().map(|shown| print(matches, &shown, || show(&shown), 0)),
        "lint" => policies.lint(path("file").as_deref()).map(|remarks| {
            let code = u8::from(remarks.iter().any(|remark| remark.is_error));
            print(matches, &remarks, || lint(&remarks), code)
        }),
        "schema" => {
            let language = matches.get_one::<String>("language").map(String::as_str);
            policies.schema(language).map(|text| if words::print(Ok(text.to_owned())) { 0 } else { 1 })
        }
        "diff" => policies.compare(&path("file").unwrap_or_default()).map(|comparison| {
            let code = u8::from(comparison != Comparison::default());
            print(matches, &comparison, || differences(&comparison), code)
        }),
        "test" => policies.replay(&path("file").unwrap_or_default(), path("envelopes").as_deref()).map(|replay| {
            let code = u8::from(!replay.newly_denied.is_empty() || !replay.newly_allowed.is_empty());
            print(matches, &replay, || replayed(&replay, path("envelopes").is_none()), code)
        }),
        "trust" => policies
            .trust(&path("folder").unwrap_or_else(|| PathBuf::from(".")))
            .map(|trusted| if words::print(Ok(words::page(trust(&trusted)))) { 0 } else { 1 }),
        "untrust" => policies.distrust(&path("folder").unwrap_or_else(|| PathBuf::from("."))).map(|file| {
            let text = format!("no longer trusted, so it can only tighten: {}", file.display());
            if words::print(Ok(words::page([text]))) { 0 } else { 1 }
        }),
        _ => return NOT_SET_UP,
    };
    done.unwrap_or_else(|trouble: Trouble| {
        words::say(&format!("belljar: {trouble}"));
        NOT_SET_UP
    })
}

fn print(matches: &ArgMatches, value: &impl Serialize, lines: impl FnOnce() -> Vec<String>, code: u8) -> u8 {
    let text = match matches.get_flag("json") {
        true => words::json(value, Layout::Page),
        false => Ok(words::page(lines())),
    };
    if words::print(text) { code } else { 1 }
}

fn show(shown: &InForce) -> Vec<String> {
    let InForce { revision, files, voices, notes } = shown;
    let mut lines = vec![format!("revision {}", short(revision))];
    if files.is_empty() {
        lines.push(
            "no policy file: whatever the walls hold is allowed; begin with `extends = [\"balanced\"]`".to_owned(),
        );
    }
    for file in files {
        let trusted = match file.trusted {
            None => "",
            Some(true) => ", trusted",
            Some(false) => ", not trusted: it can only tighten",
        };
        lines.push(format!("{} ({}{trusted})", file.file, file.owner));
    }
    lines.extend(notes.iter().map(|note| format!("note: {note}")));
    for said in voices {
        lines.push(format!("the {} policy says:", said.owner));
        lines.extend(said.lines.iter().map(said_line));
    }
    lines
}

fn said_line(line: &SaidLine) -> String {
    let place = if line.place.is_empty() { String::new() } else { format!(" ({})", line.place) };
    format!("  {}{place}", line.text)
}

fn trust(trusted: &Trusted) -> Vec<String> {
    let Trusted { file, says } = trusted;
    let mut lines = vec![format!("trusted as it is now: {}; from now on it counts in full:", file.display())];
    lines.extend(says.iter().map(said_line));
    lines.push("`belljar policy untrust` takes that back".to_owned());
    lines
}

fn short(revision: &str) -> &str {
    revision.get(..12).unwrap_or(revision)
}

fn lint(remarks: &[Remark]) -> Vec<String> {
    if remarks.is_empty() {
        return vec!["nothing to say".to_owned()];
    }
    let line = |remark: &Remark| {
        let place = if remark.place.is_empty() { String::new() } else { format!("{}: ", remark.place) };
        format!("{place}{}: {}", if remark.is_error { "error" } else { "remark" }, remark.message)
    };
    remarks.iter().map(line).collect()
}

fn differences(comparison: &Comparison) -> Vec<String> {
    let Comparison { only_now, only_then } = comparison;
    if only_now.is_empty() && only_then.is_empty() {
        return vec!["no difference".to_owned()];
    }
    let now = only_now.iter().map(|line| format!("- {line}"));
    now.chain(only_then.iter().map(|line| format!("+ {line}"))).collect()
}

/// What is asked before a run is kept. What it does at the gate is on its record, which has no queries and no values in it:
/// too little to judge it again.
const AT_THE_GATE: &str = "not replayed: what runs asked at the gate (names and addresses, methods and paths of requests, \
    stand-ins in them); for those see `belljar net`";

fn replayed(replay: &Replay, of_the_past: bool) -> Vec<String> {
    let Replay { replayed, newly_denied, newly_allowed } = replay;
    let mut lines = vec![format!("{replayed} envelopes replayed")];
    for (title, list) in [("stricter:", newly_denied), ("looser:", newly_allowed)] {
        if list.is_empty() {
            continue;
        }
        lines.push(title.to_owned());
        for Changed { envelope, now, then, rule, place, why, times } in list {
            let times = if *times > 1 { format!(" ×{times}") } else { String::new() };
            let place = if place.is_empty() { String::new() } else { format!(" ({place})") };
            lines.push(format!(
                "  {} → {}: {} `{}` by {}{times}",
                now.name(),
                then.name(),
                envelope.action,
                envelope.resource,
                envelope.principal
            ));
            lines.push(format!("    {rule}{place}: {why}"));
        }
    }
    if newly_denied.is_empty() && newly_allowed.is_empty() {
        lines.push("all answered as now".to_owned());
    }
    // Who names a file of envelopes has chosen what is tried.
    if of_the_past {
        lines.push(AT_THE_GATE.to_owned());
    }
    lines
}
