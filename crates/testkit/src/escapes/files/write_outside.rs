//! Writes to a file of the same user outside the workspace, by its plain name.

use model::Wall;

use super::support;
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "files/write_outside",
    wall: Wall::Files,
    about: "change a file outside the grant by its plain name",
    flags: &[],
    prepare: |_| Ok(()),
    inside: |inside| support::overwrite(&inside.target_file()),
    judge: Some(support::target_untouched),
    control: Control::Bare,
};
