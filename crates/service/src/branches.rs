//! Forks of a live context: one job writes its variables, one for each fork takes them up.

use std::os::fd::OwnedFd;
use std::path::Path;

use model::{Branched, Cell, KeptSandbox, Service};
use serde_json::{Value, json};

use crate::job::{Answer, Setting};
use crate::task::{go_to, met, no_cell, told, wrong};
use crate::wish::Wish;

pub fn forked(
    service: &dyn Service,
    setting: &Setting,
    id: &str,
    (wish, cell, count): (Wish, Cell, usize),
    ready: &dyn Fn(Value),
) -> Result<Answer, Answer> {
    let kept = met(service, id)?;
    let request = wish.request(setting).map_err(wrong)?;
    go_to(kept.workspaces.first().map_or(Path::new("/"), |workspace| workspace))?;
    let begun = |forks: &[KeptSandbox]| ready(serde_json::to_value(forks).unwrap_or_default());
    let forked = service.sandboxes().fork_context(&kept.id, &request, &cell, (count, given()?), &begun);
    Ok(branched(&forked.map_err(no_cell)?, &kept.id, service))
}

pub fn taken_up(
    service: &dyn Service,
    setting: &Setting,
    id: &str,
    (wish, cell): (Wish, Cell),
) -> Result<Answer, Answer> {
    let kept = met(service, id)?;
    let request = wish.request(setting).map_err(wrong)?;
    go_to(kept.workspaces.first().map_or(Path::new("/"), |workspace| workspace))?;
    let taken = service.sandboxes().take_up_context(&kept.id, &request, &cell, given()?).map_err(no_cell)?;
    Ok(branched(&taken, &kept.id, service))
}

/// What came as input, for whoever it is meant for.
fn given() -> Result<OwnedFd, Answer> {
    let given = rustix::stdio::stdin().try_clone_to_owned();
    given.map_err(|error| wrong(format!("nothing was handed over: {error}")))
}

/// Of variables that were written or read: all of it, or why not.
fn branched(branched: &Branched, sandbox: &str, service: &dyn Service) -> Answer {
    let Branched { outcome, answer, forks, left } = branched;
    if branched.is_whole() {
        return Answer::Done(json!({"sandbox": sandbox, "forks": forks, "left": left}));
    }
    let Some(answer) = answer else { return told(outcome, service) };
    let (what, hint) = match (&answer.lost, &answer.error) {
        (Some(lost), _) => (format!("the context is gone: {lost}"), "make it anew"),
        (None, _) if answer.interrupted => {
            ("it was interrupted, and the context is what it was".to_owned(), "give it more time")
        }
        (None, Some(error)) => {
            (format!("the context can't: {}: {}", error.name, error.value), "remove what is in the way")
        }
        (None, None) => ("the context did not do it".to_owned(), "try again"),
    };
    Answer::Conflict { what, hint: hint.to_owned() }
}
