//! What was measured, by what it is of.

use std::collections::BTreeMap;

use testkit::Who;

use super::super::samples::Samples;
use super::contest::{Contestant, Lane};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum What {
    /// Milliseconds of a connection with one small request: the first of a run, and the others.
    First,
    New,
    /// Milliseconds of a small request over a connection that stays.
    Kept,
    /// Milliseconds of the answer to a name, as a program gets it.
    Name,
    /// Megabytes in a second.
    Bulk,
    /// Milliseconds until all have theirs.
    Crowd,
    /// Connections of a crowd that failed.
    Failed,
    /// Mebibytes at most, of all processes between.
    Peak,
    /// Kibibytes for each connection that does nothing.
    Idle,
    /// Milliseconds of a start, by what is granted.
    Start(&'static str),
}

impl What {
    fn unit(self) -> &'static str {
        match self {
            What::First | What::New | What::Kept | What::Name | What::Crowd | What::Start(_) => "ms",
            What::Bulk => "MB/s",
            What::Failed => "connections",
            What::Peak => "MiB",
            What::Idle => "KiB",
        }
    }
}

type Key = (What, Lane, Contestant, &'static str);

#[derive(Default)]
pub struct Figures(BTreeMap<Key, Vec<f64>>);

impl Figures {
    /// Remembers it, and keeps it with the raw samples.
    pub fn note(
        &mut self,
        (what, lane, contestant, who): (What, Lane, Contestant, Who),
        value: f64,
        samples: &mut Samples,
    ) -> Result<(), String> {
        self.0.entry((what, lane, contestant, who.name())).or_default().push(value);
        let name = format!("{contestant:?}, {}", lane.name());
        samples.keep(&format!("{what:?}"), &name, who.name(), value, what.unit())
    }

    pub fn count(&self, what: What, lane: Lane, contestant: Contestant, who: Who) -> usize {
        self.0.get(&(what, lane, contestant, who.name())).map_or(0, Vec::len)
    }

    /// The value below which `share` of all lie; nothing where nothing was measured.
    pub fn at(&self, share: f64, what: What, lane: Lane, contestant: Contestant, who: Who) -> Option<f64> {
        let mut sorted = self.0.get(&(what, lane, contestant, who.name()))?.clone();
        sorted.sort_by(f64::total_cmp);
        let rank = (share * sorted.len() as f64).ceil() as usize;
        sorted.get(rank.saturating_sub(1)).copied()
    }

    pub fn middle(&self, what: What, lane: Lane, contestant: Contestant, who: Who) -> Option<f64> {
        self.at(0.5, what, lane, contestant, who)
    }

    /// By how much the middle is above that with nothing between.
    pub fn added(&self, what: What, lane: Lane, contestant: Contestant, who: Who) -> Option<f64> {
        Some(self.middle(what, lane, contestant, who)? - self.middle(what, lane, Contestant::Direct, who)?)
    }

    /// The part of what goes through with nothing between.
    pub fn share(&self, what: What, lane: Lane, contestant: Contestant, who: Who) -> Option<f64> {
        Some(self.middle(what, lane, contestant, who)? / self.middle(what, lane, Contestant::Direct, who)?)
    }
}

/// `None` is shown as nothing.
pub fn shown(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(String::new, |value| format!("{value:.digits$}"))
}
