//! Runs a program that lies outside the workspace, directly and through its interpreter.

use std::process::Command;

use model::Wall;

use super::support;
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "files/execute_outside",
    wall: Wall::Files,
    about: "run a program outside the grant, directly and through an interpreter",
    flags: &[],
    prepare: |field| field.put("tool", &format!("#!/bin/sh\necho {}\n", field.secret), 0o755).map(drop),
    inside: |inside| {
        let tool = inside.outside.join("tool");
        let direct = || inside.loot(Command::new(&tool).output()?.stdout);
        let interpreted = || inside.loot(Command::new("/bin/sh").arg(&tool).output()?.stdout);
        support::any([direct(), interpreted()])
    },
    judge: None,
    control: Control::Bare,
};
