//! A System V segment lives without any process, descriptor or name.

use std::io;

use model::Wall;

use super::support::{self, TOO_MUCH};
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "resources/memory_segment",
    wall: Wall::Memory,
    about: "fill a 200 MiB System V segment with --memory 64M",
    flags: &["--memory", "64M"],
    prepare: |_| Ok(()),
    inside: |inside| {
        support::at_the_brink(inside)?;
        // SAFETY: a fresh segment, attached where the kernel likes, marked to go with its last user.
        unsafe {
            let segment = libc::shmget(libc::IPC_PRIVATE, TOO_MUCH, 0o600);
            if segment < 0 {
                return Err(io::Error::last_os_error());
            }
            let start = libc::shmat(segment, std::ptr::null(), 0);
            libc::shmctl(segment, libc::IPC_RMID, std::ptr::null_mut());
            if start as isize == -1 {
                return Err(io::Error::last_os_error());
            }
            support::touch(start.cast(), TOO_MUCH);
        }
        support::pause(support::UNTIL_SEEN);
        inside.loot("200 MiB in a segment")
    },
    judge: Some(support::stopped_for_memory),
    control: Control::Bare,
};
