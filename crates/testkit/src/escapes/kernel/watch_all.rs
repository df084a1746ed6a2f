//! Watches or holds up every access to a whole filesystem.

use model::Wall;

use super::support::{BAD, NOWHERE, judge_by_loot, reach};
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "kernel/watch_all",
    wall: Wall::SystemCalls,
    about: "reach fanotify_init(2) and fanotify_mark(2)",
    flags: &[],
    prepare: |_| Ok(()),
    inside: |inside| {
        reach(
            inside,
            &[
                ("fanotify_init", libc::SYS_fanotify_init, [0x200, 0, 0, 0, 0, 0]),
                ("fanotify_init", libc::SYS_fanotify_init, [0, 0, 0, 0, 0, 0]),
                ("fanotify_mark", libc::SYS_fanotify_mark, [BAD, 1, 0, BAD, NOWHERE, 0]),
            ],
        )
    },
    judge: Some(judge_by_loot),
    control: Control::Bare,
};
