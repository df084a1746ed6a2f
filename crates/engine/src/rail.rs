//! The rail under one request: what is said on it is written to the ledger, without the values of secrets.

use std::cell::{Cell, RefCell};
use std::ffi::OsString;
use std::rc::Rc;
use std::time::{Duration, Instant};

use ledger::anchor::Moment;
use ledger::{Appended, Draft, Durable, Ledger, micros_now};
use model::{Goes, Outcome, Principal, Sample, SetupFailure, Started, Trouble, Wall, Witness};
use serde_json::{Value, json};

use crate::judge::usage;
use crate::outside;
use crate::release;
use crate::told::Telling;

/// Under a signature.
pub const RECEIPT: &str = "run.receipt";

pub struct Rail {
    pub ledger: Result<Ledger, SetupFailure>,
    /// Of this run; all its entries have it. What is no run has none.
    pub run: Option<String>,
    pub principal: RefCell<Principal>,
    /// Takes secrets out of what is said.
    telling: RefCell<Telling>,
    /// Said, and not written yet.
    drafts: RefCell<Vec<(Draft, Value)>>,
    /// A sandbox is about to be opened, and what was said so far must be written like this before anything runs in it.
    opening: Cell<Option<Durable>>,
    /// Where the chain was when we wrote last; then the end is written too, even on a full disk.
    written: RefCell<Option<Appended>>,
    /// What is done once, if it turns out that a run takes long.
    lasting: RefCell<Option<Box<dyn FnOnce()>>>,
    /// What writing took.
    pub took: Cell<Duration>,
    /// Programs that were started, and were too many to tell of each.
    pub untold: Cell<u64>,
    /// Walls that were tried from inside, and held.
    pub proven: RefCell<Vec<Wall>>,
}

impl Rail {
    pub fn new(ledger: Result<Ledger, SetupFailure>, run: Option<String>, principal: Principal) -> Rail {
        Rail {
            ledger,
            run,
            principal: RefCell::new(principal),
            telling: RefCell::new(Telling::of_the_process()),
            drafts: RefCell::default(),
            opening: Cell::default(),
            written: RefCell::default(),
            lasting: RefCell::default(),
            took: Cell::default(),
            untold: Cell::default(),
            proven: RefCell::default(),
        }
    }

    /// Who asks, as the judge knows it, and which values are nobody's to see.
    pub fn is_for(&self, principal: &Principal, known: Vec<(OsString, OsString)>) {
        self.principal.replace(principal.clone());
        self.telling.replace(Telling::with(known));
    }

    /// What takes time from a run that would be over by then.
    pub fn once_it_lasts(&self, deed: impl FnOnce() + 'static) {
        self.lasting.replace(Some(Box::new(deed)));
    }

    /// The value of a secret that was fetched since.
    pub fn learns(&self, name: &str, value: &str) {
        let knows = self.telling.borrow().and(release::of_the_vault_by(name, value));
        self.telling.replace(knows);
    }

    pub fn written(&self) -> Option<Appended> {
        self.written.borrow().clone()
    }

    pub fn say(&self, kind: &'static str, denied: bool, data: Value) {
        self.say_at(micros_now(), kind, denied, data);
    }

    fn say_at(&self, at: u64, kind: &'static str, denied: bool, data: Value) {
        let Principal { user, agent } = self.principal.borrow().clone();
        let run = self.run.clone();
        let draft = Draft { at, kind, denied, run, user: Some(user), agent, data: String::new() };
        self.drafts.borrow_mut().push((draft, data));
    }

    /// Everything that was said since is in the record after this. What anchors did not take is only told.
    pub fn write(&self, durable: Durable) -> Result<Option<String>, Outcome> {
        let began = Instant::now();
        let drafts = self.drafts.take();
        if drafts.is_empty() {
            return Ok(None);
        }
        let ledger = self.ledger.as_ref().map_err(|failure| Outcome::NotSetUp(failure.clone()))?;
        let drafts = drafts.into_iter().map(|(draft, mut data)| {
            // What is signed has none any more, is short enough, and would not hold if it were changed.
            if draft.kind == RECEIPT {
                return Draft { data: data.to_string(), ..draft };
            }
            self.without_secrets(&mut data);
            Draft { data: within_bounds(data), ..draft }
        });
        let drafts: Vec<Draft> = drafts.collect();
        let appended = ledger.append(&drafts, durable).map_err(|error| usage(error.to_string(), error.fix()))?;
        self.written.replace(Some(appended.clone()));
        self.took.set(self.took.get() + began.elapsed());
        // One that nobody asked for comes while something goes on, which does not wait for others.
        let moment = if durable.checkpoint { Moment::AtTheEnd } else { Moment::InTheMiddle };
        let post = &outside::post_checkpoint;
        let told = appended.checkpoint.map(|checkpoint| ledger.tell_anchors(&checkpoint, moment, post));
        Ok(told.and_then(Result::err).map(|error| format!("{error}; {}", error.fix())))
    }

    /// What was said so far is written before anything runs in the sandbox that is about to be opened: see `write_opening`.
    pub fn opens(&self, durable: Durable) {
        self.opening.set(Some(durable));
    }

    pub fn is_unwritten(&self) -> bool {
        self.opening.get().is_some()
    }

    pub fn write_opening(&self) -> Result<Option<String>, Outcome> {
        self.opening.take().map_or(Ok(None), |durable| self.write(durable))
    }

    /// Word by word, so that what is said stays what it is around them.
    pub fn without_secrets(&self, data: &mut Value) {
        match data {
            Value::String(text) => self.telling.borrow().text(text),
            Value::Array(list) => list.iter_mut().for_each(|value| self.without_secrets(value)),
            Value::Object(fields) => fields.values_mut().for_each(|value| self.without_secrets(value)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    pub fn witness(self: &Rc<Rail>) -> Box<dyn Witness> {
        Box::new(Watching { rail: self.clone(), next_sample: Duration::ZERO })
    }
}

/// Of one text in an entry, and where all of them together are too long; and of all of an entry.
const LONGEST_TEXTS: [usize; 3] = [8 << 10, 256, 16];
const LARGEST: usize = 256 << 10;

/// Whoever asks may ask at any length; that is no reason not to write it down.
fn within_bounds(mut data: Value) -> String {
    for most in LONGEST_TEXTS {
        shorten(&mut data, most);
        let text = data.to_string();
        if text.len() <= LARGEST {
            return text;
        }
    }
    json!({"too_long": true, "blake3": blake3::hash(data.to_string().as_bytes()).to_hex().as_str()}).to_string()
}

fn shorten(data: &mut Value, most: usize) {
    match data {
        Value::String(text) if text.len() > most => {
            let whole = text.len();
            text.truncate(text.floor_char_boundary(most));
            *text += &format!("… ({whole} bytes)");
        }
        Value::Array(list) => list.iter_mut().for_each(|value| shorten(value, most)),
        Value::Object(fields) => fields.values_mut().for_each(|value| shorten(value, most)),
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Until when samples are written this far apart; a run of a day leaves some thousand.
const SAMPLES: [(Duration, Duration); 2] =
    [(Duration::from_secs(15), Duration::from_secs(1)), (Duration::from_secs(300), Duration::from_secs(10))];
const LATER_SAMPLES: Duration = Duration::from_secs(60);

/// Writes down what a backend sees.
struct Watching {
    rail: Rc<Rail>,
    next_sample: Duration,
}

impl Witness for Watching {
    fn raising(&mut self) -> Result<(), Trouble> {
        self.rail.write_opening().map(drop).map_err(crate::policies::trouble)
    }

    fn armed(&mut self, proven: &[Wall]) {
        // It is open, and we fork no other one.
        if let Ok(ledger) = &self.rail.ledger {
            ledger.keep_open();
        }
        self.rail.proven.replace(proven.to_vec());
        self.rail.say("sandbox.armed", false, json!({"proven": proven}));
    }

    fn started(&mut self, started: Vec<Started>, last: bool) -> Result<(), Trouble> {
        for started in started {
            let at = started.at.duration_since(std::time::UNIX_EPOCH).map_or(0, |time| time.as_micros());
            self.rail.say_at(u64::try_from(at).unwrap_or(u64::MAX), "program.started", false, json!(started));
        }
        if last {
            return Ok(());
        }
        // It has begun already, so it may use the room that is kept for that.
        let written = self.rail.write(Durable { last_words: true, ..Durable::default() });
        written.map(drop).map_err(crate::policies::trouble)
    }

    fn one_more(&mut self) {
        self.rail.untold.set(self.rail.untold.get() + 1);
    }

    fn sampled(&mut self, sample: &Sample) -> Result<Goes, Trouble> {
        if sample.after < self.next_sample {
            return Ok(Goes::On);
        }
        let pause = SAMPLES.iter().find(|(until, _)| sample.after < *until).map_or(LATER_SAMPLES, |(_, pause)| *pause);
        // Less than the pause: the next one comes when it comes.
        self.next_sample = sample.after + pause - Duration::from_millis(500);
        if let Some(deed) = self.rail.lasting.take() {
            deed();
        }
        self.rail.say("run.sample", false, json!(sample));
        let written = self.rail.write(Durable { last_words: true, ..Durable::default() });
        written.map(|_| Goes::On).map_err(crate::policies::trouble)
    }

    fn resting(&mut self) {
        ledger::rehearse();
    }

    fn ending(&mut self) {
        // The receipt will be signed with it. Not before: nothing of the sandbox's may run while we hold it. Whoever
        // signs asks for it again, and hears of what is wrong with it.
        match self.rail.ledger.as_ref().map(Ledger::key) {
            Ok(Ok(_) | Err(_)) | Err(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_is_said_fits_an_entry() {
        let long = "x\u{1}é".repeat(1_000_000);
        for data in [json!({"a": long}), json!(vec![long.clone(); 300]), json!(vec!["y"; 1_000_000]), json!({"b": 1})] {
            let text = within_bounds(data);
            assert!(text.len() <= LARGEST, "{}", text.len());
            assert!(serde_json::from_str::<Value>(&text).is_ok());
        }
        assert_eq!(within_bounds(json!({"b": "short"})), r#"{"b":"short"}"#);
    }
}
