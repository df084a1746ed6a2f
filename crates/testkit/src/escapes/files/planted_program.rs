//! A link in the place of the program to run, planted by an earlier run: what it leads to lies outside the grant, and
//! its whole folder would be shown so that the program finds its parts.

use std::fs;
use std::os::unix::fs::symlink;

use model::Wall;

use crate::inside::BRIEF;
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "files/planted_program",
    wall: Wall::Files,
    about: "have a folder outside shown by a link, planted earlier, in the place of the program to run",
    flags: &[],
    prepare: |field| {
        let program = field.outside.join("tool");
        fs::rename(field.workspace.join("attacker"), &program)?;
        symlink("../outside/tool", field.workspace.join("attacker"))?;
        // The attacker looks for its brief beside its real place.
        symlink(field.workspace.join(BRIEF), field.outside.join(BRIEF))
    },
    inside: |inside| inside.steal(inside.secret_file()),
    judge: None,
    control: Control::Bare,
};
