//! Uncovers a hidden file by the mount calls: takes the cover off, or takes a copy of the tree without it.

use model::Wall;

use super::support;
use crate::inside::call;
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "files/hidden_by_mounts",
    wall: Wall::SystemCalls,
    about: "take the cover off a hidden file with mount calls, also from namespaces of one's own",
    flags: &["--hide", "hidden"],
    prepare: |field| support::put_in_workspace(field, "hidden", &field.secret).map(drop),
    inside: |inside| {
        let hidden = support::c_text(inside.workspace.join("hidden"));
        let workspace = support::c_text(&inside.workspace);
        let here = libc::AT_FDCWD as u64;
        let detach = libc::MNT_DETACH as u64;
        let uncover = || {
            call(libc::SYS_umount2, [hidden.as_ptr() as u64, detach, 0, 0, 0, 0])?;
            inside.steal(inside.workspace.join("hidden"))
        };
        let copy = || {
            // One mount without those on it: what lies below a cover is bare in the copy.
            let tree = call(libc::SYS_open_tree, [here, workspace.as_ptr() as u64, 1, 0, 0, 0])?;
            let file = call(libc::SYS_openat, [tree, c"hidden".as_ptr() as u64, 0, 0, 0, 0])?;
            inside.steal(format!("/proc/self/fd/{file}"))
        };
        let namespaces = || {
            let flags = (libc::CLONE_NEWUSER | libc::CLONE_NEWNS) as u64;
            call(libc::SYS_unshare, [flags, 0, 0, 0, 0, 0])?;
            support::any([uncover(), copy()])
        };
        support::any([inside.steal(inside.workspace.join("hidden")), uncover(), copy(), namespaces()])
    },
    judge: None,
    control: Control::Bare,
};
