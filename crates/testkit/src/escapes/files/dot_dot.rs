//! Climbs out of the workspace with `..`, by names and from descriptors of folders.

use std::fs;
use std::os::fd::{AsRawFd, FromRawFd};

use model::Wall;

use super::support;
use crate::inside::call;
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "files/dot_dot",
    wall: Wall::Files,
    about: "climb out of the workspace with `..`, from names and from open folders",
    flags: &[],
    prepare: |_| Ok(()),
    inside: |inside| {
        let below = inside.workspace.join("deep/er");
        fs::create_dir_all(&below)?;
        let folder = fs::File::open(&below)?;
        // The folder is moved up while it is open: `..` of the old place was deeper than the new one's.
        fs::rename(&below, inside.workspace.join("moved-up"))?;
        let climb = |path: &str| {
            let name = support::c_text(path);
            let from = folder.as_raw_fd() as u64;
            let fd = call(libc::SYS_openat, [from, name.as_ptr() as u64, libc::O_RDONLY as u64, 0, 0, 0])?;
            // SAFETY: the kernel just made it for us.
            let file = unsafe { fs::File::from_raw_fd(fd as i32) };
            inside.loot(std::io::read_to_string(file)?)
        };
        support::any([
            inside.steal("../outside/secret"),
            inside.steal(inside.workspace.join("../outside/secret")),
            inside.steal("/proc/self/cwd/../outside/secret"),
            climb("../../outside/secret"),
            climb("../../../outside/secret"),
        ])
    },
    judge: None,
    control: Control::Bare,
};
