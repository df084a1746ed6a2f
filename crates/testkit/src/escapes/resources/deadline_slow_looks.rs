//! Gives the supervisor so much to look at that it misses the time.

use std::fs::File;
use std::time::Duration;

use model::Wall;

use super::support;
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "resources/deadline_slow_looks",
    wall: Wall::WallTime,
    about: "outlast --timeout 3s behind a million open descriptors",
    // Time enough to open all of them on a kernel of its own, on a busy host.
    flags: &["--timeout", "3s"],
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
            support::fork(|| support::pause(Duration::from_secs(5)))?;
        }
        support::pause(Duration::from_secs(5));
        inside.loot("five seconds")
    },
    // One that was ended two seconds late has got to its end. An engine takes its time to clear so much away.
    judge: Some(|field, run| support::ended_within(Duration::from_secs(10), field, run)),
    control: Control::Bare,
};
