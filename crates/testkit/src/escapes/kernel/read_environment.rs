//! Reads the environment and the command line of every process it can name.

use std::fs;

use model::Wall;

use super::support::{bait, set_bait};
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "kernel/read_environment",
    wall: Wall::Processes,
    about: "read the environment of the host's processes in /proc",
    flags: &[],
    prepare: |field| set_bait(field).map(drop),
    inside: |inside| {
        let bait = bait(inside)?;
        for path in [format!("/proc/{bait}/environ"), format!("/proc/{bait}/task/{bait}/environ")] {
            if let Ok(text) = fs::read(path) {
                inside.loot(text)?;
            }
        }
        // Under whatever number it may have here; the attacker itself does not know the secret.
        for entry in fs::read_dir("/proc")?.flatten() {
            if let Ok(text) = fs::read(entry.path().join("environ")) {
                inside.loot(text)?;
            }
        }
        Ok(())
    },
    judge: None,
    control: Control::Bare,
};
