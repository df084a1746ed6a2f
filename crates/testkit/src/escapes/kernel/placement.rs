//! Moves memory, also that of others, between nodes; and keeps some from the kernel's own eyes.

use model::Wall;

use super::support::{BAD, judge_by_loot, reach};
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "kernel/placement",
    wall: Wall::SystemCalls,
    about: "reach move_pages(2), migrate_pages(2) and memfd_secret(2)",
    flags: &[],
    prepare: |_| Ok(()),
    inside: |inside| {
        reach(
            inside,
            &[
                ("move_pages", libc::SYS_move_pages, [0, 0, 0, 0, 0, 0]),
                ("migrate_pages", libc::SYS_migrate_pages, [BAD, 0, 0, 0, 0, 0]),
                ("set_mempolicy_home_node", 450, [1, 1, 0, 1, 0, 0]),
                ("memfd_secret", 447, [0, 0, 0, 0, 0, 0]),
            ],
        )
    },
    judge: Some(judge_by_loot),
    control: Control::Bare,
};
