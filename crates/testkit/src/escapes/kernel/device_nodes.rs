//! Makes device nodes in the workspace.

use std::ffi::CString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;

use model::Wall;

use crate::field::Run;
use crate::inside::call;
use crate::{Attack, Control, Field, Verdict};

const CHARACTERS: u64 = 0o020666;
const BLOCKS: u64 = 0o060666;

pub const ATTACK: Attack = Attack {
    id: "kernel/device_nodes",
    wall: Wall::SystemCalls,
    about: "make device nodes by mknod and mknodat, the null device among them",
    flags: &[],
    prepare: |_| Ok(()),
    inside: |inside| {
        let mut refused = Ok(());
        // Null device, and a block device of no driver's.
        for (kind, device) in [(CHARACTERS, 1 << 8 | 3), (BLOCKS, 250 << 8), (CHARACTERS | 1 << 32, 1 << 8 | 3)] {
            let name =
                |way: &str| CString::new(inside.workspace.join(format!("{way}-{kind:o}")).as_os_str().as_bytes());
            let (plain, at) = (name("mknod")?, name("mknodat")?);
            for (number, arguments) in [
                (libc::SYS_mknod, [plain.as_ptr() as u64, kind, device, 0, 0, 0]),
                (libc::SYS_mknodat, [libc::AT_FDCWD as u64, at.as_ptr() as u64, kind, device, 0, 0]),
            ] {
                if let Err(error) = call(number, arguments) {
                    refused = Err(error);
                }
            }
        }
        refused
    },
    judge: Some(judge_by_devices),
    control: Control::BareAsRoot,
};

/// Broken if the workspace has a device in it.
pub fn judge_by_devices(field: &Field, _: &Run) -> Verdict {
    let Ok(entries) = fs::read_dir(&field.workspace) else {
        return Verdict::Unclear("the workspace can't be read".to_owned());
    };
    let device = entries
        .flatten()
        .find(|entry| entry.file_type().is_ok_and(|kind| kind.is_char_device() || kind.is_block_device()));
    device.map_or(Verdict::Held, |device| Verdict::Broken(format!("{} is a device", device.path().display())))
}
