//! Waits until the host makes a file that was to be hidden and did not exist yet.

use std::fs;

use model::Wall;

use super::support;
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "files/hidden_before_it_exists",
    wall: Wall::Files,
    about: "read a file that is to be hidden and that the host makes only later",
    flags: &["--hide", "hidden"],
    prepare: |field| {
        let fresh = field.put("fresh", &field.secret, 0o644)?;
        let hidden = field.workspace.join("hidden");
        support::once_ready(field, move || fs::rename(fresh, hidden));
        Ok(())
    },
    inside: |inside| {
        support::let_the_host_act(inside)?;
        inside.steal(inside.workspace.join("hidden"))
    },
    judge: None,
    control: Control::Bare,
};
