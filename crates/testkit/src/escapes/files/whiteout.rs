//! Makes a device node without mknod: a rename can leave one, the mark by which overlays say that a file is gone.

use std::fs;
use std::os::unix::fs::FileTypeExt;

use model::Wall;

use super::support;
use crate::inside::call;
use crate::{Attack, Control, Verdict};

pub const ATTACK: Attack = Attack {
    id: "files/whiteout",
    wall: Wall::SystemCalls,
    about: "make a device node in the workspace by a rename that leaves a whiteout",
    flags: &[],
    prepare: |_| Ok(()),
    inside: |inside| {
        let (from, to) = (inside.workspace.join("from"), inside.workspace.join("to"));
        fs::write(&from, "")?;
        let (from, to) = (support::c_text(from), support::c_text(to));
        let here = libc::AT_FDCWD as u64;
        let whiteout = u64::from(libc::RENAME_WHITEOUT);
        call(libc::SYS_renameat2, [here, from.as_ptr() as u64, here, to.as_ptr() as u64, whiteout, 0]).map(drop)
    },
    judge: Some(|field, _| match fs::symlink_metadata(field.workspace.join("from")) {
        Ok(stat) if stat.file_type().is_char_device() => {
            Verdict::Broken("there is a device node on the host".to_owned())
        }
        _ => Verdict::Held,
    }),
    control: Control::Bare,
};
