//! Mounts by descriptors: the newer calls that older lists forget.

use model::Wall;

use super::support::{BAD, NOWHERE, judge_by_loot, reach};
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "kernel/mounts_new",
    wall: Wall::SystemCalls,
    about: "reach fsopen(2), open_tree(2), move_mount(2), mount_setattr(2) and the like",
    flags: &[],
    prepare: |_| Ok(()),
    inside: |inside| {
        reach(
            inside,
            &[
                ("open_tree", libc::SYS_open_tree, [BAD, NOWHERE, 0, 0, 0, 0]),
                ("open_tree", libc::SYS_open_tree, [BAD, NOWHERE, 1, 0, 0, 0]),
                ("fsconfig", libc::SYS_fsconfig, [BAD, 0, 0, 0, 0, 0]),
                ("mount_setattr", libc::SYS_mount_setattr, [BAD, NOWHERE, 0, NOWHERE, 0, 0]),
                ("fsopen", libc::SYS_fsopen, [NOWHERE, 0, 0, 0, 0, 0]),
                ("fsmount", libc::SYS_fsmount, [BAD, 0, 0, 0, 0, 0]),
                ("fspick", libc::SYS_fspick, [BAD, NOWHERE, 0, 0, 0, 0]),
                ("move_mount", libc::SYS_move_mount, [BAD, NOWHERE, BAD, NOWHERE, 0, 0]),
                ("statmount", 457, [NOWHERE, NOWHERE, 8, 0, 0, 0]),
                ("listmount", 458, [NOWHERE, NOWHERE, 8, 0, 0, 0]),
                ("open_tree_attr", 467, [BAD, NOWHERE, 0, NOWHERE, 0, 0]),
            ],
        )
    },
    judge: Some(judge_by_loot),
    control: Control::Bare,
};
