//! Servers inside runs that go on already, reached from the host's loopback.

use std::os::fd::OwnedFd;

use serde::Serialize;

use crate::{Published, Trouble};

pub trait Visits {
    /// Leads visitors in, until the run ends or somebody interrupts it. `which`: the start of a run's id, a sandbox as `ps`
    /// calls it, or `last`.
    fn lead(&self, which: &str, ports: &[Published], hears: Hears) -> Result<(), Trouble>;

    /// Connects to servers of a sandbox that is open for whoever asks on `asked` (`Ushering`), until nobody does or the sandbox ends.
    /// `ready`: it can be asked now. `agent`: for whom.
    fn usher(&self, which: &str, agent: Option<&str>, asked: OwnedFd, ready: &dyn Fn()) -> Result<(), Trouble>;
}

/// Is told what comes.
pub type Hears = Box<dyn Fn(&Led)>;

/// What comes while visitors are led in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Led {
    /// They can come now.
    Open {
        run: String,
        #[serde(flatten)]
        ports: Published,
        /// Somebody inside waits for them already.
        listens: bool,
    },
    Visit {
        connection: u64,
        guest: u16,
    },
    Left {
        connection: u64,
        guest: u16,
        /// What the server said, and what it was told.
        sent: u64,
        received: u64,
        /// Of its end, if it was not its own.
        #[serde(skip_serializing_if = "String::is_empty")]
        why: String,
    },
    /// Too many, or it could not be written down.
    Refused {
        guest: u16,
        why: String,
    },
    Ended {
        run: String,
        /// It has ended; else somebody interrupted us.
        with_the_run: bool,
    },
}
