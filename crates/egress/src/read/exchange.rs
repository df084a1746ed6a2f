//! One request and its answer, as the record has them.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use model::{Cached, NetworkDeed, NetworkEvent, Trouble};

use super::watch::Watch;
use crate::gate::passage::Passage;
use crate::gate::session::Session;

/// Whatever becomes of it: when nobody holds it any more, it is over, and that is written down.
pub struct Exchange {
    pub session: Rc<Session>,
    pub passage: Rc<Passage>,
    pub method: String,
    pub path: String,
    rule: RefCell<String>,
    sent_on: Cell<bool>,
    status: Cell<Option<u16>>,
    bytes: Cell<(u64, u64)>,
    began: Instant,
    watch: Option<Arc<Watch>>,
    /// What the cache had to do with it.
    cached: RefCell<Option<Cached>>,
    /// Why its body was not sent to its end.
    stopped: RefCell<Option<Stopped>>,
}

/// A body that was cut off: an answer with this status, if there is still somebody to hear it.
#[derive(Clone, Debug)]
pub struct Stopped {
    pub status: u16,
    pub why: String,
    pub rule: String,
}

impl Exchange {
    pub fn new(
        session: Rc<Session>,
        passage: Rc<Passage>,
        watch: Option<Arc<Watch>>,
        method: &str,
        path: &str,
    ) -> Exchange {
        Exchange {
            session,
            passage,
            method: method.to_owned(),
            path: path.to_owned(),
            rule: RefCell::default(),
            sent_on: Cell::new(false),
            status: Cell::new(None),
            bytes: Cell::new((0, 0)),
            began: Instant::now(),
            watch,
            cached: RefCell::new(None),
            stopped: RefCell::new(None),
        }
    }

    /// An event about it, to be completed.
    pub fn event(&self, what: NetworkDeed) -> NetworkEvent {
        NetworkEvent {
            method: (!self.method.is_empty()).then(|| self.method.clone()),
            path: (!self.path.is_empty()).then(|| self.path.clone()),
            cache: self.cached.borrow().clone(),
            ..about(&self.passage, what)
        }
    }

    /// It is about to be sent.
    pub fn goes(&self, rule: &str, why: String) -> Result<(), Trouble> {
        *self.rule.borrow_mut() = rule.to_owned();
        let event = NetworkEvent { rule: rule.to_owned(), why, ..self.event(NetworkDeed::Request) };
        self.session.record(&event)?;
        self.sent_on.set(true);
        Ok(())
    }

    pub fn is_answered(&self, status: u16) {
        self.status.set(Some(status));
    }

    pub fn counts(&self, sent: u64, received: u64) {
        let (out, back) = self.bytes.get();
        self.bytes.set((out.saturating_add(sent), back.saturating_add(received)));
        self.session.count(sent, received);
    }

    /// The same of what never came over the network.
    pub fn counts_cached(&self, received: u64) {
        let (out, back) = self.bytes.get();
        self.bytes.set((out, back.saturating_add(received)));
        self.session.count_cached(received);
    }

    /// Is told from now on.
    pub fn is_cached(&self, cached: Cached) {
        self.cached.replace(Some(cached));
    }

    pub fn stops(&self, stopped: Stopped) {
        self.stopped.borrow_mut().get_or_insert(stopped);
    }

    pub fn stopped(&self) -> Option<Stopped> {
        self.stopped.borrow().clone()
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        if let Some(watch) = &self.watch {
            watch.ends();
        }
        if !self.sent_on.get() {
            return;
        }
        let event = NetworkEvent {
            status: self.status.get(),
            bytes: Some(self.bytes.get()),
            took: Some(self.began.elapsed()),
            rule: self.rule.take(),
            why: if self.status.get().is_none() { "it was not answered".to_owned() } else { String::new() },
            ..self.event(NetworkDeed::Answer)
        };
        // If this can't be written, the session is broken from then on, and nothing more goes out.
        self.session.record_soon(event);
    }
}

/// An event about a connection.
pub fn about(passage: &Passage, what: NetworkDeed) -> NetworkEvent {
    NetworkEvent {
        connection: Some(passage.number),
        caller: passage.caller.clone(),
        port: Some(passage.endpoint.port),
        address: passage.address,
        ..NetworkEvent::new(what, passage.endpoint.host.to_string())
    }
}
