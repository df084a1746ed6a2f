//! Somebody else gives back as much as is written: what is free on the filesystem does not tell who took it.

use std::fs;
use std::time::{Duration, Instant};

use model::Wall;

use super::support::{self, MIB};
use crate::inside::TRIED;
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "resources/disk_given_back",
    wall: Wall::Disk,
    about: "write 64 MiB to the workspace with --disk 16M while the host removes a file of 96 MiB elsewhere",
    flags: &["--disk", "16M"],
    prepare: |field| {
        support::alone_on_the_disk(field)?;
        let ballast = field.outside.join("ballast");
        support::fill_file(&fs::File::create(&ballast)?.into(), 96 * MIB)?;
        let begun = field.workspace.join(TRIED);
        std::thread::spawn(move || {
            let deadline = Instant::now() + Duration::from_secs(20);
            while !begun.exists() && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(1));
            }
            if fs::remove_file(&ballast).is_err() {
                // The trial is over already, and the field with it.
            }
        });
        Ok(())
    },
    inside: |inside| {
        support::at_the_brink(inside)?;
        support::pause(Duration::from_millis(200));
        for number in 0..8 {
            let file = fs::File::create(inside.workspace.join(format!("part-{number}")))?.into();
            support::fill_file(&file, 8 * MIB)?;
        }
        support::pause(support::UNTIL_SEEN);
        inside.loot("64 MiB in the workspace")
    },
    judge: Some(support::stopped_for_disk),
    control: Control::Bare,
};
