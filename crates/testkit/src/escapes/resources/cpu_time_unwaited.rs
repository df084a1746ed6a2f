//! Children that nobody waits for: their time is added to nobody's.

use std::time::Duration;

use model::Wall;

use super::support;
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "resources/cpu_time_unwaited",
    wall: Wall::CpuTime,
    about: "use 3 s of processor time in children that vanish, with --cpu-time 1s",
    flags: &["--cpu-time", "1s"],
    prepare: |_| Ok(()),
    inside: |inside| {
        support::at_the_brink(inside)?;
        // SAFETY: with SIGCHLD ignored the kernel reaps children itself, and forgets what they used.
        unsafe { libc::signal(libc::SIGCHLD, libc::SIG_IGN) };
        for _ in 0..60 {
            let child = support::fork(|| support::burn(Duration::from_millis(50)))?;
            // Fails when the child has ended, with nothing to learn.
            if support::wait(child).is_ok() {
                return Err(std::io::Error::other("a child was kept to be waited for"));
            }
        }
        inside.loot("3 s of processor time")
    },
    judge: Some(support::stopped_for_cpu_time),
    control: Control::Bare,
};
