//! Uses an io_uring that somebody else might have made.

use model::Wall;

use super::support::{BAD, judge_by_loot, reach};
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "kernel/io_uring_use",
    wall: Wall::SystemCalls,
    about: "reach io_uring_enter(2) and io_uring_register(2)",
    flags: &[],
    prepare: |_| Ok(()),
    inside: |inside| {
        reach(
            inside,
            &[
                ("io_uring_enter", libc::SYS_io_uring_enter, [BAD, 0, 0, 0, 0, 0]),
                ("io_uring_register", libc::SYS_io_uring_register, [BAD, 0, 0, 0, 0, 0]),
            ],
        )
    },
    judge: Some(judge_by_loot),
    control: Control::Bare,
};
