//! Enters a namespace by a bad descriptor: an answer about the descriptor means that a good one would do.

use model::Wall;

use super::support::{BAD, judge_by_loot, reach};
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "kernel/enter_namespace",
    wall: Wall::SystemCalls,
    about: "reach setns(2)",
    flags: &[],
    prepare: |_| Ok(()),
    inside: |inside| {
        reach(
            inside,
            &[
                ("setns", libc::SYS_setns, [BAD, 0, 0, 0, 0, 0]),
                ("setns", libc::SYS_setns, [BAD, 0x1000_0000, 0, 0, 0, 0]),
            ],
        )
    },
    judge: Some(judge_by_loot),
    control: Control::Bare,
};
