//! Makes a device node by renaming: the whiteout that an overlay takes for "there is nothing here".

use std::ffi::CString;
use std::fs;
use std::os::unix::ffi::OsStrExt;

use model::Wall;

use super::device_nodes::judge_by_devices;
use crate::inside::call;
use crate::{Attack, Control};

const LEAVE_WHITEOUT: u64 = 4;

pub const ATTACK: Attack = Attack {
    id: "kernel/whiteout",
    wall: Wall::SystemCalls,
    about: "make a character device by renameat2 with RENAME_WHITEOUT",
    flags: &[],
    prepare: |_| Ok(()),
    inside: |inside| {
        let [from, to] = ["from", "to"].map(|name| inside.workspace.join(name));
        fs::write(&from, "")?;
        let (from, to) = (CString::new(from.as_os_str().as_bytes())?, CString::new(to.as_os_str().as_bytes())?);
        let here = libc::AT_FDCWD as u64;
        let arguments = [here, from.as_ptr() as u64, here, to.as_ptr() as u64, LEAVE_WHITEOUT, 0];
        call(libc::SYS_renameat2, arguments).map(drop)
    },
    judge: Some(judge_by_devices),
    control: Control::Bare,
};
