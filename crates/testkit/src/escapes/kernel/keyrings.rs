//! Makes, asks for and reads keys in the kernel's keyrings.

use model::Wall;

use super::support::{BAD, NOWHERE, judge_by_loot, reach};
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "kernel/keyrings",
    wall: Wall::SystemCalls,
    about: "reach the kernel's keyrings",
    flags: &[],
    prepare: |_| Ok(()),
    inside: |inside| {
        reach(
            inside,
            &[
                ("add_key", libc::SYS_add_key, [NOWHERE, NOWHERE, 0, 0, BAD, 0]),
                ("request_key", libc::SYS_request_key, [NOWHERE, NOWHERE, 0, BAD, 0, 0]),
                ("keyctl", libc::SYS_keyctl, [0, -3i32 as u64, 0, 0, 0, 0]),
                ("keyctl", libc::SYS_keyctl, [6, -3i32 as u64, 0, 0, 0, 0]),
            ],
        )
    },
    judge: Some(judge_by_loot),
    control: Control::Bare,
};
