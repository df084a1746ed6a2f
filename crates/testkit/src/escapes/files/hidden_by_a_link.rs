//! Reads a file that was hidden by a link to it: the link's target is what must be covered, under each of its names.

use model::Wall;

use super::support;
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "files/hidden_by_a_link",
    wall: Wall::Files,
    about: "read a file that was hidden by a link to it, by its own name",
    flags: &["--hide", "link/inner"],
    prepare: |field| {
        support::put_in_workspace(field, "real/inner", &field.secret)?;
        std::os::unix::fs::symlink("real", field.workspace.join("link"))
    },
    inside: |inside| support::steal_any(inside, ["real/inner", "link/inner"].map(|name| inside.workspace.join(name))),
    judge: None,
    control: Control::Bare,
};
