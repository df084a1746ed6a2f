//! Takes everything in its first moment, so that whoever looks soon after it finds it there, as if it had always been.

use std::fs::File;

use model::Wall;

use super::support;
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "resources/disk_at_once",
    wall: Wall::Disk,
    about: "reserve 64 MiB in eight new files of the workspace, at once, with --disk 16M",
    flags: &["--disk", "16M"],
    prepare: support::alone_on_the_disk,
    inside: |inside| {
        support::at_the_brink(inside)?;
        for number in 0..8 {
            support::reserve(&File::create(inside.workspace.join(format!("part-{number}")))?)?;
        }
        support::pause(support::UNTIL_SEEN);
        inside.loot("64 MiB at once")
    },
    judge: Some(support::stopped_for_disk),
    control: Control::Bare,
};
