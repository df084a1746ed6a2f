//! Runs over layers: they are made before the sandbox, and looked at when it has ended.

use std::path::PathBuf;

use model::{Access, Backend, Grant, Leftover, Outcome, Place, Request, SetupFailure, Tally, Trouble};
use workspace::{Means, Run, Workspaces};

use crate::artifacts::Collecting;
use crate::enclose;
use crate::judge::Admitted;
use crate::live;
use crate::record::Record;
use crate::told::Telling;

/// The places whose changes are kept apart.
pub fn places(grant: &Grant) -> Vec<&Place> {
    grant.powers().files.places.iter().filter(|place| place.access == Access::Layered).collect()
}

/// Encloses, supervises, and says what was left.
pub fn run(
    backends: &[Box<dyn Backend>],
    workspaces: &Workspaces,
    request: &Request,
    admitted: &Admitted,
    kept: Option<&str>,
    collecting: Option<&Collecting<'_>>,
    record: &Record<'_>,
) -> Outcome {
    let outcome = over_layers(backends, workspaces, request, admitted, kept, collecting, record);
    told_whole(admitted, record, outcome)
}

/// With what was seen of it on the way in and out.
pub fn told_whole(admitted: &Admitted, record: &Record<'_>, mut outcome: Outcome) -> Outcome {
    let Admitted { inspected, release, capture, .. } = admitted;
    // Whatever came of it: the gate ends with it.
    let traffic = admitted.traffic();
    if let Outcome::Ran(finished) = &mut outcome {
        record.run().clone_into(&mut finished.run);
        finished.traffic = traffic;
        finished.captured = capture.captured();
        finished.inspected = inspected.clone();
        finished.redacted = release.redacted();
        finished.unguarded = release.unguarded().to_vec();
    }
    outcome
}

fn over_layers(
    backends: &[Box<dyn Backend>],
    workspaces: &Workspaces,
    request: &Request,
    admitted: &Admitted,
    kept: Option<&str>,
    collecting: Option<&Collecting<'_>>,
    record: &Record<'_>,
) -> Outcome {
    let places = places(&admitted.grant);
    if places.is_empty() {
        return match enclose::in_the_fittest(backends, request, admitted, &[], record) {
            Ok(sandbox) => collected(workspaces, None, record, sandbox.supervise(), collecting),
            Err(outcome) => outcome,
        };
    }
    // Its layers are held by whoever opened it, and stay so.
    match kept.map(|which| workspaces.visit(which)) {
        Some(Ok((known, Some(host)))) => {
            record.is_over(&known);
            return match live::visit(backends, request, admitted, record, host) {
                Ok(sandbox) => {
                    workspaces.watch().begins();
                    sandbox.supervise()
                }
                Err(outcome) => outcome,
            };
        }
        Some(Err(trouble)) => return not_set_up(trouble),
        Some(Ok((_, None))) | None => {}
    }
    // Kept for whoever lists sandboxes.
    let told = Telling::of(request).request(request);
    let begin = |means| match kept {
        Some(which) => workspaces.resume(which, &told),
        None => workspaces.begin(&places, &told, &here(), means),
    };
    let run = match begin(Means::Best) {
        Ok(run) => run,
        Err(trouble) => return not_set_up(trouble),
    };
    record.is_over(&run.record().id);
    match enclose::in_the_fittest(backends, request, admitted, &run.stacks(), record) {
        Ok(sandbox) => {
            workspaces.watch().begins();
            left((backends, workspaces), run, record, sandbox.supervise(), collecting)
        }
        Err(outcome) => {
            if let Err(error) = run.abandon() {
                return not_set_up(error.into());
            }
            let Outcome::NotSetUp(SetupFailure { layers: true, message, fix, .. }) = &outcome else { return outcome };
            if kept.is_some() {
                return outcome;
            }
            let run = match begin(Means::Copies { why: message, fix }) {
                Ok(run) => run,
                Err(trouble) => return not_set_up(trouble),
            };
            record.is_over(&run.record().id);
            match enclose::in_the_fittest(backends, request, admitted, &run.stacks(), record) {
                Ok(sandbox) => {
                    workspaces.watch().begins();
                    left((backends, workspaces), run, record, sandbox.supervise(), collecting)
                }
                Err(outcome) => match run.abandon() {
                    Ok(()) => outcome,
                    Err(error) => not_set_up(error.into()),
                },
            }
        }
    }
}

/// With layers, or without any.
pub fn ended(
    (backends, workspaces): (&[Box<dyn Backend>], &Workspaces),
    run: Option<Run>,
    record: &Record<'_>,
    outcome: Outcome,
    collecting: Option<&Collecting<'_>>,
) -> Outcome {
    match run {
        Some(run) => left((backends, workspaces), run, record, outcome, collecting),
        None => collected(workspaces, None, record, outcome, collecting),
    }
}

pub fn left(
    (backends, workspaces): (&[Box<dyn Backend>], &Workspaces),
    run: Run,
    record: &Record<'_>,
    outcome: Outcome,
    collecting: Option<&Collecting<'_>>,
) -> Outcome {
    // First: of a run that changed nothing else, the layers are gone after this.
    let mut outcome = collected(workspaces, Some(&run), record, outcome, collecting);
    let sandbox = run.record().shown();
    // Mounts are gone even where something else can't be removed, and that is told.
    let let_go = || {
        for Trouble { message, fix } in backends.iter().filter_map(|backend| backend.tidy().err()) {
            record.left_behind(&message);
            workspaces.watch().warn(&format!("{message}; {fix}"));
        }
    };
    let leftover = workspaces.finish(run, &let_go).unwrap_or_else(|trouble: Trouble| {
        let trouble = Some(trouble.to_string());
        Some(Leftover { sandbox, tally: Tally::default(), trouble, manifest: None, listed: Vec::new() })
    });
    if let Outcome::Ran(finished) = &mut outcome {
        finished.leftover = leftover;
    }
    outcome
}

fn collected(
    workspaces: &Workspaces,
    run: Option<&Run>,
    record: &Record<'_>,
    mut outcome: Outcome,
    collecting: Option<&Collecting<'_>>,
) -> Outcome {
    if let Some(collecting) = collecting {
        collecting.collect(workspaces, run, record.run(), &mut outcome);
    }
    outcome
}

pub fn not_set_up(trouble: Trouble) -> Outcome {
    let Trouble { message, fix } = trouble;
    Outcome::NotSetUp(SetupFailure { wall: None, message, fix, layers: false })
}

/// Where paths of a request start.
pub fn here() -> PathBuf {
    std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"))
}
