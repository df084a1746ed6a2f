//! Writes to a file outside the workspace by the other names that /proc gives the root.

use std::path::Path;

use model::Wall;

use super::support;
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "files/write_proc_aliases",
    wall: Wall::Files,
    about: "write outside the grant through /proc's links to roots and working folders",
    flags: &[],
    prepare: |_| Ok(()),
    inside: |inside| {
        // SAFETY: takes nothing.
        let parent = unsafe { libc::getppid() };
        let target = inside.target_file();
        let names = ["self/root", "thread-self/root", "1/root", &format!("{parent}/root"), "self/cwd/../../../.."]
            .map(|link| format!("/proc/{link}{}", target.display()));
        support::any(names.iter().map(|name| support::overwrite(Path::new(name))))
    },
    judge: Some(support::target_untouched),
    control: Control::Bare,
};
