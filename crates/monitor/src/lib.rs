//! What an agent does, compared with what is usual for it and with what nobody means to do. Pure, and bounded: however
//! much is observed, a profile is a fixed number of numbers.
//!
//! [`Profile`] knows an agent over all its runs; [`Live`] watches one run while it lasts. Both turn observations into
//! alerts, one for each detector and episode. Every threshold is here, with its reason, and in docs/monitor.md.

mod drift;
mod live;
mod miners;
mod profile;
mod variety;
mod window;
mod words;

use std::time::Duration;

use model::{Denial, Overrun};

pub use live::Live;
pub use profile::{LARGEST, Profile, THROTTLED, THROTTLED_WITHIN};

/// What the host has, and how patient its owner is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Terms {
    /// Processors that a run may use.
    pub processors: f64,
    /// How long full load without anything to show for it may last.
    pub mining_after: Duration,
    /// How long one processor may turn in place.
    pub runaway_after: Duration,
}

impl Terms {
    /// Ten minutes: compilers, linkers and tests are at full load for minutes too, but read, write, say something or
    /// start something meanwhile.
    pub const MINING_AFTER: Duration = Duration::from_secs(10 * 60);
    /// Twenty: one thread that computes for long is nothing unusual, and costs little.
    pub const RUNAWAY_AFTER: Duration = Duration::from_secs(20 * 60);

    pub fn of(processors: f64) -> Terms {
        let processors = if processors.is_finite() { processors.clamp(0.01, 1e6) } else { 1.0 };
        Terms { processors, mining_after: Terms::MINING_AFTER, runaway_after: Terms::RUNAWAY_AFTER }
    }
}

/// Something about an agent that a profile learns from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Observation<'a> {
    /// A run was asked for.
    Asked,
    /// It was refused: by which rule, about what.
    Refused {
        rule: &'a str,
        about: &'a str,
    },
    Ended(Ended<'a>),
    /// Something was reached, or tried to be: a name or an address, and a port.
    Connected {
        host: &'a str,
        port: u16,
    },
}

/// Whether it says anything to whoever watches a run: what tells the others apart need not be told at all.
pub fn is_telling(observation: &Observation<'_>) -> bool {
    match observation {
        Observation::Connected { host, port } => miners::pool(host, *port).is_some(),
        Observation::Asked | Observation::Refused { .. } | Observation::Ended(_) => true,
    }
}

/// What one run came to.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Ended<'a> {
    pub duration: Duration,
    pub processor: Duration,
    pub peak_memory: u64,
    pub read: u64,
    pub written: u64,
    /// Bytes that left for the network.
    pub egress: u64,
    pub overrun: Option<Overrun>,
    pub denials: &'a [Denial],
    /// Denials that came after the list was full.
    pub denials_not_listed: u64,
}
