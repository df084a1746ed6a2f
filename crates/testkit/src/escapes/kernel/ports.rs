//! Asks for the ports of the machine and a descriptor table of its own.

use model::Wall;

use super::support::{judge_by_loot, reach};
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "kernel/ports",
    wall: Wall::SystemCalls,
    about: "reach iopl(2), ioperm(2) and modify_ldt(2)",
    flags: &[],
    prepare: |_| Ok(()),
    inside: |inside| {
        reach(
            inside,
            &[
                ("iopl", libc::SYS_iopl, [0, 0, 0, 0, 0, 0]),
                ("ioperm", libc::SYS_ioperm, [0, 1, 0, 0, 0, 0]),
                ("modify_ldt", libc::SYS_modify_ldt, [0, 0, 0, 0, 0, 0]),
            ],
        )
    },
    judge: Some(judge_by_loot),
    control: Control::Bare,
};
