//! Options of prctl(2) that reach further than the caller's own name and signals.

use model::Wall;

use super::support::{BAD, NOWHERE, Try, judge_by_loot, reach};
use crate::{Attack, Control};

const fn option(name: &'static str, option: u64, arguments: [u64; 4]) -> Try {
    let [a, b, c, d] = arguments;
    (name, libc::SYS_prctl, [option, a, b, c, d, 0])
}

pub const ATTACK: Attack = Attack {
    id: "kernel/process_options",
    wall: Wall::SystemCalls,
    about: "reach options of prctl(2) outside the closed list, also with rubbish in the high half",
    flags: &[],
    prepare: |_| Ok(()),
    inside: |inside| {
        reach(
            inside,
            &[
                option("memory map", 35, [15, NOWHERE, 0, 0]),
                option("memory map with rubbish", 35 | 1 << 32, [15, NOWHERE, 0, 0]),
                option("secure bits", 28, [0, 0, 0, 0]),
                option("drop from bounding set", 24, [63, 0, 0, 0]),
                option("endianness", 20, [0, 0, 0, 0]),
                option("unaligned access", 6, [0, 0, 0, 0]),
                option("io flusher", 57, [0, 0, 0, 0]),
                option("dispatch", 59, [0, 0, 0, 0]),
                option("core scheduling", 62, [0, BAD, 0, 0]),
                option("timing", 14, [0, 0, 0, 0]),
                option("unknown", 9999, [0, 0, 0, 0]),
            ],
        )
    },
    judge: Some(judge_by_loot),
    control: Control::Bare,
};
