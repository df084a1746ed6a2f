//! Reads and clears the kernel's log. Only its size is asked for.

use model::Wall;

use super::support::{judge_by_loot, reach};
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "kernel/kernel_log",
    wall: Wall::SystemCalls,
    about: "reach syslog(2)",
    flags: &[],
    prepare: |_| Ok(()),
    inside: |inside| {
        reach(
            inside,
            &[("syslog", libc::SYS_syslog, [10, 0, 0, 0, 0, 0]), ("syslog", libc::SYS_syslog, [9, 0, 0, 0, 0, 0])],
        )
    },
    judge: Some(judge_by_loot),
    control: Control::BareAsRoot,
};
