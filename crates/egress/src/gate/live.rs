//! A connection from when it was written down until it has ended, however it ends.

use std::cell::{Cell, RefCell};
use std::net::IpAddr;
use std::rc::Rc;
use std::time::Instant;

use model::{NetworkDeed, NetworkEvent};

use super::session::Session;

pub(crate) struct Live {
    session: Rc<Session>,
    event: NetworkEvent,
    began: Instant,
    /// Of its end, if it was not its own.
    why: RefCell<String>,
    /// Those that went out, and that came back; nothing where somebody else counts.
    bytes: Option<Cell<(u64, u64)>>,
}

impl Live {
    /// `event` is how its begin was written down.
    pub fn new(session: &Rc<Session>, event: &NetworkEvent) -> Live {
        let event = NetworkEvent {
            what: NetworkDeed::Close,
            rule: String::new(),
            why: String::new(),
            times: None,
            ..event.clone()
        };
        Live {
            session: session.clone(),
            event,
            began: Instant::now(),
            why: RefCell::default(),
            bytes: Some(Cell::default()),
        }
    }

    pub fn leads_to(&mut self, address: IpAddr) {
        self.event.address = Some(address);
    }

    pub fn ends_because(&self, why: String) {
        self.why.replace(why);
    }

    pub fn is_counted_elsewhere(&mut self) {
        self.bytes = None;
    }

    pub fn count(&self, sent: u64, received: u64) {
        self.session.count(sent, received);
        if let Some(bytes) = &self.bytes {
            let (out, back) = bytes.get();
            bytes.set((out.saturating_add(sent), back.saturating_add(received)));
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.event.bytes = self.bytes.as_ref().map(Cell::get);
        self.event.why = self.why.take();
        self.event.took = Some(self.began.elapsed());
        // It is over either way; if it can't be written, the session knows, and nothing goes out any more.
        drop(self.session.record(&self.event));
    }
}
