//! Moves the folder around a hidden file. The cover moves along, this time; the next run looks for it in vain.

use std::fs;

use model::Wall;

use super::support;
use crate::{Attack, Control, Verdict};

pub const ATTACK: Attack = Attack {
    id: "files/hidden_below_a_moved_folder",
    wall: Wall::Files,
    about: "move the folder around a hidden file, so that the next run does not find it to hide",
    flags: &["--hide", "settings/hidden"],
    prepare: |field| support::put_in_workspace(field, "settings/hidden", &field.secret).map(drop),
    inside: |inside| fs::rename(inside.workspace.join("settings"), inside.workspace.join("elsewhere")),
    judge: Some(|field, _| match fs::read_to_string(field.workspace.join("settings/hidden")) {
        Ok(contents) if contents == field.secret => Verdict::Held,
        _ => Verdict::Broken("on the host, the hidden file has another name now".to_owned()),
    }),
    control: Control::Bare,
};
