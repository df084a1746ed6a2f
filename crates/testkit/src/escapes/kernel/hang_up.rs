//! Hangs up a terminal for all who use it. In a session without one.

use model::Wall;

use super::support::{judge_by_loot, reach};
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "kernel/hang_up",
    wall: Wall::Terminal,
    about: "reach vhangup(2)",
    flags: &[],
    prepare: |_| Ok(()),
    inside: |inside| reach(inside, &[("vhangup", libc::SYS_vhangup, [0, 0, 0, 0, 0, 0])]),
    judge: Some(judge_by_loot),
    control: Control::BareAsRoot,
};
