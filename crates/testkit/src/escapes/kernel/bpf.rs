//! Loads programs and maps into the kernel.

use model::Wall;

use super::support::{NOWHERE, judge_by_loot, reach};
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "kernel/bpf",
    wall: Wall::SystemCalls,
    about: "reach bpf(2), where most of the kernel's verifier bugs are",
    flags: &[],
    prepare: |_| Ok(()),
    inside: |inside| {
        reach(
            inside,
            &[("bpf", libc::SYS_bpf, [0, NOWHERE, 16, 0, 0, 0]), ("bpf", libc::SYS_bpf, [5, NOWHERE, 48, 0, 0, 0])],
        )
    },
    judge: Some(judge_by_loot),
    control: Control::Bare,
};
