//! Stops itself and its children: whoever waits for them to run again waits for ever.

use std::time::Duration;

use model::Wall;

use super::support;
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "resources/deadline_stopped",
    wall: Wall::WallTime,
    about: "outlast --timeout 1s by being stopped",
    flags: &["--timeout", "1s"],
    prepare: |_| Ok(()),
    inside: |inside| {
        support::at_the_brink(inside)?;
        let own = std::process::id() as i32;
        for _ in 0..3 {
            support::fork(|| {
                // SAFETY: stops this process; the waker below, bare, or the sandbox ends it.
                unsafe { libc::raise(libc::SIGSTOP) };
            })?;
        }
        support::fork(move || {
            support::pause(Duration::from_secs(3));
            // SAFETY: takes integers; the group is our own.
            unsafe { libc::kill(own, libc::SIGCONT) };
            unsafe { libc::kill(0, libc::SIGCONT) };
        })?;
        // SAFETY: as above.
        unsafe { libc::raise(libc::SIGSTOP) };
        inside.loot("stopped for three seconds")
    },
    judge: Some(support::ended_in_time),
    control: Control::Bare,
};
