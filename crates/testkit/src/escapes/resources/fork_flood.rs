//! Forks six times as many processes as it may have.

use std::time::Duration;

use model::Wall;

use super::support;
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "resources/fork_flood",
    wall: Wall::ProcessCount,
    about: "have 300 processes at once with --pids 50",
    flags: &["--pids", "50"],
    prepare: |_| Ok(()),
    inside: |inside| {
        for _ in 0..300 {
            // They end by themselves: bare, nobody else ends them.
            support::fork(|| support::pause(Duration::from_secs(2)))?;
        }
        inside.loot("300 processes at once")
    },
    judge: Some(support::nothing_was_gained),
    control: Control::Bare,
};
