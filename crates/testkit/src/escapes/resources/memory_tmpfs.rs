//! A file in /dev/shm, which is memory: more than the memory limit, less than the disk limit.

use std::fs::{self, File};

use model::Wall;

use super::support::{self, TOO_MUCH};
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "resources/memory_tmpfs",
    wall: Wall::Memory,
    about: "write 200 MiB to /dev/shm with --memory 64M and a larger --disk",
    flags: &["--memory", "64M", "--disk", "1G"],
    prepare: |_| Ok(()),
    inside: |inside| {
        support::at_the_brink(inside)?;
        let path = format!("/dev/shm/escape-{}", std::process::id());
        let file = File::create(&path)?.into();
        let filled = support::fill_file(&file, TOO_MUCH);
        support::pause(support::UNTIL_SEEN);
        fs::remove_file(&path)?;
        filled?;
        inside.loot("200 MiB in /dev/shm")
    },
    judge: Some(support::stopped_for_memory),
    control: Control::Bare,
};
