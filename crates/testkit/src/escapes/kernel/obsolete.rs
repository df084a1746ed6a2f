//! Calls that hardly anyone remembers, and that nobody fixes.

use model::Wall;

use super::support::{NOWHERE, judge_by_loot, reach};
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "kernel/obsolete",
    wall: Wall::SystemCalls,
    about: "reach sysfs(2), ustat(2), and others from the back of the table",
    flags: &[],
    prepare: |_| Ok(()),
    inside: |inside| {
        reach(
            inside,
            &[("sysfs", libc::SYS_sysfs, [3, 0, 0, 0, 0, 0]), ("ustat", libc::SYS_ustat, [0, NOWHERE, 0, 0, 0, 0])],
        )
    },
    judge: Some(judge_by_loot),
    control: Control::Bare,
};
