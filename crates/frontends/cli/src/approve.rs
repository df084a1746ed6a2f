//! `belljar approve`: the questions that wait, and a person's answers to them.

mod dialogue;
mod letters;
mod prompt;
mod shown;
#[cfg(test)]
mod terminal_tests;
#[cfg(test)]
mod tests;

use clap::ArgMatches;
use model::{Answer, Approvals, Decision, Given, LONGEST_VALUE, Parked, Standing, Trouble};
use rustix::termios::isatty;
use serde::Serialize;

use crate::words::{self, Layout};
use crate::{NOT_SET_UP, kept};
use dialogue::Dialogue;

pub use prompt::Prompt;
pub use shown::{block, lines as question};

/// Nobody waits for such an answer.
const NO_SUCH: u8 = 1;
/// Digits of a digest that say which: enough that nobody finds another question with the same.
const DIGITS: usize = 12;

pub fn approve(matches: &ArgMatches, approvals: &dyn Approvals) -> u8 {
    let words: Vec<&str> = matches.get_many::<String>("words").into_iter().flatten().map(String::as_str).collect();
    let done = match words.as_slice() {
        [] | ["list"] => list(matches, approvals),
        ["revoke", which] => revoke(matches, approvals, which),
        ["revoke"] => complaint("which one?", "`belljar approve list --all` shows them: `belljar approve revoke ID`"),
        [which] => answer(matches, approvals, which),
        _ => complaint("one question at a time", "`belljar approve ID`"),
    };
    done.unwrap_or_else(|trouble| kept::complain(&trouble))
}

fn complaint(message: &str, fix: &str) -> Result<u8, Trouble> {
    Err(Trouble { message: message.to_owned(), fix: fix.to_owned() })
}

#[derive(Serialize)]
struct Listed<'a> {
    parked: &'a [Parked],
    #[serde(skip_serializing_if = "Option::is_none")]
    standing: Option<&'a [Standing]>,
}

fn list(matches: &ArgMatches, approvals: &dyn Approvals) -> Result<u8, Trouble> {
    let parked = approvals.parked(text(matches, "of"))?;
    let standing = if matches.get_flag("all") { Some(approvals.standing()?) } else { None };
    Ok(tell(matches, &Listed { parked: &parked, standing: standing.as_deref() }, || {
        listed(&parked, standing.as_deref(), now(), prompt::width(rustix::stdio::stdout()))
    }))
}

fn listed(parked: &[Parked], standing: Option<&[Standing]>, now: u64, width: usize) -> Vec<String> {
    let line = |parked: &Parked| {
        let about = parked.question.reasons.first().map_or("", |reason| &reason.about);
        let left = parked.until.saturating_sub(now) / 1000;
        format!(
            "{}  {}  {}  {left} s left",
            letters::inline(&parked.id),
            letters::inline(&parked.question.principal.to_string()),
            cut(about)
        )
    };
    let mut lines: Vec<String> = parked.iter().map(line).collect();
    if parked.is_empty() {
        lines.push("no question waits for an answer".to_owned());
    } else {
        lines.push("look at one, and answer it: belljar approve ID".to_owned());
    }
    if let Some(standing) = standing {
        lines.push(String::new());
        if standing.is_empty() {
            lines.push("no answer stands".to_owned());
        } else {
            lines.push("answers that stand, until `belljar approve revoke ID`:".to_owned());
            lines.extend(shown::standing(standing, width));
        }
    }
    lines
}

/// The beginning, in a list; all of it is shown before it is answered.
fn cut(text: &str) -> String {
    const MOST: usize = 60;
    let mut shown = String::new();
    let mut columns = 0;
    for piece in letters::pieces(text) {
        columns += piece.columns;
        if columns > MOST {
            return shown + "⟨more⟩";
        }
        shown += &piece.text;
    }
    shown
}

fn revoke(matches: &ArgMatches, approvals: &dyn Approvals, which: &str) -> Result<u8, Trouble> {
    let Some(revoked) = approvals.revoke(which)? else {
        words::say(&format!("belljar: no answer `{which}` stands; see `belljar approve list --all`"));
        return Ok(NO_SUCH);
    };
    Ok(tell(matches, &revoked, || {
        let mut lines = vec!["taken back:".to_owned()];
        lines.extend(shown::standing(std::slice::from_ref(&revoked), prompt::width(rustix::stdio::stdout())));
        lines
    }))
}

#[derive(Serialize)]
struct Answered<'a> {
    id: &'a str,
    digest: &'a str,
    decision: Decision,
    taken: bool,
}

fn answer(matches: &ArgMatches, approvals: &dyn Approvals, which: &str) -> Result<u8, Trouble> {
    let Some(parked) = approvals.find(which, text(matches, "of"))? else {
        words::say(&format!("belljar: no question `{which}` waits for an answer; see `belljar approve list`"));
        return Ok(NO_SUCH);
    };
    let asked = decision(matches);
    if asked.is_none() && matches.get_flag("json") {
        return Ok(tell(matches, &parked, Vec::new));
    }
    let Some(decision) = meant(matches, approvals, which, &parked, asked)? else { return Ok(NOT_SET_UP) };
    let reason = text(matches, "reason").unwrap_or_default().to_owned();
    let given = approvals.answer(&parked, &Answer { decision, reason })?;
    let Parked { id, digest, .. } = &parked;
    let taken = given == Given::Taken;
    let told = tell(matches, &Answered { id, digest, decision, taken }, || vec![outcome(id, decision, given)]);
    Ok(match given {
        _ if told != 0 => told,
        Given::Taken => 0,
        Given::TooLate => NO_SUCH,
        Given::NotAccepted => NOT_SET_UP,
    })
}

fn outcome(id: &str, decision: Decision, given: Given) -> String {
    match (given, decision) {
        (Given::Taken, Decision::Once) => format!("{id}: yes, this time"),
        (Given::Taken, Decision::Session) => format!("{id}: yes, as long as the asker's session lasts"),
        (Given::Taken, Decision::Always) => {
            format!("{id}: yes, from now on; take it back: see `belljar approve list --all`")
        }
        (Given::Taken, Decision::Deny) => format!("{id}: no"),
        (Given::TooLate, _) => format!("{id}: too late: somebody else answered, or nobody waits any more"),
        (Given::NotAccepted, _) => format!("{id}: not accepted; the terminal of whoever waits says why"),
    }
}

/// What the person means, after they have seen the question; nothing if they can't be asked, which was said.
fn meant(
    matches: &ArgMatches,
    approvals: &dyn Approvals,
    which: &str,
    parked: &Parked,
    asked: Option<Decision>,
) -> Result<Option<Decision>, Trouble> {
    if asked == Some(Decision::Deny) {
        return Ok(asked);
    }
    let width = prompt::width(rustix::stdio::stderr());
    let Some(lines) = shown::lines(parked, width) else {
        complaint(
            &format!("this question has a text of more than {LONGEST_VALUE} characters, or too many of them"),
            "nobody can judge that: answer with `--deny`",
        )?;
        return Ok(None);
    };
    lines.iter().for_each(|line| words::say(line));
    let standing = || shown::standing(&approvals.would_stand(parked), width);
    if matches.get_flag("yes") {
        explicit(which, parked, text(matches, "digest"), asked)?;
        if asked == Some(Decision::Always) {
            words::say("to be written down:");
            standing().iter().for_each(|line| words::say(line));
        }
        return Ok(asked);
    }
    if !isatty(rustix::stdio::stdin()) {
        complaint(
            "standard input is no terminal, so nobody can be asked",
            "answer at a terminal, or say exactly what is meant: `belljar approve ID --once --yes --digest DIGEST`",
        )?;
    }
    let dialogue = asked.map_or_else(|| Dialogue::new(parked.offers), Dialogue::about);
    let standing = if parked.offers.always { standing() } else { Vec::new() };
    Ok(Some(prompt::converse(dialogue, &standing)))
}

/// Without a person at a terminal, everything has to be said: which question, what it was, and which answer.
fn explicit(which: &str, parked: &Parked, digest: Option<&str>, asked: Option<Decision>) -> Result<(), Trouble> {
    let no = |message: &str, fix: &str| complaint(message, fix).map(drop);
    if asked.is_none() {
        return no("`--yes` to what?", "add `--once`, `--session` or `--always`");
    }
    if which != parked.id {
        return no("`--yes` needs the whole id", "see `belljar approve list`");
    }
    match digest {
        Some(digest) if digest.len() >= DIGITS && parked.digest.starts_with(digest) => Ok(()),
        Some(digest) if digest.len() >= DIGITS => no("the digest is of another question", "look at it again"),
        _ => no(
            &format!("`--yes` needs the digest of what is approved, {DIGITS} digits of it or more"),
            "look at the question, then add `--digest DIGEST`",
        ),
    }
}

fn decision(matches: &ArgMatches) -> Option<Decision> {
    let all = [Decision::Once, Decision::Session, Decision::Always, Decision::Deny];
    all.into_iter().find(|decision| matches.get_flag(decision.name()))
}

fn text<'a>(matches: &'a ArgMatches, name: &str) -> Option<&'a str> {
    matches.get_one::<String>(name).map(String::as_str)
}

fn tell(matches: &ArgMatches, object: &impl Serialize, lines: impl FnOnce() -> Vec<String>) -> u8 {
    let text = match matches.get_flag("json") {
        true => words::json(object, Layout::Page),
        false => Ok(words::page(lines())),
    };
    if words::print(text) { 0 } else { NOT_SET_UP }
}

/// Milliseconds since 1970.
fn now() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
}
