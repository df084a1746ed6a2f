//! Reads a file outside the workspace by the other names that /proc gives the root.

use model::Wall;

use super::support;
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "files/proc_aliases",
    wall: Wall::Files,
    about: "read outside the grant through /proc's links to roots and working folders",
    flags: &[],
    prepare: |_| Ok(()),
    inside: |inside| {
        // SAFETY: takes nothing.
        let parent = unsafe { libc::getppid() };
        let secret = inside.secret_file();
        let roots = ["self", "thread-self", "1", "2", "self/task/../../self", &parent.to_string()]
            .map(|process| format!("/proc/{process}/root{}", secret.display()).into());
        let folders = ["self/cwd/../outside", "1/cwd/..", "1/cwd/srv", "self/fd/../cwd/../outside"]
            .map(|path| format!("/proc/{path}/secret").into());
        support::steal_any(inside, roots.into_iter().chain(folders))
    },
    judge: None,
    control: Control::Bare,
};
