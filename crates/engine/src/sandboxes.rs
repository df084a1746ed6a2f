//! Sandboxes that are kept: asked for by the engine's callers, done by `workspace`.

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::Duration;

use ledger::Durable;
use model::{
    Approval, Branched, Cell, CellDone, CellNot, Changes, Collected, ContextDeed, ContextShown, Deed, FileAnswer,
    FileOperation, FilesNot, Gatekeeper, KeptSandbox, Outcome, Patch, Refusal, Removed, Request, Sandboxes, Taken,
    Taking, Trouble, Wording,
};
use serde_json::{Value, json};

use crate::judge::usage;
use crate::survey::by_letter;
use crate::told::Telling;
use crate::{Engine, layers};

impl Sandboxes for Engine {
    fn create(&self, request: &Request, name: Option<&str>) -> Result<KeptSandbox, Outcome> {
        // Judged as if something harmless ran in it: what may not be granted is found out now, not at its first use.
        let request = Request { command: vec!["/bin/true".into()], ..request.clone() };
        let record = self.record()?;
        let admitted = match self.admit(&request, None, &record) {
            Ok(admitted) => admitted,
            Err(outcome) => return Err(record.ended(&request, outcome)),
        };
        let places = layers::places(&admitted.grant);
        if places.is_empty() {
            let outcome = usage(
                "there is no workspace whose changes could be kept".to_owned(),
                "go to a project, or name one: `belljar create --workspace DIR`",
            );
            return Err(record.ended(&request, outcome));
        }
        let request = Request { command: Vec::new(), ..request };
        record.write(Durable::default())?;
        let made = self.workspaces.create(&places, &request, &layers::here(), name).map_err(layers::not_set_up)?;
        self.record_done("sandbox.created", false, json!({"sandbox": made.id, "name": made.name}))
            .map_err(layers::not_set_up)?;
        Ok(made)
    }

    fn run_in(&self, which: &str, request: &Request) -> Outcome {
        let request = match self.workspaces.request(which, request) {
            Ok(request) => request,
            Err(trouble) => return layers::not_set_up(trouble),
        };
        self.recorded(&request, Some(which))
    }

    fn stay(&self, which: &str, ready: &dyn Fn(&KeptSandbox)) -> Outcome {
        self.stay_with(which, ready)
    }

    fn stop(&self, which: &str) -> Result<KeptSandbox, Trouble> {
        self.stop_staying(which)
    }

    fn expire(&self, which: &str, why: &str) -> Result<KeptSandbox, Trouble> {
        self.stop_because(which, why)
    }

    fn pause(&self, which: &str, pause: bool) -> Result<KeptSandbox, Trouble> {
        self.pause_or_resume(which, pause)
    }

    fn files(&self, which: &str, operation: &FileOperation, input: Vec<u8>) -> Result<FileAnswer, FilesNot> {
        self.work_on_files(which, operation, input)
    }

    fn run_cell(&self, which: &str, request: &Request, cell: &Cell) -> Result<CellDone, CellNot> {
        self.cell(which, request, cell)
    }

    fn contexts(&self, which: &str) -> Result<Vec<ContextShown>, CellNot> {
        self.contexts_of(which)
    }

    fn do_to_context(&self, which: &str, context: &str, deed: ContextDeed) -> Result<(), CellNot> {
        self.done_to_context(which, context, deed)
    }

    fn parcel(&self) -> Result<OwnedFd, Trouble> {
        sys::parcel::make().map_err(no_parcel)
    }

    fn fork_context(
        &self,
        which: &str,
        request: &Request,
        cell: &Cell,
        into: (usize, OwnedFd),
        begun: &dyn Fn(&[KeptSandbox]),
    ) -> Result<Branched, CellNot> {
        self.context_forked(which, request, cell, into, begun)
    }

    fn take_up_context(
        &self,
        which: &str,
        request: &Request,
        cell: &Cell,
        comes: OwnedFd,
    ) -> Result<Branched, CellNot> {
        self.context_taken_up(which, request, cell, comes)
    }

    fn hand_over(&self, bytes: &OwnedFd) -> Result<OwnedFd, Trouble> {
        crate::contexts::handed_over(bytes).map_err(no_parcel)
    }

    fn list(&self) -> Result<Vec<KeptSandbox>, Trouble> {
        let mut list = self.workspaces.list()?;
        // From the record; without it, what is kept is listed all the same.
        list.extend(self.going_without_layers().unwrap_or_default());
        Ok(list)
    }

    fn under(&self) -> Result<Vec<PathBuf>, Trouble> {
        self.workspaces.under()
    }

    fn find(&self, which: &str) -> Result<KeptSandbox, Trouble> {
        self.workspaces.find(which)
    }

    fn identify(&self, which: &str) -> Result<KeptSandbox, Trouble> {
        self.workspaces.identify(which)
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
        let asking = gate.keeper_who_asks();
        let keeper: &dyn Gatekeeper = if taking.agent.is_some() { &asking } else { gate.keeper() };
        if taking.check {
            return self.workspaces.apply(which, &taking, keeper);
        }
        self.record_deed("commit.begun", self.wanted(which, &taking)?)?;
        let taken = self.workspaces.apply(which, &taking, keeper);
        self.record_commit(which, &taken);
        let taken = taken?;
        gate.record(&taken, self.workspaces.watch());
        if taken.asked.is_empty() {
            return Ok(taken);
        }
        // What is taken then must be what was shown now, so the answer goes with a digest of it.
        let answer = gate.ask(self, &taken, taking.agent.as_deref());
        self.record_answer(&taken, &answer)?;
        match answer {
            Err(refusal) => {
                Ok(Taken { unanswered: Some(format!("{}; hint: {}", refusal.message, refusal.hint)), ..taken })
            }
            Ok(_) => {
                let agreed = Some(taken.asked_digest);
                let taking = Taking { agreed, ..taking };
                self.record_deed("commit.begun", self.wanted(which, &taking)?)?;
                let taken = self.workspaces.apply(which, &taking, keeper);
                self.record_commit(which, &taken);
                taken
            }
        }
    }

    fn discard(&self, which: &str) -> Result<KeptSandbox, Trouble> {
        self.record_deed("sandbox.discarded", json!({"sandbox": self.workspaces.find(which)?.id}))?;
        self.workspaces.discard(which)
    }

    fn remove(&self, which: &str) -> Result<KeptSandbox, Trouble> {
        self.record_deed("sandbox.removed", json!({"sandbox": self.workspaces.find(which)?.id}))?;
        self.workspaces.remove(which)
    }

    fn snapshot(&self, which: &str, name: Option<&str>) -> Result<String, Trouble> {
        let snapshot = self.workspaces.snapshot(which, name)?;
        let sandbox = self.workspaces.find(which)?.id;
        self.record_done("sandbox.snapshot", false, json!({"sandbox": sandbox, "snapshot": snapshot}))?;
        Ok(snapshot)
    }

    fn roll_back(&self, which: &str, snapshot: Option<&str>) -> Result<String, Trouble> {
        let sandbox = self.workspaces.find(which)?.id;
        self.record_deed("sandbox.rolled-back", json!({"sandbox": sandbox, "snapshot": snapshot}))?;
        self.workspaces.roll_back(which, snapshot)
    }

    fn fork(&self, which: &str, count: usize) -> Result<Vec<KeptSandbox>, Trouble> {
        let sandbox = self.workspaces.find(which)?.id;
        let forks = self.workspaces.fork(which, count)?;
        let ids: Vec<&str> = forks.iter().map(|fork| fork.id.as_str()).collect();
        self.record_done("sandbox.forked", false, json!({"sandbox": sandbox, "forks": ids}))?;
        Ok(forks)
    }

    fn branch(&self, which: &str, snapshot: Option<&str>, name: Option<&str>) -> Result<KeptSandbox, Trouble> {
        let sandbox = self.workspaces.find(which)?.id;
        let branch = self.workspaces.branch(which, snapshot, name)?;
        let data = json!({"sandbox": sandbox, "snapshot": snapshot, "forks": [branch.id], "name": branch.name});
        self.record_done("sandbox.forked", false, data)?;
        Ok(branch)
    }

    fn collect(&self, older_than: Duration, only_tell: bool) -> Result<Collected, Trouble> {
        if !only_tell {
            self.record_deed("sandbox.collected", json!({"older_than_seconds": older_than.as_secs()}))?;
        }
        let mut collected = self.workspaces.collect(older_than, only_tell)?;
        for backend in self.backends.iter().filter(|_| !only_tell) {
            let count = backend.clean_up()?;
            let what = format!("{count} left by killed runs with the backend `{}`", backend.name());
            collected.removed.extend((count > 0).then_some(Removed { what, bytes: 0 }));
        }
        if let Some(folder) = crate::gate::downloads() {
            let egress::CollectedDownloads { files, bytes } = egress::collect_downloads(&folder, older_than, only_tell);
            let what = format!("{files} kept {}", if files == 1 { "download" } else { "downloads" });
            collected.removed.extend((files > 0).then_some(Removed { what, bytes }));
            collected.bytes += bytes;
        }
        Ok(collected)
    }
}

impl Engine {
    fn wanted(&self, which: &str, taking: &Taking) -> Result<Value, Trouble> {
        let paths = taking.paths.iter().take(MOST_RECORDED).map(|path| path.to_string_lossy().into_owned());
        let (sandbox, paths) = (self.workspaces.find(which)?.id, paths.collect::<Vec<_>>());
        Ok(json!({"sandbox": sandbox, "paths": paths, "agreed": taking.agreed}))
    }

    /// Who answered to what has this digest, before anything follows from it.
    fn record_answer(&self, taken: &Taken, answer: &Result<Approval, Refusal>) -> Result<(), Trouble> {
        let mut data = json!({"sandbox": taken.sandbox, "contents": taken.asked_digest, "yes": answer.is_ok()});
        match answer {
            Ok(approval) => (data["question"], data["by"]) = (json!(approval.digest), json!(approval.by)),
            Err(refusal) => data["why"] = json!(refusal.message),
        }
        self.record_done("approval.answered", answer.is_err(), data)
    }

    /// What was taken, path by path, and what was not. It is done by now: that it could not be written down is said, and
    /// the answer stays what it is.
    fn record_commit(&self, which: &str, taken: &Result<Taken, Trouble>) {
        let recorded = match taken {
            Ok(taken) => {
                let paths = |deeds: &[Deed]| -> Vec<String> {
                    let paths = deeds.iter().take(MOST_RECORDED);
                    paths.map(|deed| deed.workspace.0.join(&deed.path.0).to_string_lossy().into_owned()).collect()
                };
                let kept_out = taken.refused.len() + taken.conflicts.len() + taken.held_back.len();
                let data = json!({
                    "sandbox": taken.sandbox, "taken": paths(&taken.taken), "taken_count": taken.taken.len(),
                    "taken_digest": digest(&taken.taken),
                    "conflicts": paths(&taken.conflicts), "held_back": paths(&taken.held_back),
                    "refused": paths(&taken.refused), "asked": paths(&taken.asked), "asked_digest": taken.asked_digest,
                    "complete": taken.complete,
                });
                self.record_done("commit.ended", kept_out > 0, data)
            }
            Err(trouble) => {
                self.record_done("commit.ended", false, json!({"sandbox": which, "trouble": trouble.to_string()}))
            }
        };
        if let Err(trouble) = recorded {
            self.workspaces.watch().warn(&trouble.to_string());
        }
    }
}

fn no_parcel(error: std::io::Error) -> Trouble {
    Trouble { message: format!("there is no way for variables: {error}"), fix: "try again".to_owned() }
}

/// Of each list of paths in one entry: the rest is counted.
const MOST_RECORDED: usize = 1000;

/// Of all of them, however many and however long.
fn digest(deeds: &[Deed]) -> String {
    let mut hasher = blake3::Hasher::new();
    for deed in deeds {
        for part in [deed.workspace.0.as_os_str(), deed.path.0.as_os_str(), deed.what.as_ref()] {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part.as_encoded_bytes());
        }
    }
    hasher.finalize().to_hex().to_string()
}

/// From where the caller is, `.` and `..` taken out by their letters: what they name need not exist here.
fn absolute(paths: &[PathBuf]) -> Vec<PathBuf> {
    let here = std::fs::canonicalize(layers::here()).unwrap_or_else(|_| layers::here());
    paths.iter().map(|path| by_letter(&here.join(path))).collect()
}
