//! The rail under everything: what happens is written to the ledger, and what can't be undone only after it was.
//!
//! The ledger lies in the home that the user record names: a variable, which whoever asks may set, leads nobody past it.

use std::cell::RefCell;
use std::ffi::OsString;
use std::path::PathBuf;

use ledger::{Draft, Durable, Ledger, micros_now};
use model::{
    Approval, Enforcement, Exit, Fate, Finished, Held, Outcome, Principal, Question, Refusal, Request, Ruling,
    SetupFailure, Trouble, Verdict, Watch, agents,
};
use policy::{Facts, Policy};
use serde_json::{Value, json};

use crate::Engine;
use crate::judge::usage;
use crate::release;
use crate::user::User;

/// Of one run: more denials, findings or artifacts are counted.
const MOST_LISTED: usize = 100;
/// Of a command, in bytes: the rest is in the digest.
const LONGEST_WORD: usize = 4096;
const MOST_WORDS: usize = 256;

/// Where this user's ledger lies.
pub fn folder(user: &User) -> Option<PathBuf> {
    let home = user.home.as_ref().filter(|home| home.is_dir()).map(|home| home.join(".local/state/belljar"));
    home.or_else(workspace::state_folder).map(|state| state.join("ledger"))
}

/// What one request left in the record so far.
pub struct Record<'a> {
    ledger: Result<&'a Ledger, SetupFailure>,
    watch: &'a dyn Watch,
    /// Of this run; all its entries have it.
    run: String,
    principal: RefCell<Principal>,
    known: RefCell<Vec<(OsString, OsString)>>,
    /// Said, and not written yet.
    drafts: RefCell<Vec<Draft>>,
    /// Whether anything of it was written: then its end is, too, even on a full disk.
    begun: RefCell<bool>,
}

impl Engine {
    pub(crate) fn ledger(&self) -> Result<&Ledger, SetupFailure> {
        let known = self.ledger.get_or_init(|| folder(&User::of_the_process()).map(Ledger::at));
        known.as_ref().ok_or_else(|| SetupFailure {
            wall: None,
            message: "there is no place for the record of what happens".to_owned(),
            fix: "set HOME or XDG_STATE_HOME to a folder of yours; nothing runs without its record".to_owned(),
            layers: false,
        })
    }

    /// Begins to record one request.
    pub(crate) fn record(&self) -> Result<Record<'_>, Outcome> {
        let user = User::of_the_process().name;
        let principal = Principal { user, agent: agents::detected(std::env::vars_os()) };
        Ok(Record {
            ledger: self.ledger(),
            watch: self.workspaces.watch(),
            run: workspace::new_id().map_err(|error| crate::layers::not_set_up(error.into()))?,
            principal: RefCell::new(principal),
            known: RefCell::new(std::env::vars_os().collect()),
            drafts: RefCell::default(),
            begun: RefCell::new(false),
        })
    }

    /// Something that is no run. Written before it is done, and to the disk, as it can't be undone.
    pub(crate) fn record_deed(&self, kind: &'static str, data: Value) -> Result<(), Trouble> {
        let trouble = |outcome| crate::policies::trouble(outcome);
        let record = self.record().map_err(trouble)?;
        record.say(kind, false, data);
        record.write(Durable { on_disk: true, checkpoint: true, last_words: false }).map_err(trouble)
    }

    /// What came of it.
    pub(crate) fn record_done(&self, kind: &'static str, denied: bool, data: Value) -> Result<(), Trouble> {
        let trouble = |outcome| crate::policies::trouble(outcome);
        let record = self.record().map_err(trouble)?;
        record.say(kind, denied, data);
        record.write(Durable { on_disk: true, checkpoint: true, last_words: true }).map_err(trouble)
    }
}

impl Record<'_> {
    pub fn run(&self) -> &str {
        &self.run
    }

    /// Who asks, as the judge knows it, and which values are nobody's to see.
    pub fn is_for(&self, principal: &Principal, known: Vec<(OsString, OsString)>) {
        self.principal.replace(principal.clone());
        self.known.replace(known);
    }

    /// What is wanted. `input`: what was read of standard input.
    pub fn asked(&self, request: &Request, facts: Option<(&Facts, &[u8])>, kept: Option<&str>) {
        let words = |list: &[OsString]| -> Vec<String> { list.iter().take(MOST_WORDS).map(word).collect() };
        let paths = |list: &[PathBuf]| -> Vec<String> {
            list.iter().take(MOST_WORDS).map(|path| path.to_string_lossy().into_owned()).collect()
        };
        let mut data = json!({
            "command": words(&request.command),
            "input": digest(request, facts),
        });
        let names: Vec<String> = request.environment.iter().take(MOST_WORDS).map(|(name, _)| word(name)).collect();
        for (what, list) in [("read", paths(&request.read)), ("write", paths(&request.write)), ("variables", names)] {
            if !list.is_empty() {
                data[what] = list.into();
            }
        }
        if let Some((facts, _)) = facts {
            data["directory"] = facts.start.to_string_lossy().into();
            data["program"] = facts.program.path.to_string_lossy().into();
            let workspaces = facts.workspaces.iter().map(|place| place.path.to_string_lossy().into_owned());
            data["workspaces"] = workspaces.collect::<Vec<_>>().into();
            if let Some(code) = &facts.code {
                data["code"] = code.clone().into();
            }
        }
        if let Some(kept) = kept {
            data["sandbox"] = kept.into();
        }
        self.say("run.asked", false, data);
    }

    pub fn judged(&self, verdict: &Verdict, policy: &Policy, facts: &Facts) {
        let (ruling, rules): (Ruling, Vec<Value>) = match verdict {
            Verdict::Allowed(_) => (Ruling::Allow, Vec::new()),
            Verdict::Ask(pending) => {
                let reasons = pending.question().reasons.iter().take(MOST_LISTED);
                let rules = reasons.map(|reason| json!({"rule": reason.rule, "place": reason.place, "about": reason.about, "why": reason.why}));
                (Ruling::Ask, rules.collect())
            }
            Verdict::Refused(refusal) => (Ruling::Deny, denied(refusal)),
        };
        let findings = facts.findings.iter().take(MOST_LISTED).map(|finding| {
            json!({"rule": finding.rule, "severity": finding.severity, "at": format!("{}:{}", finding.at.name, finding.at.line)})
        });
        let data = json!({
            "ruling": ruling.name(), "rules": rules, "policy": revision(policy), "findings": findings.collect::<Vec<_>>(),
        });
        self.say("run.judged", ruling == Ruling::Deny, data);
    }

    pub fn question(&self, question: &Question) {
        let rules: Vec<&str> = question.reasons.iter().map(|reason| reason.rule.as_str()).collect();
        self.say(
            "approval.asked",
            false,
            json!({"question": question.digest, "rules": rules, "policy": question.revision}),
        );
    }

    pub fn answered(&self, question: &Question, answer: &Result<Approval, Refusal>) {
        match answer {
            Ok(approval) => {
                self.say(
                    "approval.answered",
                    false,
                    json!({"question": question.digest, "yes": true, "by": approval.by}),
                );
            }
            Err(refusal) => {
                let data = json!({"question": question.digest, "yes": false, "why": refusal.message});
                self.say("approval.answered", true, data);
            }
        }
    }

    /// Everything that was said so far is in the record before a sandbox is opened.
    pub fn opening(&self, backend: &str, enforcement: &Enforcement, direct: bool) -> Result<(), Outcome> {
        let walls: serde_json::Map<String, Value> = enforcement
            .walls
            .iter()
            .map(|holding| {
                let held = match &holding.held {
                    Held::Fully => json!("fully"),
                    Held::Partly(why) => json!(format!("partly: {why}")),
                    Held::Not(why) => json!(format!("not: {why}")),
                };
                (holding.wall.name().to_owned(), held)
            })
            .collect();
        self.say("sandbox.opening", false, json!({"backend": backend, "walls": walls}));
        // What is written to real files can't be undone: the record of it outlives the machine.
        self.write(Durable { on_disk: direct, ..Durable::default() })
    }

    /// What came of it. The outcome says so if that could not be written.
    pub fn ended(self, request: &Request, outcome: Outcome) -> Outcome {
        if !*self.begun.borrow() && self.drafts.borrow().is_empty() {
            self.asked(request, None, None);
        }
        match &outcome {
            Outcome::Ran(finished) => self.finished(finished),
            Outcome::Refused(refusal) => {
                let data = json!({"outcome": "refused", "rule": refusal.rule, "why": refusal.message, "rules": denied(refusal)});
                self.say("run.ended", true, data);
            }
            Outcome::NotSetUp(failure) => {
                let wall = failure.wall.map(|wall| wall.name());
                self.say("run.ended", false, json!({"outcome": "not-set-up", "wall": wall, "why": failure.message}));
            }
            Outcome::NotStarted(failure) => {
                self.say("run.ended", false, json!({"outcome": "not-started", "why": failure.message}));
            }
        }
        let durable = Durable { checkpoint: true, last_words: *self.begun.borrow(), on_disk: false };
        match self.write(durable) {
            Ok(()) => outcome,
            // It ran, so its result is the answer; that the record lacks its end is said, and nothing new will run.
            Err(failed) => {
                if let Outcome::NotSetUp(failure) = &failed {
                    self.watch.warn(&format!("{}; {}", failure.message, failure.fix));
                }
                if *self.begun.borrow() { outcome } else { failed }
            }
        }
    }

    fn finished(&self, finished: &Finished) {
        for denial in finished.denials.iter().take(MOST_LISTED) {
            self.say("call.denied", true, json!(denial));
        }
        if let Some(gathered) = &finished.gathered {
            for artifact in gathered.artifacts.iter().take(MOST_LISTED) {
                let (kind, denied) = match artifact.fate {
                    Fate::Released => ("artifact.released", false),
                    Fate::Withheld(_) => ("artifact.withheld", true),
                };
                let mut data = json!({"id": artifact.id, "path": artifact.path, "size": artifact.size, "digest": artifact.digest, "kind": artifact.kind});
                if let Fate::Withheld(withheld) = &artifact.fate {
                    (data["rule"], data["why"]) = (json!(withheld.rule), json!(withheld.reason));
                }
                self.say(kind, denied, data);
            }
        }
        if let Some(leftover) = &finished.leftover {
            self.say("files.changed", false, json!(leftover));
        }
        let (exit, signal) = match finished.exit {
            Exit::Code(code) => (Some(code), None),
            Exit::Signal(signal) => (None, Some(signal)),
        };
        self.say("run.ended", false, json!({
            "outcome": "ran", "exit": exit, "signal": signal, "overrun": finished.overrun, "usage": finished.usage,
            "denials": finished.denials.iter().map(|denial| denial.times).sum::<u64>() + finished.denials_not_listed,
            "redacted": finished.redacted, "output_dropped": finished.output_dropped, "backend": finished.backend,
        }));
    }

    fn say(&self, kind: &'static str, denied: bool, data: Value) {
        let Principal { user, agent } = self.principal.borrow().clone();
        let data = data.to_string();
        let draft =
            Draft { at: micros_now(), kind, denied, run: Some(self.run.clone()), user: Some(user), agent, data };
        self.drafts.borrow_mut().push(draft);
    }

    /// Everything that was said since is in the record after this.
    pub fn write(&self, durable: Durable) -> Result<(), Outcome> {
        let mut drafts = self.drafts.take();
        if drafts.is_empty() {
            return Ok(());
        }
        let ledger = self.ledger.clone().map_err(Outcome::NotSetUp)?;
        // What stands in the place of a secret needs no quotes, so the data stays what it is.
        let known = self.known.borrow();
        for draft in &mut drafts {
            let text = release::without_known(draft.data.as_bytes(), &known);
            draft.data = String::from_utf8(text).unwrap_or_else(|_| "{}".to_owned());
        }
        let appended = ledger.append(&drafts, durable).map_err(|error| usage(error.to_string(), error.fix()))?;
        self.begun.replace(true);
        if let Some(checkpoint) = appended.checkpoint
            && let Err(error) = ledger.tell_anchors(&checkpoint)
        {
            self.watch.warn(&format!("{error}; {}", error.fix()));
        }
        Ok(())
    }
}

fn denied(refusal: &Refusal) -> Vec<Value> {
    let denied = refusal.denied.iter().take(MOST_LISTED);
    denied
        .map(|denied| json!({"rule": denied.rule, "place": denied.place, "about": denied.about, "why": denied.reason}))
        .collect()
}

fn revision(policy: &Policy) -> Value {
    if policy.is_built_in() { json!("built-in") } else { json!(policy.revision) }
}

/// As text, and not longer than somebody reads.
fn word(word: &OsString) -> String {
    let text = word.to_string_lossy();
    match text.char_indices().nth(LONGEST_WORD) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.into_owned(),
    }
}

/// Of everything that was asked, but for values of variables: those may be secrets that are short enough to be guessed.
fn digest(request: &Request, facts: Option<(&Facts, &[u8])>) -> String {
    let mut hasher = blake3::Hasher::new();
    let mut add = |bytes: &[u8]| {
        hasher.update(&(bytes.len() as u64).to_le_bytes());
        hasher.update(bytes);
    };
    for word in &request.command {
        add(word.as_encoded_bytes());
    }
    for (name, _) in &request.environment {
        add(name.as_encoded_bytes());
    }
    for path in request.read.iter().chain(&request.write).chain(&request.hide).chain(&request.workspaces) {
        add(path.as_os_str().as_encoded_bytes());
    }
    if let Some((facts, input)) = facts {
        add(facts.start.as_os_str().as_encoded_bytes());
        add(facts.code.as_deref().unwrap_or_default().as_bytes());
        add(input);
    }
    hasher.finalize().to_hex().to_string()
}
