//! Links a file from outside into the workspace, by its name and by its descriptor.

use std::fs;
use std::os::fd::AsRawFd;

use model::Wall;

use super::support;
use crate::inside::call;
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "files/hard_link_in",
    wall: Wall::Files,
    about: "make a second name inside the workspace for a file outside of it",
    flags: &[],
    prepare: |_| Ok(()),
    inside: |inside| {
        let copy = inside.workspace.join("second-name");
        let by_name = || fs::hard_link(inside.secret_file(), &copy);
        let by_descriptor = || {
            let path = support::c_text(inside.secret_file());
            let here = libc::AT_FDCWD as u64;
            let fd = call(libc::SYS_openat, [here, path.as_ptr() as u64, libc::O_PATH as u64, 0, 0, 0])?;
            let (name, to) = (support::c_text(format!("/proc/self/fd/{fd}")), support::c_text(&copy));
            let follow = libc::AT_SYMLINK_FOLLOW as u64;
            call(libc::SYS_linkat, [here, name.as_ptr() as u64, here, to.as_ptr() as u64, follow, 0]).map(drop)
        };
        let by_folder = || {
            let folder = fs::File::open(&inside.outside)?;
            let (name, to) = (c"secret", support::c_text(&copy));
            let (from, here) = (folder.as_raw_fd() as u64, libc::AT_FDCWD as u64);
            call(libc::SYS_linkat, [from, name.as_ptr() as u64, here, to.as_ptr() as u64, 0, 0]).map(drop)
        };
        support::any([by_name(), by_descriptor(), by_folder()])?;
        inside.steal(copy)
    },
    judge: None,
    control: Control::Bare,
};
