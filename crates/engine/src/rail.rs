//! The rail under one request: what is said on it is written to the ledger, without the values of secrets.

use std::cell::{Cell, RefCell};
use std::ffi::OsString;
use std::rc::Rc;
use std::time::{Duration, Instant};

use ledger::{Appended, Draft, Durable, Ledger, micros_now};
use model::{Outcome, Principal, SetupFailure, Started, Trouble, Witness};
use serde_json::{Value, json};

use crate::judge::usage;
use crate::release;

pub struct Rail {
    pub ledger: Result<Ledger, SetupFailure>,
    /// Of this run; all its entries have it. What is no run has none.
    pub run: Option<String>,
    pub principal: RefCell<Principal>,
    /// Variables whose values may be secrets.
    pub known: RefCell<Vec<(OsString, OsString)>>,
    /// Said, and not written yet.
    drafts: RefCell<Vec<Draft>>,
    /// Where the chain was when we wrote last; then the end is written too, even on a full disk.
    written: RefCell<Option<Appended>>,
    /// What writing took.
    pub took: Cell<Duration>,
    /// Programs that were started, and were too many to tell of each.
    pub untold: Cell<u64>,
}

impl Rail {
    pub fn new(ledger: Result<Ledger, SetupFailure>, run: Option<String>, principal: Principal) -> Rail {
        Rail {
            ledger,
            run,
            principal: RefCell::new(principal),
            known: RefCell::new(std::env::vars_os().collect()),
            drafts: RefCell::default(),
            written: RefCell::default(),
            took: Cell::default(),
            untold: Cell::default(),
        }
    }

    pub fn is_silent(&self) -> bool {
        self.drafts.borrow().is_empty() && self.written.borrow().is_none()
    }

    pub fn written(&self) -> Option<Appended> {
        self.written.borrow().clone()
    }

    pub fn say(&self, kind: &'static str, denied: bool, data: Value) {
        self.say_at(micros_now(), kind, denied, data);
    }

    fn say_at(&self, at: u64, kind: &'static str, denied: bool, data: Value) {
        let Principal { user, agent } = self.principal.borrow().clone();
        let data = data.to_string();
        let draft = Draft { at, kind, denied, run: self.run.clone(), user: Some(user), agent, data };
        self.drafts.borrow_mut().push(draft);
    }

    /// Everything that was said since is in the record after this. What anchors did not take is only told.
    pub fn write(&self, durable: Durable) -> Result<Option<String>, Outcome> {
        let began = Instant::now();
        let mut drafts = self.drafts.take();
        if drafts.is_empty() {
            return Ok(None);
        }
        let ledger = self.ledger.as_ref().map_err(|failure| Outcome::NotSetUp(failure.clone()))?;
        self.without_secrets(&mut drafts);
        let appended = ledger.append(&drafts, durable).map_err(|error| usage(error.to_string(), error.fix()))?;
        self.written.replace(Some(appended.clone()));
        self.took.set(self.took.get() + began.elapsed());
        let told = appended.checkpoint.map(|checkpoint| ledger.tell_anchors(&checkpoint));
        Ok(told.and_then(Result::err).map(|error| format!("{error}; {}", error.fix())))
    }

    /// All at once: to make what looks for them takes longer than to look.
    fn without_secrets(&self, drafts: &mut [Draft]) {
        let all: Vec<&str> = drafts.iter().map(|draft| draft.data.as_str()).collect();
        let text = release::without_known(all.join("\n").as_bytes(), &self.known.borrow());
        // What stands in the place of a secret needs no quotes and ends no line, so each stays what it is.
        let text = String::from_utf8_lossy(&text);
        let mut lines = text.split('\n');
        for draft in drafts {
            lines.next().unwrap_or("{}").clone_into(&mut draft.data);
        }
    }

    pub fn witness(self: &Rc<Rail>) -> Box<dyn Witness> {
        Box::new(Telling(self.clone()))
    }
}

/// Writes down what a backend sees.
struct Telling(Rc<Rail>);

impl Witness for Telling {
    fn started(&mut self, started: Vec<Started>) -> Result<(), Trouble> {
        for started in started {
            let at = started.at.duration_since(std::time::UNIX_EPOCH).map_or(0, |time| time.as_micros());
            self.0.say_at(u64::try_from(at).unwrap_or(u64::MAX), "program.started", false, json!(started));
        }
        // It has begun already, so it may use the room that is kept for that.
        let written = self.0.write(Durable { last_words: true, ..Durable::default() });
        written.map(drop).map_err(crate::policies::trouble)
    }

    fn one_more(&mut self) {
        self.0.untold.set(self.0.untold.get() + 1);
    }
}
