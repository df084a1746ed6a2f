//! More open files than granted.

use std::fs::File;

use model::Wall;

use super::support;
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "resources/open_files",
    wall: Wall::OpenFiles,
    about: "have 1000 files open with --files 64",
    flags: &["--files", "64"],
    prepare: |_| Ok(()),
    inside: |inside| {
        let mut kept = Vec::new();
        for _ in 0..1000 {
            kept.push(File::open("/dev/null")?);
        }
        inside.loot("1000 open files")
    },
    judge: Some(support::nothing_was_gained),
    control: Control::Bare,
};
