//! Reads a file of the same user outside the workspace, by its plain name.

use model::Wall;

use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "files/read_outside",
    wall: Wall::Files,
    about: "read a file outside the grant by its plain name",
    flags: &[],
    prepare: |_| Ok(()),
    inside: |inside| inside.steal(inside.secret_file()),
    judge: None,
    control: Control::Bare,
};
