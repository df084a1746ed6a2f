//! Three sides of a file: what it was, what somebody made of it on the host meanwhile, what the sandbox made of it.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::Stdio;

use belljar_testkit::Who;
use belljar_testkit::deeds::{self, Deed};
use belljar_testkit::project::{Project, Said};
use belljar_testkit::tree::{self, Name, Tree};
use proptest::prelude::*;

use crate::random::holds;
use crate::{same, words};

const FILES: u32 = 5;
const LINES: u32 = 12;

/// What somebody does on the host.
#[derive(Clone, Debug)]
struct Edit {
    file: u32,
    how: How,
}

#[derive(Clone, Debug)]
enum How {
    /// Replaces a line, by one that nobody else writes.
    Line(u32),
    Delete,
    Make,
}

#[derive(Clone, Debug)]
struct Story {
    deeds: Vec<Deed>,
    edits: Vec<Edit>,
    /// While the sandbox runs, rather than after that.
    meanwhile: bool,
}

fn stories() -> impl Strategy<Value = Story> {
    let what = prop::sample::select(vec!["edit", "edit", "edit", "edit", "append", "delete", "add", "change-mode"]);
    let deed = (what, 0..100u32, 0..100u32, 0..1000u32);
    let deed = deed.prop_map(|(what, one, other, text)| Deed {
        what,
        one,
        other,
        text: format!("sandbox-{text}").into_bytes(),
    });
    let how = prop_oneof![8 => (0..LINES).prop_map(How::Line), 1 => Just(How::Delete), 1 => Just(How::Make)];
    let edit = (0..FILES, how).prop_map(|(file, how)| Edit { file, how });
    let parts = (prop::collection::vec(deed, 1..8), prop::collection::vec(edit, 1..6), any::<bool>());
    parts.prop_map(|(deeds, edits, meanwhile)| Story { deeds, edits, meanwhile })
}

/// A story up to where changes are to be taken.
struct Told {
    project: Project,
    /// As the sandbox saw it in the end.
    sandbox: Tree,
    before: Tree,
    /// As somebody left it on the host.
    host: Tree,
}

fn tell(who: Who, story: &Story) -> Result<Told, String> {
    let project = Project::new(who).map_err(words)?;
    for file in 0..FILES {
        let text: String = (0..LINES).map(|line| format!("{file}, line {line}\n")).collect();
        project.put(format!("file{file}"), text).map_err(words)?;
    }
    project.let_it_age();
    let before = project.tree()?;
    let run = ["run", "-q", "--"].map(str::to_owned).into_iter().chain(deeds::command(&story.deeds, story.meanwhile));
    let mut command = project.command(run);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(words)?;
    let mut out = BufReader::new(child.stdout.take().ok_or("no output")?);
    if story.meanwhile {
        let mut ready = String::new();
        out.read_line(&mut ready).map_err(words)?;
        edit(&project, &story.edits)?;
        let mut to = child.stdin.take().ok_or("no input")?;
        to.write_all(b"go\n").map_err(words)?;
    }
    let mut said = Vec::new();
    out.read_to_end(&mut said).map_err(words)?;
    let ended = Said::of(child.wait_with_output().map_err(words)?);
    let sandbox = tree::told(&said).map_err(|why| format!("{why}\n{}", ended.error))?;
    if !story.meanwhile {
        edit(&project, &story.edits)?;
    }
    let host = project.tree()?;
    Ok(Told { project, sandbox, before, host })
}

fn edit(project: &Project, edits: &[Edit]) -> Result<(), String> {
    for (number, edit) in edits.iter().enumerate() {
        let path = project.work.join(format!("file{}", edit.file));
        match edit.how {
            How::Line(line) => {
                let Ok(text) = fs::read_to_string(&path) else { continue };
                let lines = text.lines().enumerate().map(|(at, old)| match at as u32 == line {
                    true => format!("host-{number}\n"),
                    false => format!("{old}\n"),
                });
                let text: String = lines.collect();
                fs::write(&path, text).map_err(words)?;
            }
            How::Delete if path.exists() => fs::remove_file(&path).map_err(words)?,
            How::Delete => {}
            How::Make => project.put("a", format!("host-{number}\n")).map_err(words)?,
        }
    }
    Ok(())
}

/// The paths of conflicts, and the code.
fn apply(project: &Project, flags: &[&str]) -> Result<(Vec<Name>, Option<i32>), String> {
    let said = project.belljar(["apply", "--json"].iter().chain(flags)).map_err(words)?;
    if said.code == Some(125) && said.error.contains("no sandbox") {
        // It changed nothing.
        return Ok((Vec::new(), Some(0)));
    }
    let taken: serde_json::Value =
        serde_json::from_slice(&said.out).map_err(|error| format!("{flags:?}: {error}: {said:?}"))?;
    let conflicts = taken["conflicts"].as_array().into_iter().flatten();
    let names = conflicts.filter_map(|deed| deed["path"].as_str()).map(|path| Name(path.as_bytes().to_vec()));
    let names: Vec<Name> = names.collect();
    match said.code {
        Some(code) if code == i32::from(!names.is_empty()) => Ok((names, said.code)),
        _ => Err(format!("code {:?} with conflicts {names:?}", said.code)),
    }
}

fn lines_of(tree: &Tree, name: &Name) -> BTreeMap<String, usize> {
    let text = tree.get(name).map(|leaf| String::from_utf8_lossy(&leaf.contents).into_owned()).unwrap_or_default();
    let mut lines = BTreeMap::new();
    for line in text.lines() {
        *lines.entry(line.to_owned()).or_default() += 1;
    }
    lines
}

pub fn no_edit_on_the_host_is_lost(who: Who) -> Result<(), String> {
    holds(40, stories(), |story| {
        let Told { project, sandbox, before, host } = tell(who, &story)?;
        let (conflicts, _) = apply(&project, &[])?;
        let after = project.tree()?;
        let names = before.keys().chain(host.keys()).chain(sandbox.keys()).chain(after.keys());
        for name in names.collect::<std::collections::BTreeSet<_>>() {
            let (was, mine, theirs, is) = (before.get(name), host.get(name), sandbox.get(name), after.get(name));
            let sides = || format!("{name:?}\nwas  {was:?}\nhost {mine:?}\nsandbox {theirs:?}\nis   {is:?}");
            let host_edited = was != mine;
            if conflicts.contains(name) && is != mine {
                return Err(format!("a conflict was written: {}", sides()));
            }
            if host_edited && is != mine {
                if mine.is_none() || is.is_none() {
                    return Err(format!("lost: {}", sides()));
                }
                let (old, new, merged) = (lines_of(&before, name), lines_of(&host, name), lines_of(&after, name));
                let lost = new.keys().filter(|line| !old.contains_key(*line)).find(|line| !merged.contains_key(*line));
                let back = old.keys().filter(|line| !new.contains_key(*line)).find(|line| merged.contains_key(*line));
                if let Some(line) = lost.or(back) {
                    return Err(format!("`{line}` is lost, or back: {}", sides()));
                }
            }
            if !host_edited && !conflicts.contains(name) && is != theirs {
                return Err(format!("nobody else touched it, and it is not the sandbox's: {}", sides()));
            }
        }
        Ok(())
    })
}

pub fn a_check_says_what_apply_does(who: Who) -> Result<(), String> {
    holds(15, stories(), |story| {
        let Told { project, .. } = tell(who, &story)?;
        let exact = || tree::exact(&project.work).map_err(words);
        let before = exact()?;
        let expected = apply(&project, &["--check"])?;
        same("before and after a check", &before, &exact()?)?;
        let found = apply(&project, &[])?;
        if found == expected { Ok(()) } else { Err(format!("checked {expected:?}, applied {found:?}")) }
    })
}

pub fn whoever_is_favored_gets_the_conflicts(who: Who) -> Result<(), String> {
    holds(20, (stories(), any::<bool>()), |(story, ours)| {
        let Told { project, sandbox, host, .. } = tell(who, &story)?;
        let (conflicts, _) = apply(&project, &["--check"])?;
        let (left, code) = apply(&project, &[if ours { "--ours" } else { "--theirs" }])?;
        if !left.is_empty() || code != Some(0) {
            return Err(format!("still conflicts: {left:?}"));
        }
        let after = project.tree()?;
        for name in &conflicts {
            let expected = if ours { host.get(name) } else { sandbox.get(name) };
            if after.get(name) != expected {
                return Err(format!("{name:?} is {:?} and not {expected:?}", after.get(name)));
            }
        }
        let left = project.leavings()?;
        if left.is_empty() { Ok(()) } else { Err(format!("left: {left:?}")) }
    })
}
