//! A no at the gate: written down, counted, and felt at once by whoever is inside.

use std::net::IpAddr;

use model::{Action, Caller, Judgement, NetworkDeed, NetworkEvent, Reason, Retry, Ruling};
use tokio::net::TcpStream;

use super::Gate;
use super::tally::Note;

/// For refusals that no longer fit.
const OTHERS: &str = "(others)";

pub(crate) struct No {
    pub reason: Reason,
    pub address: Option<IpAddr>,
    pub retry: Retry,
}

impl No {
    /// By the gate itself, whatever the policy says.
    pub fn own(rule: &str, about: &str, why: impl Into<String>, grant: &str) -> No {
        let reason = Reason {
            ruling: Ruling::Deny,
            rule: rule.to_owned(),
            place: String::new(),
            why: why.into(),
            action: Action::Connect,
            about: about.to_owned(),
            grant: grant.to_owned(),
        };
        No { reason, address: None, retry: Retry::No }
    }

    pub fn by(judgement: &Judgement, about: &str) -> No {
        match judgement.reasons.first() {
            Some(reason) => No { reason: reason.clone(), address: None, retry: Retry::No },
            None => No::own("gate.silence", about, "nothing allows it", ""),
        }
    }

    pub fn later(self) -> No {
        No { retry: Retry::Later, ..self }
    }
}

/// What decided, and where it is written.
pub(crate) fn rule_text(reason: &Reason) -> String {
    if reason.place.is_empty() { reason.rule.clone() } else { format!("{} ({})", reason.rule, reason.place) }
}

/// What it was about.
pub(crate) struct Refused {
    pub what: NetworkDeed,
    pub number: Option<u64>,
    pub host: String,
    pub port: Option<u16>,
    /// Kinds of questions about the same name; 0 for all else.
    pub way: usize,
}

impl Gate {
    /// `caller` is only looked for if it is told.
    pub fn refuse(&self, refused: Refused, no: &No, caller: impl FnOnce() -> Option<Caller>) {
        let Refused { what, number, host, port, way } = refused;
        let event = || NetworkEvent {
            denied: true,
            connection: number,
            caller: caller(),
            port,
            address: no.address,
            rule: rule_text(&no.reason),
            why: no.reason.why.clone(),
            grant: no.reason.grant.clone(),
            ..NetworkEvent::new(what, host.clone())
        };
        let tally = if what == NetworkDeed::Name { &self.refused_names } else { &self.refused };
        let key = (host.clone(), port, no.reason.rule.clone());
        let note = tally.borrow_mut().note(key, way, event, OTHERS);
        match note {
            // If it can't be written, the session knows, and nothing goes out any more.
            Note::Tell(event) => {
                if event.times.is_some() {
                    self.session.refused_again();
                }
                drop(self.session.record(&event));
            }
            Note::Known => self.session.refused_again(),
        }
        self.session.refused(&Judgement { ruling: Ruling::Deny, reasons: vec![no.reason.clone()] }, no.retry);
    }

    /// What was refused again and again since it was last told.
    pub fn tell_the_rest(&self) {
        let rest = |tally: &std::cell::RefCell<super::Tally<super::Refusal>>| tally.borrow_mut().rest();
        let all = [rest(&self.refused_names), rest(&self.refused), self.session.rest()].concat();
        for event in all {
            if self.session.record(&event).is_err() {
                return;
            }
        }
    }
}

/// So that a client need not wait to find out.
pub(crate) fn reset(stream: TcpStream) {
    // If it can't be had at once, it ends like any other.
    rustix::net::sockopt::set_socket_linger(&stream, Some(std::time::Duration::ZERO)).ok();
    drop(stream);
}
