//! Stopped processes, in sessions and groups of their own, hear no signal but the last.

use model::Wall;

use super::support;
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "resources/stopped_daemons",
    wall: Wall::CleanUp,
    about: "leave stopped daemons behind",
    flags: &[],
    prepare: |_| Ok(()),
    inside: |inside| {
        support::mark(inside)?;
        for _ in 0..5 {
            support::daemon(|| {
                // SAFETY: stops this process. Bare, the judge ends it.
                unsafe { libc::raise(libc::SIGSTOP) };
            })?;
        }
        Ok(())
    },
    judge: Some(support::nothing_lives_on),
    control: Control::Bare,
};
