//! What an attack is, and what comes of it.

use std::io;

use model::Wall;

use crate::field::{Field, Run};
use crate::inside::Inside;

/// One attack. Data and three functions: the first and last run on the host, the second inside.
pub struct Attack {
    /// Folder and file: `files/read_outside`.
    pub id: &'static str,
    /// The wall that must hold it.
    pub wall: Wall,
    /// A sentence: what the attacker tries.
    pub about: &'static str,
    /// Flags for `belljar run` besides `--write WORKSPACE`.
    pub flags: &'static [&'static str],
    /// Puts bait in place. Runs as root, or as the user the trial is for.
    pub prepare: fn(&Field) -> io::Result<()>,
    /// The attack itself. An `Err` means that it was stopped. What it gains it shows with [`Inside::loot`].
    pub inside: fn(&Inside) -> io::Result<()>,
    /// Evidence on the host. `None` for the usual: broken if the loot holds the field's secret.
    pub judge: Option<fn(&Field, &Run) -> Verdict>,
    pub control: Control,
}

/// Where the attack must succeed, so that its failure elsewhere means something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// Run bare, as the same user.
    Bare,
    /// Run bare, and only root can do it even so: the ordinary user's control is skipped.
    BareAsRoot,
    /// Nowhere on this machine, and why. Shown in the matrix; use it only if there is no other way.
    None(&'static str),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The wall held, and there is proof that the attack was really tried.
    Held,
    /// The attack succeeded, with the evidence.
    Broken(String),
    /// Neither can be said.
    Unclear(String),
}
