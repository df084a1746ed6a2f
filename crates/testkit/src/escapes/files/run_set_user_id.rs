//! Runs a set-user-id program of root's that lies in the workspace.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::process::Command;

use model::Wall;

use super::support;
use crate::{Attack, Control, Verdict};

pub const ATTACK: Attack = Attack {
    id: "files/run_set_user_id",
    wall: Wall::Privileges,
    about: "become root by a set-user-id program, in the workspace and of the system",
    flags: &[],
    prepare: |field| {
        let program = field.workspace.join("identity");
        fs::copy("/usr/bin/id", &program)?;
        chown(&program, Some(0), Some(0))?;
        fs::set_permissions(&program, fs::Permissions::from_mode(0o6755))
    },
    inside: |inside| {
        let own = || inside.loot(Command::new("./identity").arg("-u").output()?.stdout);
        let linked = || {
            let loader = Command::new("/proc/self/cwd/identity").arg("-u").output()?;
            inside.loot(loader.stdout)
        };
        support::any([own(), linked()])
    },
    judge: Some(|field, _| match String::from_utf8_lossy(&field.loot()).lines().any(|line| line == "0") {
        true => Verdict::Broken("it ran as root".to_owned()),
        false => Verdict::Held,
    }),
    control: Control::Bare,
};
