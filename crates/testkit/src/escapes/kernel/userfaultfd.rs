//! Handles its own page faults: the tool that makes races in the kernel easy to win.

use model::Wall;

use super::support::{judge_by_loot, reach};
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "kernel/userfaultfd",
    wall: Wall::SystemCalls,
    about: "reach userfaultfd(2), also in its unprivileged way",
    flags: &[],
    prepare: |_| Ok(()),
    inside: |inside| {
        reach(
            inside,
            &[
                ("userfaultfd", libc::SYS_userfaultfd, [1, 0, 0, 0, 0, 0]),
                ("userfaultfd", libc::SYS_userfaultfd, [0, 0, 0, 0, 0, 0]),
            ],
        )
    },
    judge: Some(judge_by_loot),
    control: Control::Bare,
};
