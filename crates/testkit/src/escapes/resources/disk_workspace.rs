//! Fills the workspace, in files that are each small enough.

use std::fs::{self, File};

use model::Wall;

use super::support::{self, MIB};
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "resources/disk_workspace",
    wall: Wall::Disk,
    about: "write 64 MiB to the workspace in eight files with --disk 16M",
    flags: &["--disk", "16M"],
    prepare: support::alone_on_the_disk,
    inside: |inside| {
        support::at_the_brink(inside)?;
        for number in 0..8 {
            let file = File::create(inside.workspace.join(format!("part-{number}")))?.into();
            support::fill_file(&file, 8 * MIB)?;
        }
        support::pause(support::UNTIL_SEEN);
        for number in 0..8 {
            fs::remove_file(inside.workspace.join(format!("part-{number}")))?;
        }
        inside.loot("64 MiB in the workspace")
    },
    judge: Some(support::stopped_for_disk),
    control: Control::Bare,
};
