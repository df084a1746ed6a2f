//! Many empty files take no bytes, and still use a filesystem up.

use std::fs::{self, File};

use model::Wall;

use super::support;
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "resources/inodes_tmp",
    wall: Wall::Disk,
    about: "make 5,000 empty files in /tmp with --disk 8M",
    flags: &["--disk", "8M"],
    prepare: support::alone_on_the_disk,
    inside: |inside| {
        let folder = format!("/tmp/escape-{}", std::process::id());
        fs::create_dir(&folder)?;
        let made = (0..5_000).try_for_each(|number| File::create(format!("{folder}/{number}")).map(drop));
        fs::remove_dir_all(&folder)?;
        made?;
        inside.loot("5,000 files in /tmp")
    },
    judge: Some(support::nothing_was_gained),
    control: Control::Bare,
};
