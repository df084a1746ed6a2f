//! Threads are processes to the kernel, and to a limit on them.

use std::time::Duration;

use model::Wall;

use super::support;
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "resources/thread_flood",
    wall: Wall::ProcessCount,
    about: "have 300 threads at once with --pids 50",
    flags: &["--pids", "50"],
    prepare: |_| Ok(()),
    inside: |inside| {
        for _ in 0..300 {
            std::thread::Builder::new().stack_size(64 << 10).spawn(|| support::pause(Duration::from_secs(2)))?;
        }
        inside.loot("300 threads at once")
    },
    judge: Some(support::nothing_was_gained),
    control: Control::Bare,
};
