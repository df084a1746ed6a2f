//! Files that are open and have no name any more are in no tree that could be walked.

use std::fs::{self, File};
use std::os::fd::OwnedFd;

use model::Wall;

use super::support::{self, MIB};
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "resources/disk_unlinked",
    wall: Wall::Disk,
    about: "keep 64 MiB of the workspace's disk in removed files with --disk 16M",
    flags: &["--disk", "16M"],
    prepare: support::alone_on_the_disk,
    inside: |inside| {
        support::at_the_brink(inside)?;
        let mut kept: Vec<OwnedFd> = Vec::new();
        for number in 0..8 {
            let path = inside.workspace.join(format!("part-{number}"));
            let file = File::create(&path)?.into();
            fs::remove_file(&path)?;
            support::fill_file(&file, 8 * MIB)?;
            kept.push(file);
        }
        support::pause(support::UNTIL_SEEN * 2);
        inside.loot("64 MiB of disk without a name")
    },
    judge: Some(support::stopped_for_disk),
    control: Control::Bare,
};
