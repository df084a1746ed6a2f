//! Plants links in the workspace that lead out of it, and writes through them.

use std::os::unix::fs::symlink;

use model::Wall;

use super::support;
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "files/symlink_write",
    wall: Wall::Files,
    about: "write through links in the workspace that lead out of it",
    flags: &[],
    prepare: |_| Ok(()),
    inside: |inside| {
        let here = |name: &str| inside.workspace.join(name);
        symlink(inside.target_file(), here("to-file"))?;
        symlink(&inside.outside, here("to-folder"))?;
        symlink("/proc/self/cwd/../outside", here("through-proc"))?;
        let names = ["to-file", "to-folder/target", "through-proc/target"].map(here);
        support::any(names.iter().map(|name| support::overwrite(name)))
    },
    judge: Some(support::target_untouched),
    control: Control::Bare,
};
