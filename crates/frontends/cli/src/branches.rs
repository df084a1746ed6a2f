//! `belljar fork --context`: forks that are open, each with the variables of a live context.

use std::os::fd::OwnedFd;

use clap::ArgMatches;
use model::{
    Branched, Cell, CellLanguage, CellNot, KeptSandbox, Language, LeftBehind, Makes, Outcome, Request, Sandboxes,
    Trouble,
};
use serde_json::json;

use crate::words::{self, Layout};
use crate::{code, kept, run};

pub fn fork(matches: &ArgMatches, sandboxes: &dyn Sandboxes, which: &str, count: usize, context: &str) -> u8 {
    let program = match Language::Python.program(&code::OfThePath) {
        Ok(program) => program.to_owned(),
        Err(missing) => return code::no_toolchain(&missing),
    };
    let cell = Cell {
        language: CellLanguage::Python,
        program,
        code: String::new(),
        context: Some(context.to_owned()),
        makes: Makes::Never,
    };
    match forked(sandboxes, which, count, &cell) {
        Ok((left, forks)) => tell(matches, context, &left, &forks),
        Err(Failed::Trouble(trouble)) => kept::complain(&trouble),
        Err(Failed::Outcome(outcome)) => {
            match matches.get_flag("json") {
                true => run::say_as_json(&outcome),
                false => words::say(&run::summary(&outcome)),
            }
            wire::code(&outcome)
        }
    }
}

enum Failed {
    Trouble(Trouble),
    Outcome(Box<Outcome>),
}

impl From<Trouble> for Failed {
    fn from(trouble: Trouble) -> Failed {
        Failed::Trouble(trouble)
    }
}

impl From<CellNot> for Failed {
    fn from(not: CellNot) -> Failed {
        match not {
            CellNot::Closed(trouble)
            | CellNot::NoContext(trouble)
            | CellNot::Conflict(trouble)
            | CellNot::Wrong(trouble)
            | CellNot::Trouble(trouble) => Failed::Trouble(trouble),
        }
    }
}

type Forks = Vec<(KeptSandbox, Vec<LeftBehind>)>;

/// All of them, or none.
fn forked(
    sandboxes: &dyn Sandboxes,
    which: &str,
    count: usize,
    cell: &Cell,
) -> Result<(Vec<LeftBehind>, Forks), Failed> {
    let bytes = sandboxes.parcel()?;
    let own = bytes.try_clone().map_err(|error| Trouble { message: error.to_string(), fix: "try again".to_owned() })?;
    let written = whole(sandboxes.fork_context(which, &Request::default(), cell, (count, own), &|_| {})?)?;
    let taken_up = written.forks.iter().map(|fork| Ok((fork.clone(), taken_up(sandboxes, fork, cell, &bytes)?)));
    match taken_up.collect::<Result<Forks, Failed>>() {
        Ok(forks) => Ok((written.left, forks)),
        Err(failed) => {
            for fork in &written.forks {
                // One that nobody stays with need not be stopped.
                drop(sandboxes.stop(&fork.id));
                sandboxes.remove(&fork.id)?;
            }
            Err(failed)
        }
    }
}

fn taken_up(
    sandboxes: &dyn Sandboxes,
    fork: &KeptSandbox,
    cell: &Cell,
    bytes: &OwnedFd,
) -> Result<Vec<LeftBehind>, Failed> {
    code::host(&fork.id).map_err(|error| Trouble {
        message: format!("a fork can't be opened: {error}"),
        fix: "see what `belljar open` says of the sandbox itself".to_owned(),
    })?;
    let comes = sandboxes.hand_over(bytes)?;
    Ok(whole(sandboxes.take_up_context(&fork.id, &Request::default(), cell, comes)?)?.left)
}

fn whole(branched: Branched) -> Result<Branched, Failed> {
    if branched.is_whole() {
        return Ok(branched);
    }
    let trouble = |message: String| Trouble { message, fix: "see what is in the context".to_owned() };
    match branched.answer {
        None => Err(Failed::Outcome(Box::new(branched.outcome))),
        Some(answer) => Err(match (answer.lost, answer.error) {
            (Some(lost), _) => trouble(format!("the context is gone: {lost}")),
            (None, Some(error)) => trouble(format!("the context can't be forked: {}: {}", error.name, error.value)),
            (None, None) => trouble("the context can't be forked".to_owned()),
        }
        .into()),
    }
}

fn tell(matches: &ArgMatches, context: &str, left: &[LeftBehind], forks: &Forks) -> u8 {
    let text = match matches.get_flag("json") {
        true => {
            let forks: Vec<_> = forks
                .iter()
                .map(|(fork, left)| json!({"id": fork.id, "name": fork.name, "context": context, "left": left}))
                .collect();
            words::json(&json!({"context": context, "left": left, "forks": forks}), Layout::Page)
        }
        false => {
            let stayed = |of: &str, left: &[LeftBehind]| {
                let line = |left: &LeftBehind| format!("  {of}{} stayed behind: {}", left.name, left.why);
                left.iter().map(line).collect::<Vec<_>>()
            };
            let mut lines: Vec<String> = forks.iter().map(|(fork, _)| kept::called(fork)).collect();
            lines.extend(stayed("", left));
            lines.extend(forks.iter().flat_map(|(fork, left)| stayed(&format!("{}: ", kept::called(fork)), left)));
            Ok(words::page(lines))
        }
    };
    if words::print(text) { 0 } else { crate::NOT_SET_UP }
}
