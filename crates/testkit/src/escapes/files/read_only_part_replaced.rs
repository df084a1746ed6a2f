//! Waits until the host saves a read-only file by a rename over it, as git does its settings: the mount that kept
//! it from being written falls off at that moment.

use std::fs;

use model::Wall;

use super::support;
use crate::{Attack, Control, Verdict};

pub const ATTACK: Attack = Attack {
    id: "files/read_only_part_replaced",
    wall: Wall::Files,
    about: "change a read-only file once the host has saved it anew by a rename",
    flags: &["--read", ".git/config"],
    prepare: |field| {
        let settings = support::put_in_workspace(field, ".git/config", "older")?;
        let fresh = field.put("fresh", "untouched", 0o644)?;
        support::once_ready(field, move || fs::rename(fresh, settings));
        Ok(())
    },
    inside: |inside| {
        support::let_the_host_act(inside)?;
        support::overwrite(&inside.workspace.join(".git/config"))
    },
    judge: Some(|field, _| match fs::read_to_string(field.workspace.join(".git/config")) {
        Ok(contents) if contents == "untouched" => Verdict::Held,
        _ => Verdict::Broken("the read-only file was changed".to_owned()),
    }),
    control: Control::Bare,
};
