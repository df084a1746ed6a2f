//! Makes things beside the workspace: files, folders, links, sockets and pipes.

use std::fs;
use std::os::unix::net::UnixListener;

use model::Wall;

use super::support;
use crate::inside::call;
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "files/create_outside",
    wall: Wall::Files,
    about: "make a file, folder, link, socket or pipe outside the grant",
    flags: &[],
    prepare: |_| Ok(()),
    inside: |inside| {
        let at = |name: &str| inside.outside.join(name);
        let pipe = support::c_text(at("pipe"));
        let here = libc::AT_FDCWD as u64;
        let mode = u64::from(libc::S_IFIFO | 0o600);
        support::any([
            fs::write(at("file"), "made"),
            fs::create_dir(at("folder")),
            std::os::unix::fs::symlink("/", at("link")),
            fs::hard_link(inside.workspace.join("brief.json"), at("hard-link")),
            UnixListener::bind(at("socket")).map(drop),
            call(libc::SYS_mknodat, [here, pipe.as_ptr() as u64, mode, 0, 0, 0]).map(drop),
        ])
    },
    judge: Some(support::nothing_appeared_outside),
    control: Control::Bare,
};
