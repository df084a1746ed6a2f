//! `belljar apply`: taking changes onto the real files.

use clap::ArgMatches;
use model::{Deed, Favor, Sandboxes, Taken, Taking, Trouble};

use crate::words::{self, Layout};
use crate::{NOT_SET_UP, diff, kept};

/// A person had to agree, and did not.
const UNANSWERED: u8 = 122;
/// Conflicts: something was left for somebody to decide.
const CONFLICTS: u8 = 1;

pub fn apply(matches: &ArgMatches, sandboxes: &dyn Sandboxes) -> u8 {
    match take(matches, sandboxes) {
        Ok(code) => code,
        Err(trouble) => kept::complain(&trouble),
    }
}

fn take(matches: &ArgMatches, sandboxes: &dyn Sandboxes) -> Result<u8, Trouble> {
    let diff::Meant { which, paths, .. } = diff::meant(matches, sandboxes, false)?;
    let favor = match (matches.get_flag("ours"), matches.get_flag("theirs")) {
        (true, _) => Some(Favor::Ours),
        (_, true) => Some(Favor::Theirs),
        _ => None,
    };
    let check = matches.get_flag("check");
    let taken = sandboxes.apply(&which, &Taking { paths, favor, check, agreed: None, agent: None })?;
    let text = match matches.get_flag("json") {
        true => words::json(&taken, Layout::Page),
        false => Ok(words::page(lines(&taken, check))),
    };
    Ok(match (words::print(text), taken.conflicts.is_empty()) {
        (false, _) => NOT_SET_UP,
        _ if taken.unanswered.is_some() => UNANSWERED,
        (true, true) => 0,
        (true, false) => CONFLICTS,
    })
}

/// More than this are only counted, where nothing went wrong with them.
const FEW: usize = 50;

pub fn lines(taken: &Taken, check: bool) -> Vec<String> {
    let several = taken.taken.iter().chain(&taken.conflicts).map(|deed| &deed.workspace);
    let several = several.collect::<std::collections::BTreeSet<_>>().len() > 1;
    let line = |deed: &Deed| {
        let path = if several { deed.workspace.join(&deed.path.0) } else { deed.path.0.clone() };
        format!("  {}   {}", path.display(), deed.what)
    };
    let mut lines: Vec<String> = taken.recovered.clone();
    let mut part = |title: String, deeds: &[Deed], most: usize| {
        if deeds.is_empty() {
            return;
        }
        lines.push(title);
        lines.extend(deeds.iter().take(most).map(line));
        if deeds.len() > most {
            lines.push(format!("  and {} more", deeds.len() - most));
        }
    };
    let verb = if check { "would be taken" } else { "taken" };
    part(format!("{verb}: {}", taken.taken.len()), &taken.taken, FEW);
    part(
        format!("conflicts: {} (nothing of these was written; --ours or --theirs decides)", taken.conflicts.len()),
        &taken.conflicts,
        usize::MAX,
    );
    part(format!("protected, and only taken when named: {}", taken.held_back.len()), &taken.held_back, usize::MAX);
    part(format!("never taken: {}", taken.refused.len()), &taken.refused, usize::MAX);
    let asks = if check { "a person would be asked about" } else { "nothing was taken: a person had to agree to" };
    part(format!("{asks}: {}", taken.asked.len()), &taken.asked, usize::MAX);
    if let Some(why) = &taken.unanswered {
        lines.push(why.clone());
    }
    let nothing = [&taken.taken, &taken.conflicts, &taken.held_back, &taken.refused, &taken.asked]
        .iter()
        .all(|deeds| deeds.is_empty());
    if nothing {
        lines.push(format!("{}: there is nothing to take", taken.sandbox));
    } else if !check && !taken.complete {
        let id = &taken.sandbox;
        lines.push(format!("{id} keeps the rest; look: belljar diff {id}, throw it away: belljar discard {id}"));
    }
    lines
}
