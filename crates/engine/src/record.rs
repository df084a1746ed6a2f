//! The rail under everything: what happens is written to the ledger, and what can't be undone only after it was.
//!
//! The ledger lies in the home that the user record names: a variable, which whoever asks may set, leads nobody past it.

use std::cell::{Cell, RefCell};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Instant;

use ledger::{Appended, Durable, Envelope, Ledger};
use model::{
    Approval, Enforcement, Exit, Fate, Finished, Held, ImageUsed, Outcome, Principal, Question, Reason, Refusal,
    Request, Ruling, SetupFailure, Streams, Timing, Trouble, Verdict, Watch, Witness, agents,
};
use policy::{Facts, Policy};
use serde_json::{Value, json};

use crate::Engine;
use crate::digests::Digests;
use crate::enclose::Choice;
use crate::forward;
use crate::judge::usage;
use crate::monitor::Monitoring;
use crate::rail::{RECEIPT, Rail};
use crate::receipt;
use crate::user::User;

/// Of one run: more denials, findings or artifacts are counted.
const MOST_LISTED: usize = 100;
/// Of a command, in bytes: the rest is in the digest.
const LONGEST_WORD: usize = 4096;
const MOST_WORDS: usize = 256;

/// Where this user's ledger lies.
pub fn folder(user: &User) -> Option<PathBuf> {
    let home = user.home.as_ref().filter(|home| home.is_dir()).map(|home| home.join(".local/state/belljar"));
    let given = workspace::given_state().map(Path::to_owned);
    given.or(home).or_else(workspace::state_folder).map(|state| state.join("ledger"))
}

/// What one request left in the record so far.
pub struct Record<'a> {
    pub rail: Rc<Rail>,
    watch: &'a dyn Watch,
    /// What its receipt will say.
    receipt: RefCell<receipt::Known>,
    /// What is wanted was said.
    was_asked: Cell<bool>,
    /// Whose layers it runs over, if any.
    sandbox: RefCell<Option<String>>,
    /// Where it is no command: what is to be done to files.
    files: RefCell<Option<Value>>,
    /// Of code that is run in one: its name, and its language.
    context: RefCell<Option<(String, &'static str)>>,
    /// Whoever watches over it, from when it is known who asks.
    pub monitoring: RefCell<Option<Rc<Monitoring>>>,
    output: Digests,
}

/// Something that a person settled for later runs. Written before it counts.
pub fn settled(kind: &'static str, data: Value) -> Result<(), Trouble> {
    let user = User::of_the_process();
    let ledger = folder(&user).map(Ledger::at).ok_or_else(no_place);
    let principal = Principal { user: user.name, agent: agents::detected(std::env::vars_os()) };
    let rail = Rail::new(ledger, None, principal);
    rail.say(kind, false, data);
    let durable = Durable { on_disk: true, checkpoint: true, last_words: false };
    rail.write(durable).map(drop).map_err(crate::policies::trouble)
}

fn no_place() -> SetupFailure {
    SetupFailure {
        wall: None,
        message: "there is no place for the record of what happens".to_owned(),
        fix: "set HOME or XDG_STATE_HOME to a folder of yours; nothing runs without its record".to_owned(),
        layers: false,
    }
}

impl Engine {
    pub(crate) fn ledger(&self) -> Result<&Ledger, SetupFailure> {
        let known = self.ledger.get_or_init(|| folder(&User::of_the_process()).map(Ledger::at));
        known.as_ref().ok_or_else(no_place)
    }

    /// Begins to record this request, under the id that it has already if it has one.
    pub(crate) fn record_run(&self, request: &Request) -> Result<Record<'_>, Outcome> {
        match &request.run {
            Some(run) => Ok(self.record_of(Some(run.clone()))),
            None => self.record(),
        }
    }

    /// Begins to record one request.
    pub(crate) fn record(&self) -> Result<Record<'_>, Outcome> {
        let run = workspace::new_id().map_err(|error| crate::layers::not_set_up(error.into()))?;
        Ok(self.record_of(Some(run)))
    }

    pub(crate) fn record_of(&self, run: Option<String>) -> Record<'_> {
        let user = User::of_the_process().name;
        let principal = Principal { user, agent: agents::detected(std::env::vars_os()) };
        let rail = Rc::new(Rail::new(self.ledger().cloned(), run, principal));
        Record {
            rail,
            watch: self.workspaces.watch(),
            receipt: RefCell::default(),
            output: Digests::default(),
            was_asked: Cell::default(),
            sandbox: RefCell::default(),
            files: RefCell::default(),
            context: RefCell::default(),
            monitoring: RefCell::default(),
        }
    }

    /// Something that is no run. Written before it is done, and to the disk, as it can't be undone.
    pub(crate) fn record_deed(&self, kind: &'static str, data: Value) -> Result<(), Trouble> {
        let trouble = |outcome| crate::policies::trouble(outcome);
        let record = self.record_of(None);
        record.rail.say(kind, false, data);
        record.write(Durable { on_disk: true, checkpoint: true, last_words: false }).map_err(trouble)
    }

    /// What came of it.
    pub(crate) fn record_done(&self, kind: &'static str, denied: bool, data: Value) -> Result<(), Trouble> {
        let trouble = |outcome| crate::policies::trouble(outcome);
        let record = self.record_of(None);
        record.rail.say(kind, denied, data);
        record.write(Durable { on_disk: true, checkpoint: true, last_words: true }).map_err(trouble)
    }
}

impl Record<'_> {
    pub fn run(&self) -> &str {
        self.rail.run.as_deref().unwrap_or_default()
    }

    /// Who asks, as the judge knows it, and which values are nobody's to see.
    pub fn is_for(&self, principal: &Principal, known: Vec<(OsString, OsString)>) {
        self.rail.is_for(principal, known);
    }

    /// Not the command, but this is wanted.
    pub fn concerns(&self, files: Value) {
        self.files.replace(Some(files));
    }

    /// It is code for this context.
    pub fn is_cell_of(&self, context: &str, language: &'static str) {
        self.context.replace(Some((context.to_owned(), language)));
    }

    /// What is wanted. `input`: what was read of standard input.
    pub fn asked(&self, request: &Request, facts: Option<(&Facts, &[u8])>, kept: Option<&str>) {
        let words = |list: &[OsString]| -> Vec<String> { list.iter().take(MOST_WORDS).map(word).collect() };
        let paths = |list: &[PathBuf]| -> Vec<String> {
            list.iter().take(MOST_WORDS).map(|path| path.to_string_lossy().into_owned()).collect()
        };
        let input = digest(request, facts);
        let mut data = json!({"command": words(&request.command), "input": input});
        self.receipt.borrow_mut().input = input;
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
                self.receipt.borrow_mut().code = Some(code.clone());
            }
        }
        if let Some(kept) = kept {
            data["sandbox"] = kept.into();
        }
        if let Some(files) = self.files.borrow().as_ref() {
            data["files"] = files.clone();
        }
        if let Some((context, language)) = self.context.borrow().as_ref() {
            data["context"] = json!({"name": context, "language": language});
        }
        self.was_asked.set(true);
        self.rail.say("run.asked", false, data);
    }

    pub fn judged(&self, verdict: &Verdict, policy: &Policy, facts: &Facts) {
        let (ruling, rules): (Ruling, Vec<Value>) = match verdict {
            Verdict::Allowed(_, reasons) => (Ruling::Allow, rules(reasons)),
            Verdict::Ask(pending) => (Ruling::Ask, rules(&pending.question().reasons)),
            Verdict::Refused(refusal) => (Ruling::Deny, denied(refusal)),
        };
        let findings = facts.findings.iter().take(MOST_LISTED).map(|finding| {
            json!({"rule": finding.rule, "severity": finding.severity, "at": format!("{}:{}", finding.at.name, finding.at.line)})
        });
        self.receipt.borrow_mut().policy = revision(policy);
        let data = json!({
            "ruling": ruling.name(), "rules": rules, "policy": revision(policy), "findings": findings.collect::<Vec<_>>(),
        });
        self.rail.say("run.judged", ruling == Ruling::Deny, data);
    }

    pub fn question(&self, question: &Question) {
        let rules: Vec<&str> = question.reasons.iter().map(|reason| reason.rule.as_str()).collect();
        self.rail.say(
            "approval.asked",
            false,
            json!({"question": question.digest, "rules": rules, "policy": question.revision}),
        );
    }

    pub fn answered(&self, question: &Question, answer: &Result<Approval, Refusal>) {
        match answer {
            Ok(approval) => {
                self.receipt.borrow_mut().approvals.push((question.digest.clone(), approval.by.clone()));
                self.rail.say(
                    "approval.answered",
                    false,
                    json!({"question": question.digest, "yes": true, "by": approval.by}),
                );
            }
            Err(refusal) => {
                let data = json!({"question": question.digest, "yes": false, "why": refusal.message});
                self.rail.say("approval.answered", true, data);
            }
        }
    }

    /// Something of its sandbox could not be removed.
    pub fn left_behind(&self, why: &str) {
        self.rail.say("sandbox.left", false, json!({"why": why}));
    }

    /// Runs over the layers of this sandbox.
    pub fn is_over(&self, sandbox: &str) {
        self.sandbox.replace(Some(sandbox.to_owned()));
    }

    /// A sandbox is about to be opened. Everything that was said so far is in the record before anything runs in it.
    pub fn opening(&self, choice: &Choice<'_>, enforcement: &Enforcement, image: Option<&ImageUsed>, direct: bool) {
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
        let mut data = json!({
            "backend": choice.backend.name(), "because": choice.because, "walls": walls, "process": forward::whereabouts()
        });
        if let Some(sandbox) = self.sandbox.borrow().as_deref() {
            data["sandbox"] = sandbox.into();
        }
        if let Some(image) = image {
            data["image"] = json!(image);
        }
        self.rail.say("sandbox.opening", false, data);
        // What is written to real files can't be undone: the record of it outlives the machine.
        self.rail.opens(Durable { on_disk: direct, ..Durable::default() });
    }

    /// At once, where nobody has time for it later.
    pub fn write_opening(&self) -> Result<(), Outcome> {
        if let Some(warning) = self.rail.write_opening()? {
            self.watch.warn(&warning);
        }
        Ok(())
    }

    /// Whoever raised the sandbox has said so in time.
    pub fn was_told_of_the_opening(&self) -> Result<(), Outcome> {
        match self.rail.is_unwritten() {
            false => Ok(()),
            true => Err(usage("a sandbox was opened without its record".to_owned(), "please report this")),
        }
    }

    /// What came of it. The outcome says so if that could not be written.
    pub fn ended(self, request: &Request, outcome: Outcome) -> Outcome {
        if !self.was_asked.get() {
            self.asked(request, None, None);
        }
        match &outcome {
            Outcome::Ran(finished) => self.finished(finished),
            Outcome::Refused(refusal) => {
                let data = json!({"outcome": "refused", "rule": refusal.rule, "why": refusal.message, "rules": denied(refusal)});
                self.rail.say("run.ended", true, data);
            }
            Outcome::NotSetUp(failure) => {
                let wall = failure.wall.map(|wall| wall.name());
                self.rail.say(
                    "run.ended",
                    false,
                    json!({"outcome": "not-set-up", "wall": wall, "why": failure.message}),
                );
            }
            Outcome::NotStarted(failure) => {
                self.rail.say("run.ended", false, json!({"outcome": "not-started", "why": failure.message}));
            }
        }
        // Of what ran, the receipt comes last, and is signed with the rest.
        let checkpoint = !matches!(outcome, Outcome::Ran(_));
        let durable = Durable { checkpoint, last_words: self.rail.written().is_some(), on_disk: false };
        let written = self.write(durable).and_then(|()| self.give_receipt(&outcome));
        let mut outcome = outcome;
        if let Outcome::Ran(finished) = &mut outcome
            && request.trace
        {
            let nanoseconds = u64::try_from(self.rail.took.get().as_nanos()).unwrap_or(u64::MAX);
            finished.timing.push(Timing { step: "engine: write the record".to_owned(), nanoseconds });
            if let Some(monitoring) = self.monitoring.borrow().as_ref() {
                let nanoseconds = u64::try_from(monitoring.took.get().as_nanos()).unwrap_or(u64::MAX);
                finished.timing.push(Timing { step: "engine: monitor".to_owned(), nanoseconds });
            }
        }
        match written {
            Ok(()) => outcome,
            // It ran, so its result is the answer; that the record lacks its end is said, and nothing new will run.
            Err(failed) if self.rail.written().is_some() => {
                if let Outcome::NotSetUp(failure) = &failed {
                    self.watch.warn(&format!("{}; {}", failure.message, failure.fix));
                }
                outcome
            }
            Err(failed) => failed,
        }
    }

    fn finished(&self, finished: &Finished) {
        for denial in finished.denials.iter().take(MOST_LISTED) {
            self.rail.say("call.denied", true, json!(denial));
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
                self.rail.say(kind, denied, data);
            }
        }
        if let Some(leftover) = &finished.leftover {
            let mut data = json!(leftover);
            let listed = leftover.listed.iter().map(|change| json!({"path": change.path, "kind": change.kind}));
            data["paths"] = listed.collect::<Vec<_>>().into();
            self.rail.say("files.changed", false, data);
        }
        let said = self.output.told();
        if !said.is_empty() {
            let mut data: serde_json::Map<String, Value> =
                said.into_iter().map(|(stream, digest)| (stream.to_owned(), digest)).collect();
            data.insert("redacted".to_owned(), json!(finished.redacted));
            self.rail.say("output.released", false, data.into());
        }
        let (exit, signal) = match finished.exit {
            Exit::Code(code) => (Some(code), None),
            Exit::Signal(signal) => (None, Some(signal)),
        };
        self.rail.say("run.ended", false, json!({
            "outcome": "ran", "exit": exit, "signal": signal, "overrun": finished.overrun, "usage": finished.usage,
            "programs_not_listed": self.rail.untold.get(),
                "denials": finished.denials.iter().map(|denial| denial.times).sum::<u64>() + finished.denials_not_listed,
            "traffic": finished.traffic, "redacted": finished.redacted, "output_dropped": finished.output_dropped, "backend": finished.backend,
        }));
    }

    fn give_receipt(&self, outcome: &Outcome) -> Result<(), Outcome> {
        let (Outcome::Ran(finished), Some(written)) = (outcome, self.rail.written()) else { return Ok(()) };
        let began = Instant::now();
        let Principal { user, agent } = self.rail.principal.borrow().clone();
        let proven = self.rail.proven.borrow().clone();
        let known = receipt::Known {
            run: self.run().to_owned(),
            user,
            agent,
            proven,
            output: self.output.told(),
            ..self.receipt.borrow().clone()
        };
        let Appended { installation, number, hash, .. } = &written;
        let chain = receipt::Chain { installation: installation.clone(), entries: *number, head: ledger::hex(hash) };
        let mut statement = receipt::statement(&known, finished, &chain);
        // The first is our own number, and would only look like a token.
        for subject in statement["subject"].as_array_mut().into_iter().flatten().skip(1) {
            self.rail.without_secrets(subject);
        }
        self.rail.without_secrets(&mut statement["predicate"]);
        let ledger = self.rail.ledger.as_ref().map_err(|failure| Outcome::NotSetUp(failure.clone()))?;
        let key = ledger.key().map_err(|error| usage(error.to_string(), error.fix()))?;
        let envelope = serde_json::to_value(Envelope::sign(key, statement.to_string().as_bytes())).unwrap_or_default();
        self.rail.took.set(self.rail.took.get() + began.elapsed());
        self.rail.say(RECEIPT, false, envelope);
        self.write(Durable { checkpoint: true, last_words: true, on_disk: false })
    }

    /// The same streams; what passes is digested.
    pub fn digested(&self, streams: Streams) -> Streams {
        self.output.around(streams)
    }

    /// Is told what happens inside while it runs.
    pub fn witness(&self) -> Box<dyn Witness> {
        match self.monitoring.borrow().as_ref() {
            Some(monitoring) => monitoring.witness(self.rail.witness()),
            None => self.rail.witness(),
        }
    }

    /// Everything that was said since is in the record after this.
    pub fn write(&self, durable: Durable) -> Result<(), Outcome> {
        if let Some(warning) = self.rail.write(durable)? {
            self.watch.warn(&warning);
        }
        Ok(())
    }
}

fn rules(reasons: &[Reason]) -> Vec<Value> {
    let reasons = reasons.iter().take(MOST_LISTED);
    let told = reasons
        .map(|reason| json!({"rule": reason.rule, "place": reason.place, "about": reason.about, "why": reason.why}));
    told.collect()
}

fn denied(refusal: &Refusal) -> Vec<Value> {
    let denied = refusal.denied.iter().take(MOST_LISTED);
    denied
        .map(|denied| json!({"rule": denied.rule, "place": denied.place, "about": denied.about, "why": denied.reason}))
        .collect()
}

fn revision(policy: &Policy) -> String {
    if policy.is_built_in() { "built-in".to_owned() } else { policy.revision.clone() }
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
    let words = |list: &[OsString]| -> Vec<OsString> { list.to_vec() };
    let paths = |list: &[PathBuf]| -> Vec<OsString> { list.iter().map(|path| path.clone().into()).collect() };
    let names = request.environment.iter().map(|(name, _)| name.clone()).collect();
    for list in [
        words(&request.command),
        names,
        paths(&request.read),
        paths(&request.write),
        paths(&request.hide),
        paths(&request.workspaces),
    ] {
        // Each with its number, so that a word of one is never taken for a word of the next.
        add(&(list.len() as u64).to_le_bytes());
        list.iter().for_each(|word| add(word.as_encoded_bytes()));
    }
    if let Some((facts, input)) = facts {
        add(facts.start.as_os_str().as_encoded_bytes());
        add(facts.code.as_deref().unwrap_or_default().as_bytes());
        add(input);
    }
    hasher.finalize().to_hex().to_string()
}
