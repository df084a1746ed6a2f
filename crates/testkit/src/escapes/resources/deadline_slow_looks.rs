//! Gives the supervisor so much to look at that it misses the time.

use std::fs::File;
use std::time::Duration;

use model::Wall;

use super::support;
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "resources/deadline_slow_looks",
    wall: Wall::WallTime,
    about: "outlast --timeout 1s behind a million open descriptors",
    flags: &["--timeout", "1s"],
    prepare: |_| Ok(()),
    inside: |inside| {
        // Bare, the inherited limit may be lower; as many as there may be.
        let null = File::open("/dev/null")?;
        let mut kept = Vec::new();
        while kept.len() < 16_000
            && let Ok(one) = null.try_clone()
        {
            kept.push(one);
        }
        support::at_the_brink(inside)?;
        for _ in 0..64 {
            support::fork(|| support::pause(Duration::from_secs(3)))?;
        }
        support::pause(Duration::from_secs(3));
        inside.loot("three seconds")
    },
    judge: Some(support::ended_in_time),
    control: Control::Bare,
};
