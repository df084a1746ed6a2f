//! Folders so deep that their whole name is longer than any name may be.

use std::fs::{self, File};

use model::Wall;

use super::support::{self, MIB};
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "resources/disk_deep",
    wall: Wall::Disk,
    about: "write 64 MiB below a path of 5,000 bytes with --disk 16M",
    flags: &["--disk", "16M"],
    prepare: support::alone_on_the_disk,
    inside: |inside| {
        support::at_the_brink(inside)?;
        let name = "d".repeat(250);
        std::env::set_current_dir(&inside.workspace)?;
        for _ in 0..20 {
            fs::create_dir(&name)?;
            std::env::set_current_dir(&name)?;
        }
        for number in 0..8 {
            let file = File::create(format!("part-{number}"))?.into();
            support::fill_file(&file, 8 * MIB)?;
        }
        support::pause(support::UNTIL_SEEN * 2);
        inside.loot("64 MiB deep down")
    },
    judge: Some(support::stopped_for_disk),
    control: Control::Bare,
};
