//! The same with files that were there before, among so many others that whoever looks takes a while: nothing about them is new
//! but their size.

use std::fs::{self, File};

use model::Wall;

use super::support;
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "resources/disk_grown_at_once",
    wall: Wall::Disk,
    about: "make eight of 5,000 files of the workspace grow to 64 MiB, at once, with --disk 16M",
    flags: &["--disk", "16M"],
    prepare: |field| {
        let crowd = field.workspace.join("crowd");
        fs::create_dir(&crowd)?;
        for number in 0..5_000 {
            File::create(crowd.join(number.to_string()))?;
        }
        for number in 0..8 {
            let path = crowd.join(format!("part-{number}"));
            File::create(&path)?;
            field.give(&path)?;
        }
        support::alone_on_the_disk(field)
    },
    inside: |inside| {
        support::at_the_brink(inside)?;
        for number in 0..8 {
            let file = File::options().write(true).open(inside.workspace.join(format!("crowd/part-{number}")))?;
            support::reserve(&file)?;
        }
        support::pause(support::UNTIL_SEEN);
        inside.loot("64 MiB at once")
    },
    judge: Some(support::stopped_for_disk),
    control: Control::Bare,
};
