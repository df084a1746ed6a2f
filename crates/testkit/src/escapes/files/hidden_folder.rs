//! Reads what is in a hidden folder of the workspace by every name and detour.

use std::fs;

use model::Wall;

use super::support;
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "files/hidden_folder",
    wall: Wall::Files,
    about: "read what is in a hidden folder by other names, moves and by removing its cover",
    flags: &["--hide", "hidden"],
    prepare: |field| support::put_in_workspace(field, "hidden/inner", &field.secret).map(drop),
    inside: |inside| {
        let here = |name: &str| inside.workspace.join(name);
        let moved = || fs::rename(here("hidden"), here("moved")).and_then(|()| inside.steal(here("moved/inner")));
        let removed = || fs::remove_dir(here("hidden")).and_then(|()| inside.steal(here("hidden/inner")));
        support::any([
            inside.steal(here("hidden/inner")),
            inside.steal(here("./hidden/../hidden/inner")),
            inside.steal(format!("/proc/self/root{}", here("hidden/inner").display())),
            inside.steal("/proc/self/cwd/hidden/inner"),
            inside.steal("/proc/self/task/../cwd/hidden/inner"),
            moved(),
            removed(),
        ])
    },
    judge: None,
    control: Control::Bare,
};
