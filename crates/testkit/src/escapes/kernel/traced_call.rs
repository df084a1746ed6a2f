//! A tracer changes the number of a harmless call after it was made and before it is carried out.

use std::io;

use model::Wall;

use super::support::judge_by_loot;
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "kernel/traced_call",
    wall: Wall::SystemCalls,
    about: "trace a child and turn its getpid into a refused call between the filter and the kernel",
    flags: &[],
    prepare: |_| Ok(()),
    inside: |inside| {
        for (name, number) in [("userfaultfd", libc::SYS_userfaultfd), ("memfd_secret", 447)] {
            let result = swapped(number as u64)?;
            if result >= 0 {
                inside.loot(format!("{name} gave {result}\n"))?;
            }
        }
        Ok(())
    },
    judge: Some(judge_by_loot),
    control: Control::Bare,
};

/// What the kernel answers when the child's getpid has become `number`, with 0 or 1 as its argument.
fn swapped(number: u64) -> io::Result<i64> {
    // SAFETY: the attacker has one thread; all pointers are to locals that outlive their calls, and the child is
    // traced, waited for and killed by us alone.
    unsafe {
        let child = libc::fork();
        if child == 0 {
            libc::alarm(2);
            libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0);
            libc::raise(libc::SIGSTOP);
            libc::syscall(libc::SYS_getpid, 0);
            libc::_exit(0);
        }
        let mut status = 0;
        libc::waitpid(child, &mut status, 0);
        let mut registers: libc::user_regs_struct = std::mem::zeroed();
        let mut answer = -i64::from(libc::EPERM);
        // Stops come in pairs, in and out of a call; the one that counts is getpid's.
        for _ in 0..40 {
            libc::ptrace(libc::PTRACE_SYSCALL, child, 0, 0);
            libc::waitpid(child, &mut status, 0);
            if !libc::WIFSTOPPED(status) {
                break;
            }
            libc::ptrace(libc::PTRACE_GETREGS, child, 0, &raw mut registers);
            if registers.orig_rax == libc::SYS_getpid as u64 {
                registers.orig_rax = number;
                registers.rdi = u64::from(number == libc::SYS_userfaultfd as u64);
                libc::ptrace(libc::PTRACE_SETREGS, child, 0, &raw const registers);
                libc::ptrace(libc::PTRACE_SYSCALL, child, 0, 0);
                libc::waitpid(child, &mut status, 0);
                libc::ptrace(libc::PTRACE_GETREGS, child, 0, &raw mut registers);
                answer = registers.rax as i64;
                break;
            }
        }
        libc::kill(child, libc::SIGKILL);
        libc::waitpid(child, &mut status, 0);
        Ok(answer)
    }
}
