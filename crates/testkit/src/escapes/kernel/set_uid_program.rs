//! Runs a program that belongs to root and is to run as its owner.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::process::Command;

use model::Wall;

use crate::{Attack, Control, Verdict};

pub const ATTACK: Attack = Attack {
    id: "kernel/set_uid_program",
    wall: Wall::Privileges,
    about: "run a set-user-id program of root's that lies in the workspace",
    flags: &[],
    prepare: |field| {
        let path = field.workspace.join("elevated");
        fs::copy("/usr/bin/id", &path)?;
        chown(&path, Some(0), Some(0))?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o6755))
    },
    inside: |inside| {
        let output = Command::new(inside.workspace.join("elevated")).arg("-u").output()?;
        inside.loot(output.stdout)
    },
    judge: Some(|field, _| match field.loot().as_slice() {
        b"0\n" => Verdict::Broken("it ran as root".to_owned()),
        _ => Verdict::Held,
    }),
    control: Control::Bare,
};
