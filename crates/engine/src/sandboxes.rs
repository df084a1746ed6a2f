//! Sandboxes that are kept: asked for by the engine's callers, done by `workspace`.

use std::path::PathBuf;
use std::time::Duration;

use model::{Changes, Collected, KeptSandbox, Outcome, Patch, Request, Sandboxes, Taken, Taking, Trouble, Wording};

use crate::judge::usage;
use crate::survey::by_letter;
use crate::told::Telling;
use crate::{Engine, layers};

impl Sandboxes for Engine {
    fn create(&self, request: &Request, name: Option<&str>) -> Result<KeptSandbox, Outcome> {
        // Judged as if something harmless ran in it: what may not be granted is found out now, not at its first use.
        let request = Request { command: vec!["/bin/true".into()], ..request.clone() };
        let admitted = self.admit(&request, None)?;
        let places = layers::places(&admitted.grant);
        if places.is_empty() {
            return Err(usage(
                "there is no workspace whose changes could be kept".to_owned(),
                "go to a project, or name one: `belljar create --workspace DIR`",
            ));
        }
        let request = Request { command: Vec::new(), ..request };
        self.workspaces.create(&places, &request, &layers::here(), name).map_err(layers::not_set_up)
    }

    fn run_in(&self, which: &str, request: &Request) -> Outcome {
        let request = match self.workspaces.request(which, request) {
            Ok(request) => request,
            Err(trouble) => return layers::not_set_up(trouble),
        };
        let outcome = match self.admit(&request, Some(which)) {
            Ok(admitted) => self.carry_out(&request, &admitted, Some(which)),
            Err(outcome) => outcome,
        };
        Telling::of(&request).outcome(outcome)
    }

    fn list(&self) -> Result<Vec<KeptSandbox>, Trouble> {
        self.workspaces.list()
    }

    fn find(&self, which: &str) -> Result<KeptSandbox, Trouble> {
        self.workspaces.find(which)
    }

    fn changes(&self, which: &str, paths: &[PathBuf]) -> Result<Changes, Trouble> {
        let mut changes = self.workspaces.changes(which, &absolute(paths))?;
        self.commit_gate(which)?.mark(&mut changes);
        Ok(changes)
    }

    fn compare(&self, which: &str, other: &str, paths: &[PathBuf]) -> Result<Changes, Trouble> {
        self.workspaces.compare(which, other, &absolute(paths))
    }

    fn patch(&self, which: &str, other: Option<&str>, paths: &[PathBuf], wording: Wording) -> Result<Patch, Trouble> {
        let bytes = self.workspaces.patch(which, other, &absolute(paths))?;
        Ok(Telling::of_the_process().patch(bytes, wording))
    }

    fn apply(&self, which: &str, taking: &Taking) -> Result<Taken, Trouble> {
        // Whoever calls says what to take; that somebody agreed is only said here, after they did.
        let taking = Taking { paths: absolute(&taking.paths), agreed: None, ..taking.clone() };
        let gate = self.commit_gate(which)?;
        let taken = self.workspaces.apply(which, &taking, gate.keeper())?;
        if taking.check {
            return Ok(taken);
        }
        gate.record(&taken, self.workspaces.watch());
        if taken.asked.is_empty() {
            return Ok(taken);
        }
        // What is taken then must be what was shown now, so the answer goes with a digest of it.
        match gate.ask(self, &taken) {
            Err(refusal) => {
                Ok(Taken { unanswered: Some(format!("{}; hint: {}", refusal.message, refusal.hint)), ..taken })
            }
            Ok(_) => {
                let agreed = Some(taken.asked_digest);
                self.workspaces.apply(which, &Taking { agreed, ..taking }, gate.keeper())
            }
        }
    }

    fn discard(&self, which: &str) -> Result<KeptSandbox, Trouble> {
        self.workspaces.discard(which)
    }

    fn remove(&self, which: &str) -> Result<KeptSandbox, Trouble> {
        self.workspaces.remove(which)
    }

    fn snapshot(&self, which: &str, name: Option<&str>) -> Result<String, Trouble> {
        self.workspaces.snapshot(which, name)
    }

    fn roll_back(&self, which: &str, snapshot: Option<&str>) -> Result<String, Trouble> {
        self.workspaces.roll_back(which, snapshot)
    }

    fn fork(&self, which: &str, count: usize) -> Result<Vec<KeptSandbox>, Trouble> {
        self.workspaces.fork(which, count)
    }

    fn collect(&self, older_than: Duration, only_tell: bool) -> Result<Collected, Trouble> {
        self.workspaces.collect(older_than, only_tell)
    }
}

/// From where the caller is, `.` and `..` taken out by their letters: what they name need not exist here.
fn absolute(paths: &[PathBuf]) -> Vec<PathBuf> {
    let here = std::fs::canonicalize(layers::here()).unwrap_or_else(|_| layers::here());
    paths.iter().map(|path| by_letter(&here.join(path))).collect()
}
