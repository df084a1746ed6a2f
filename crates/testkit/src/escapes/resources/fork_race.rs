//! Processes that live for a moment and leave a successor: whoever lists and then kills is always late.

use std::time::{Duration, Instant};

use model::Wall;

use super::support;
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "resources/fork_race",
    wall: Wall::CleanUp,
    about: "outrun the killing by forking a successor each millisecond",
    flags: &[],
    prepare: |_| Ok(()),
    inside: |inside| {
        support::mark(inside)?;
        // Bounded for the control: after four seconds nobody has a successor.
        let until = Instant::now() + Duration::from_secs(4);
        for _ in 0..8 {
            support::daemon(|| run_on(until))?;
        }
        support::pause(Duration::from_millis(50));
        Ok(())
    },
    judge: Some(support::nothing_lives_on),
    control: Control::Bare,
};

fn run_on(until: Instant) {
    while Instant::now() < until {
        // SAFETY: one thread; the parent leaves and the child goes on.
        if unsafe { libc::fork() } > 0 {
            return;
        }
        support::pause(Duration::from_millis(1));
    }
}
