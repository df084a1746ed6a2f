//! Waits until the host saves a hidden file the way editors do, by a rename over it. A cover that is a mount falls
//! off at that moment: the kernel removes mounts from what was replaced.

use std::fs;

use model::Wall;

use super::support;
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "files/hidden_and_replaced",
    wall: Wall::Files,
    about: "read a hidden file once the host has saved it anew by a rename",
    flags: &["--hide", "hidden"],
    prepare: |field| {
        let hidden = support::put_in_workspace(field, "hidden", "an older secret")?;
        // Beside the workspace, as the new contents must not be read before they are hidden.
        let fresh = field.put("fresh", &field.secret, 0o644)?;
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
