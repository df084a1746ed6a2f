//! Names files by handles, which know of no folders and no mounts.

use model::Wall;

use super::support::{BAD, NOWHERE, judge_by_loot, reach};
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "kernel/handles",
    wall: Wall::SystemCalls,
    about: "reach name_to_handle_at(2) and open_by_handle_at(2)",
    flags: &[],
    prepare: |_| Ok(()),
    inside: |inside| {
        reach(
            inside,
            &[
                ("name_to_handle_at", libc::SYS_name_to_handle_at, [BAD, NOWHERE, NOWHERE, NOWHERE, 0, 0]),
                ("open_by_handle_at", libc::SYS_open_by_handle_at, [-100i32 as u64, NOWHERE, 0, 0, 0, 0]),
            ],
        )
    },
    judge: Some(judge_by_loot),
    control: Control::Bare,
};
