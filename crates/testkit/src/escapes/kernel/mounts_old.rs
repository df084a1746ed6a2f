//! Mounts, unmounts and changes the root, by the calls of old.

use model::Wall;

use super::support::{NOWHERE, judge_by_loot, reach};
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "kernel/mounts_old",
    wall: Wall::SystemCalls,
    about: "reach mount(2), umount2(2), chroot(2), pivot_root(2)",
    flags: &[],
    prepare: |_| Ok(()),
    inside: |inside| {
        reach(
            inside,
            &[
                ("mount", libc::SYS_mount, [NOWHERE, NOWHERE, NOWHERE, 0, NOWHERE, 0]),
                ("umount2", libc::SYS_umount2, [NOWHERE, 0, 0, 0, 0, 0]),
                ("chroot", libc::SYS_chroot, [NOWHERE, 0, 0, 0, 0, 0]),
                ("pivot_root", libc::SYS_pivot_root, [NOWHERE, NOWHERE, 0, 0, 0, 0]),
            ],
        )
    },
    judge: Some(judge_by_loot),
    control: Control::Bare,
};
