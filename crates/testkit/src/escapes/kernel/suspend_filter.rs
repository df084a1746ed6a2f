//! Has the kernel suspend a child's filter, as checkpointing tools do: a tracer's option.

use std::io;

use model::Wall;

use super::own_filter::{allow_all, install};
use super::support::judge_by_loot;
use crate::inside::call;
use crate::{Attack, Control};

const SUSPEND: u64 = 1 << 21;

pub const ATTACK: Attack = Attack {
    id: "kernel/suspend_filter",
    wall: Wall::SystemCalls,
    about: "trace a child with PTRACE_O_SUSPEND_SECCOMP, or ask the kernel to show its filter",
    flags: &[],
    prepare: |_| Ok(()),
    inside: |inside| {
        // SAFETY: the attacker has one thread; the child is traced, waited for and killed by us alone.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // Bare, there would be no filter to suspend.
            let laid = install(&allow_all(), 0);
            // SAFETY: take integers.
            unsafe {
                libc::alarm(2);
                libc::pause();
                libc::_exit(i32::from(laid.is_err()));
            }
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
        let mut gained = Ok(());
        let seized = call(libc::SYS_ptrace, [libc::PTRACE_SEIZE as u64, child as u64, 0, SUSPEND, 0, 0]);
        if seized.is_ok() {
            gained = inside.loot("the filter is suspended\n");
        } else if call(libc::SYS_ptrace, [libc::PTRACE_SEIZE as u64, child as u64, 0, 0, 0, 0]).is_ok() {
            // SAFETY: take integers; `status` outlives the call.
            unsafe {
                let mut status = 0;
                libc::ptrace(libc::PTRACE_INTERRUPT, child, 0, 0);
                libc::waitpid(child, &mut status, libc::__WALL);
            }
            const SET_OPTIONS: u64 = 0x4200;
            const GET_FILTER: u64 = 0x420c;
            if call(libc::SYS_ptrace, [SET_OPTIONS, child as u64, 0, SUSPEND, 0, 0]).is_ok() {
                gained = inside.loot("the filter is suspended, by a later option\n");
            }
            if call(libc::SYS_ptrace, [GET_FILTER, child as u64, 0, 0, 0, 0]).is_ok() {
                gained = gained.and(inside.loot("the filter was read\n"));
            }
        }
        // SAFETY: takes integers; the child is ours.
        unsafe {
            let mut status = 0;
            libc::kill(child, libc::SIGKILL);
            libc::waitpid(child, &mut status, libc::__WALL);
        }
        gained.and(seized.map(drop).map_err(|error| io::Error::new(error.kind(), "the option is refused")))
    },
    judge: Some(judge_by_loot),
    control: Control::BareAsRoot,
};
