//! Many empty files in the workspace.

use std::fs::{self, File};

use model::Wall;

use super::support;
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "resources/inodes_workspace",
    wall: Wall::Disk,
    about: "make 8,000 empty files in the workspace with --disk 16M",
    flags: &["--disk", "16M"],
    prepare: support::alone_on_the_disk,
    inside: |inside| {
        support::at_the_brink(inside)?;
        let folder = inside.workspace.join("many");
        fs::create_dir(&folder)?;
        for number in 0..8_000 {
            File::create(folder.join(number.to_string()))?;
        }
        support::pause(support::UNTIL_SEEN * 2);
        inside.loot("8,000 files in the workspace")
    },
    judge: Some(support::stopped_for_disk),
    control: Control::Bare,
};
