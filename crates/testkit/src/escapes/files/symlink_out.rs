//! Plants links in the workspace that lead out of it, and reads through them.

use std::os::unix::fs::symlink;

use model::Wall;

use super::support;
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "files/symlink_out",
    wall: Wall::Files,
    about: "read through links in the workspace that lead out of it",
    flags: &[],
    prepare: |_| Ok(()),
    inside: |inside| {
        let here = |name: &str| inside.workspace.join(name);
        symlink(inside.secret_file(), here("to-file"))?;
        symlink(&inside.outside, here("to-folder"))?;
        symlink("../outside/secret", here("relative"))?;
        symlink("/proc/self/root", here("to-root"))?;
        symlink(here("to-folder"), here("chain"))?;
        let deep = here("to-root").join(inside.secret_file().strip_prefix("/").unwrap_or(&inside.outside));
        let plain = ["to-file", "to-folder/secret", "relative", "chain/secret"].map(here);
        support::steal_any(inside, plain.into_iter().chain([deep]))
    },
    judge: None,
    control: Control::Bare,
};
