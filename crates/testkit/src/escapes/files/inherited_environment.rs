//! Looks for the caller's variables in its own environment and in that of its ancestors.

use std::os::unix::ffi::OsStrExt;

use model::Wall;

use super::support;
use crate::{Attack, Control, Verdict};

pub const ATTACK: Attack = Attack {
    id: "files/inherited_environment",
    wall: Wall::Inheritance,
    about: "find the caller's variables in one's own environment or an ancestor's",
    flags: &[],
    prepare: |_| Ok(()),
    inside: |inside| {
        for (name, value) in std::env::vars_os() {
            inside.loot([name.as_bytes(), b"=", value.as_bytes(), b"\n"].concat())?;
        }
        // SAFETY: takes nothing.
        let parent = unsafe { libc::getppid() };
        let processes = ["self", "thread-self", "1", &parent.to_string()];
        support::steal_any(inside, processes.map(|process| format!("/proc/{process}/environ").into()))
    },
    judge: Some(|field, _| match String::from_utf8_lossy(&field.loot()).contains("canary-in-the-environment") {
        true => Verdict::Broken("a variable of the caller's got through".to_owned()),
        false => Verdict::Held,
    }),
    control: Control::Bare,
};
