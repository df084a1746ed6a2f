//! Ignores every signal that can be ignored, and spins.

use std::time::{Duration, Instant};

use model::Wall;

use super::support;
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "resources/deadline_deaf",
    wall: Wall::WallTime,
    about: "spin past --timeout 1s with all signals ignored",
    flags: &["--timeout", "1s"],
    prepare: |_| Ok(()),
    inside: |inside| {
        support::at_the_brink(inside)?;
        for signal in 1..=64 {
            // SAFETY: ignoring is always a valid action; some may not be ignored, and are not.
            unsafe { libc::signal(signal, libc::SIG_IGN) };
        }
        let until = Instant::now() + Duration::from_secs(3);
        while Instant::now() < until {
            std::hint::spin_loop();
        }
        inside.loot("three seconds")
    },
    judge: Some(support::ended_in_time),
    control: Control::Bare,
};
