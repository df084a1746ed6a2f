//! A link in the workspace, planted by an earlier run, on the way to a folder that the user grants by name.

use std::fs;
use std::os::unix::fs::symlink;

use model::Wall;

use super::support;
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "files/planted_grant",
    wall: Wall::Files,
    about: "have a folder outside granted by a link, planted earlier, on the way to a granted one",
    flags: &["--read", "packages/data"],
    prepare: |field| {
        let data = field.outside.join("data");
        fs::create_dir(&data)?;
        field.give(&data)?;
        field.put("data/inner", &field.secret, 0o644)?;
        symlink("../outside", field.workspace.join("packages"))
    },
    inside: |inside| {
        support::steal_any(inside, [inside.outside.join("data/inner"), inside.workspace.join("packages/data/inner")])
    },
    judge: None,
    control: Control::Bare,
};
