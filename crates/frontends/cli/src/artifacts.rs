//! `belljar artifacts`: what runs handed over, listed, written out and removed.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

use clap::ArgMatches;
use model::{Artifact, Artifacts, Gathered, Trouble};

use crate::new_file::NewFile;
use crate::words::{self, Layout};
use crate::{NOT_SET_UP, kept};

/// The policy, or a bound, says no.
const WITHHELD: u8 = 123;
/// More than anybody reads on a terminal.
const LONGEST_SHOWN: u64 = 1 << 20;

pub fn artifacts(matches: &ArgMatches, artifacts: &dyn Artifacts) -> u8 {
    let done = match matches.subcommand() {
        Some(("ls", matches)) => list(matches, artifacts),
        Some(("get", matches)) => get(matches, artifacts),
        Some(("rm", matches)) => remove(matches, artifacts),
        _ => return NOT_SET_UP,
    };
    done.unwrap_or_else(|trouble| kept::complain(&trouble))
}

fn list(matches: &ArgMatches, artifacts: &dyn Artifacts) -> Result<u8, Trouble> {
    let list = artifacts.list(matches.get_one::<String>("of").map(String::as_str))?;
    let text = match matches.get_flag("json") {
        true => words::json(&list, Layout::Page),
        false => Ok(words::page(table(&list))),
    };
    Ok(if words::print(text) { 0 } else { NOT_SET_UP })
}

pub fn table(list: &[Artifact]) -> Vec<String> {
    if list.is_empty() {
        return vec!["no artifact is kept; ask for some: belljar run --artifact out -- CMD".to_owned()];
    }
    let mut rows = vec![["ID", "RUN", "MADE", "SIZE", "KIND", "PATH"].map(str::to_owned)];
    for artifact in list {
        let fate = artifact
            .withheld()
            .map_or(String::new(), |withheld| format!("   withheld: {}; rule: {}", withheld.reason, withheld.rule));
        rows.push([
            short(&artifact.id),
            short(&artifact.run),
            words::ago(artifact.created),
            words::size(artifact.size),
            artifact.kind.clone(),
            // Here already, so that nothing in a name moves what stands behind it.
            words::line(&artifact.path.display().to_string()) + &fate,
        ]);
    }
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..5).map(width).chain([0]).collect();
    let line = |row: &[String; 6]| {
        let cells: Vec<String> = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        cells.join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

fn get(matches: &ArgMatches, artifacts: &dyn Artifacts) -> Result<u8, Trouble> {
    let which = matches.get_one::<String>("which").map(String::as_str).unwrap_or_default();
    let artifact = artifacts.find(which)?;
    if let Some(withheld) = artifact.withheld() {
        let (id, path) = (short(&artifact.id), artifact.path.display());
        let model::Withheld { reason, rule } = withheld;
        words::say(&format!(
            "belljar: {id} ({path}) is withheld: {reason}; rule: {rule}; its contents were not kept: mend what the rule \
             is about, or the policy, and run again"
        ));
        return Ok(WITHHELD);
    }
    match matches.get_one::<PathBuf>("output") {
        Some(path) if path != Path::new("-") => save(&artifact, path, matches.get_flag("force"), artifacts)?,
        _ if std::io::stdout().is_terminal() => show(&artifact, artifacts)?,
        _ => {
            artifacts.copy(&artifact.id, &mut std::io::stdout().lock())?;
        }
    }
    Ok(0)
}

fn save(artifact: &Artifact, path: &Path, force: bool, artifacts: &dyn Artifacts) -> Result<(), Trouble> {
    let cannot = |error: std::io::Error| {
        let fix = match error.kind() {
            std::io::ErrorKind::AlreadyExists => "choose another name, or replace it with `--force`",
            _ => "choose another file",
        };
        Trouble { message: format!("cannot write to `{}`: {error}", path.display()), fix: fix.to_owned() }
    };
    let mut file = NewFile::beside(path, artifact.executable).map_err(cannot)?;
    // Found out before all of it is written; made sure of when it gets its name.
    if !force && file.is_taken() {
        return Err(cannot(std::io::ErrorKind::AlreadyExists.into()));
    }
    artifacts.copy(&artifact.id, &mut file)?;
    file.name_it(force).map_err(cannot)
}

/// To a terminal: all of it is looked at first.
fn show(artifact: &Artifact, artifacts: &dyn Artifacts) -> Result<(), Trouble> {
    let unfit = |why: &str| Trouble {
        message: format!("{} {why}", short(&artifact.id)),
        fix: format!("write it to a file: belljar artifacts get {} -o FILE", short(&artifact.id)),
    };
    if artifact.size > LONGEST_SHOWN {
        return Err(unfit("is too long for a terminal"));
    }
    let mut contents = Vec::new();
    artifacts.copy(&artifact.id, &mut contents)?;
    match std::str::from_utf8(&contents) {
        Ok(text) if is_harmless(text) => {
            let mut out = std::io::stdout().lock();
            let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
            written.map_err(|error| unfit(&format!("can't be shown: {error}")))
        }
        _ => Err(unfit("is not text, or could command the terminal")),
    }
}

/// Lines and tabs aside, nothing of it does anything to a terminal.
fn is_harmless(text: &str) -> bool {
    text.split(['\n', '\t']).all(|part| words::line(part) == part)
}

fn remove(matches: &ArgMatches, artifacts: &dyn Artifacts) -> Result<u8, Trouble> {
    for which in matches.get_many::<String>("which").into_iter().flatten() {
        let gone = artifacts.remove(which)?;
        words::print(Ok(words::page([format!("{}: {} removed", short(&gone.id), gone.path.display())])));
    }
    Ok(0)
}

/// What was collected of a run, in one line.
pub fn summary(gathered: &Gathered) -> String {
    let Gathered { run, artifacts, not_listed, trouble } = gathered;
    if let Some(trouble) = trouble {
        return format!("no artifacts: {trouble}");
    }
    let more = match not_listed {
        0 => String::new(),
        more => format!("; at least {more} more match, beyond the {} that a run may hand over", artifacts.len()),
    };
    let (released, withheld): (Vec<_>, Vec<_>) = artifacts.iter().partition(|artifact| artifact.withheld().is_none());
    let count = match artifacts.len() {
        0 => return format!("no artifacts: nothing that it wrote matches{more}"),
        1 => "1 artifact".to_owned(),
        count => format!("{count} artifacts"),
    };
    let first = withheld.first().and_then(|first| Some((first.path.display(), first.withheld()?)));
    let kept_back = first.map_or(String::new(), |(path, first)| match withheld.len() {
        1 => format!(" (1 withheld: {path}: {})", first.reason),
        count => format!(" ({count} withheld; {path}: {}; …)", first.reason),
    });
    let next = match released.as_slice() {
        [] => format!("; see: belljar artifacts ls {}", short(run)),
        [only] => format!("; get: belljar artifacts get {}", short(&only.id)),
        [first, ..] => {
            format!("; get: belljar artifacts get {} (see: belljar artifacts ls {})", short(&first.id), short(run))
        }
    };
    format!("{count}{kept_back}{more}{next}")
}

fn short(id: &str) -> String {
    id.chars().take(8).collect()
}

#[cfg(test)]
mod tests {
    use model::{Fate, Shown, Withheld};

    use super::*;

    fn artifact(path: &str, fate: Fate) -> Artifact {
        Artifact {
            id: "0123456789abcdef0123456789abcdef".to_owned(),
            run: "fedcba9876543210fedcba9876543210".to_owned(),
            sandbox: None,
            workspace: Shown("/work".into()),
            path: Shown(path.into()),
            size: 5,
            executable: false,
            digest: Some("00".repeat(32)),
            kind: "text/plain".to_owned(),
            fate,
            findings: Vec::new(),
            created: 0,
        }
    }

    fn gathered(artifacts: Vec<Artifact>, not_listed: u64) -> Gathered {
        Gathered { run: "fedcba9876543210fedcba9876543210".to_owned(), artifacts, not_listed, trouble: None }
    }

    #[test]
    fn the_line_says_how_many_and_why_some_are_withheld() {
        let withheld = || artifact("out/b", Fate::Withheld(Withheld::new("artifacts.kind", "it is a pipe")));
        let released = || artifact("out/a", Fate::Released);
        assert_eq!(
            summary(&gathered(vec![released(), withheld()], 0)),
            "2 artifacts (1 withheld: out/b: it is a pipe); get: belljar artifacts get 01234567"
        );
        assert_eq!(
            summary(&gathered(vec![withheld()], 7)),
            "1 artifact (1 withheld: out/b: it is a pipe); at least 7 more match, beyond the 1 that a run may hand over; \
             see: belljar artifacts ls fedcba98"
        );
        assert_eq!(summary(&gathered(vec![], 0)), "no artifacts: nothing that it wrote matches");
    }

    #[test]
    fn a_name_in_the_list_commands_nothing() {
        let list = [artifact("out/\u{1b}[2J\nbelljar: \u{202e}fine", Fate::Released)];
        let page = words::page(table(&list));
        assert_eq!(page.lines().count(), 2, "{page}");
        assert!(page.contains("out/\\u{1b}[2J\\nbelljar: \\u{202e}fine"), "{page}");
    }

    #[test]
    fn only_text_that_commands_nothing_is_shown_on_a_terminal() {
        assert!(is_harmless("a\tb\nc\n"));
        for text in ["\u{1b}]0;x\u{7}", "a\rb", "\u{9b}2J", "\u{202e}", "\u{7f}"] {
            assert!(!is_harmless(text), "{text:?}");
        }
    }
}
