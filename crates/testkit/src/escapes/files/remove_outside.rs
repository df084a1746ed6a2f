//! Removes and moves away what is outside the workspace.

use std::fs;

use model::Wall;

use super::support;
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "files/remove_outside",
    wall: Wall::Files,
    about: "remove a file outside the grant, or move it or its folder away",
    flags: &[],
    prepare: |_| Ok(()),
    inside: |inside| {
        let target = inside.target_file();
        support::any([
            fs::rename(&target, inside.workspace.join("moved")),
            fs::rename(&target, inside.outside.join("moved")),
            fs::remove_file(&target),
            fs::rename(&inside.outside, inside.outside.with_extension("moved")),
        ])
    },
    judge: Some(support::target_untouched),
    control: Control::Bare,
};
