//! The same with files that were there before: nothing about them is new but their size.

use std::fs::File;

use model::Wall;

use super::support;
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "resources/disk_grown_at_once",
    wall: Wall::Disk,
    about: "make eight files of the workspace grow to 64 MiB, at once, with --disk 16M",
    flags: &["--disk", "16M"],
    prepare: |field| {
        for number in 0..8 {
            let path = field.workspace.join(format!("part-{number}"));
            File::create(&path)?;
            field.give(&path)?;
        }
        support::alone_on_the_disk(field)
    },
    inside: |inside| {
        support::at_the_brink(inside)?;
        for number in 0..8 {
            let file = File::options().write(true).open(inside.workspace.join(format!("part-{number}")))?;
            support::reserve(&file)?;
        }
        support::pause(support::UNTIL_SEEN);
        inside.loot("64 MiB at once")
    },
    judge: Some(support::stopped_for_disk),
    control: Control::Bare,
};
