//! What all connections of one sandbox share: whom to ask, and what was counted.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use model::{Denied, Judgement, NetworkDeed, NetworkEvent, Porter, Reason, Retry, Traffic, Trouble};
use tokio::sync::Notify;

use super::TOLD_ALONE;
use super::tally::{Note, Tally};

/// Is told at once when there is more of it.
const MOST_WAITING: usize = 64;
/// In a result; the record has all of them.
const MOST_LISTED: usize = 64;
/// Letters of each text in there. The guest chooses paths of many thousands, and with enough of those nothing would be told at all.
const LONGEST: usize = 256;

pub(crate) struct Session {
    pub porter: Rc<dyn Porter>,
    traffic: RefCell<Traffic>,
    /// Something could not be written down. Nothing more goes out.
    broken: Cell<bool>,
    /// Told when it becomes so.
    breaks: Notify,
    connections: Cell<u64>,
    /// By host, port and rule.
    requests: RefCell<Tally<(String, Option<u16>, String)>>,
    /// Is over, and not written down yet.
    over: RefCell<Vec<NetworkEvent>>,
    /// Told when there is something.
    ends: Notify,
}

impl Session {
    pub fn new(porter: Rc<dyn Porter>) -> Session {
        Session {
            porter,
            traffic: RefCell::default(),
            broken: Cell::new(false),
            breaks: Notify::new(),
            connections: Cell::new(0),
            requests: RefCell::new(Tally::new(TOLD_ALONE)),
            over: RefCell::default(),
            ends: Notify::new(),
        }
    }

    /// The number of a new connection.
    pub fn number(&self) -> u64 {
        let number = self.connections.get() + 1;
        self.connections.set(number);
        number
    }

    /// Writes it down and counts it. What can't be written down must not happen, and nothing after it.
    pub fn record(&self, event: &NetworkEvent) -> Result<(), Trouble> {
        // In the order in which it happened.
        self.catch_up();
        self.record_now(event)
    }

    /// Of something that has happened: it is written down once what is being done now is done, so that no client waits for
    /// that, and before anything else is.
    pub fn record_soon(&self, event: NetworkEvent) {
        let waiting = {
            let mut over = self.over.borrow_mut();
            over.push(event);
            over.len()
        };
        match waiting < MOST_WAITING {
            true => self.ends.notify_one(),
            false => self.catch_up(),
        }
    }

    /// Writes down what is over. If that can't be, nothing more goes out.
    pub fn catch_up(&self) {
        for event in self.over.take() {
            if self.record_now(&event).is_err() {
                return;
            }
        }
    }

    /// Catches up whenever there is something, for as long as it is asked.
    pub async fn keep_up(&self) {
        loop {
            self.ends.notified().await;
            self.catch_up();
        }
    }

    fn record_now(&self, event: &NetworkEvent) -> Result<(), Trouble> {
        if self.broken.get() {
            return Err(Trouble {
                message: "the record can't be written".to_owned(),
                fix: "make room for it".to_owned(),
            });
        }
        self.porter.records(event).inspect_err(|_| {
            self.broken.set(true);
            self.breaks.notify_waiters();
        })?;
        let mut traffic = self.traffic.borrow_mut();
        let note = |list: &mut Vec<String>, text: &str| {
            if list.len() < MOST_LISTED && !list.iter().any(|known| known == text) {
                list.push(text.to_owned());
            }
        };
        match (event.what, event.denied) {
            // Of what came again it is told how often; each time was counted as it came.
            _ if event.times.is_some() => {}
            (_, true) => traffic.refused += 1,
            (NetworkDeed::Connect, false) => {
                traffic.connections += 1;
                let port = event.port.map_or(String::new(), |port| format!(":{port}"));
                note(&mut traffic.hosts, &format!("{}{port}", event.host));
            }
            (NetworkDeed::Request, false) => traffic.requests += 1,
            (NetworkDeed::Secret, false) => {
                if let Some(secret) = &event.secret {
                    note(&mut traffic.secrets, secret);
                }
            }
            (NetworkDeed::Name | NetworkDeed::Close | NetworkDeed::Answer | NetworkDeed::Visit, false) => {}
        }
        Ok(())
    }

    /// Writes down a request that goes no further. A connection can carry a million of them: the first ones are told each by
    /// itself, the others by how many they are.
    pub fn refuses(&self, event: &NetworkEvent) -> Result<(), Trouble> {
        let key = (event.host.clone(), event.port, event.rule.clone());
        let sum = || NetworkEvent { path: None, method: None, caller: None, connection: None, ..event.clone() };
        match self.requests.borrow_mut().note(key, 0, sum, "(others)") {
            Note::Tell(told) if told.times.is_some() => {
                self.refused_again();
                self.record(&told)
            }
            Note::Tell(_) => self.record(event),
            Note::Known => {
                self.refused_again();
                Ok(())
            }
        }
    }

    /// What was refused again and again since it was last told.
    pub fn rest(&self) -> Vec<NetworkEvent> {
        self.requests.borrow_mut().rest()
    }

    /// Of a connection, as they pass.
    pub fn count(&self, sent: u64, received: u64) {
        let mut traffic = self.traffic.borrow_mut();
        traffic.sent = traffic.sent.saturating_add(sent);
        traffic.received = traffic.received.saturating_add(received);
    }

    /// For the result: what was refused, and what would allow it.
    pub fn refused(&self, judgement: &Judgement, retry: Retry) {
        let mut traffic = self.traffic.borrow_mut();
        let denied: Option<Denied> = judgement.reasons.first().map(|reason: &Reason| shortened(reason.denied(retry)));
        if let Some(denied) = denied
            && traffic.denied.len() < MOST_LISTED
            && !traffic.denied.contains(&denied)
        {
            traffic.denied.push(denied);
        }
    }

    /// The same as was told before.
    pub fn refused_again(&self) {
        self.traffic.borrow_mut().refused += 1;
    }

    /// Returns once something could not be written down.
    pub async fn breaks(&self) {
        // Made before the look: what happens between the two is heard.
        let told = self.breaks.notified();
        if !self.broken.get() {
            told.await;
        }
    }

    pub fn is_broken(&self) -> bool {
        self.broken.get()
    }

    /// What was given of what is kept.
    pub fn count_cached(&self, bytes: u64) {
        let mut traffic = self.traffic.borrow_mut();
        traffic.cached = traffic.cached.saturating_add(bytes);
    }

    pub fn traffic(&self) -> Traffic {
        self.traffic.borrow().clone()
    }
}

fn shortened(denied: Denied) -> Denied {
    let short = |text: String| match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    };
    Denied {
        about: short(denied.about),
        rule: short(denied.rule),
        place: short(denied.place),
        reason: short(denied.reason),
        grant: short(denied.grant),
        ..denied
    }
}
