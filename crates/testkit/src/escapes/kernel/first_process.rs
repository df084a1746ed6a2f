//! Looks into the first process that it sees, which put the walls up, and tries to take it over.

use std::fs;
use std::io;

use model::Wall;

use super::support::{is_among_the_hosts, judge_by_loot, mark_the_host};
use crate::inside::call;
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "kernel/first_process",
    wall: Wall::Inheritance,
    about: "read memory, environment and descriptors of the sandbox's own first process, or trace it",
    flags: &[],
    prepare: mark_the_host,
    inside: |inside| {
        for name in ["environ", "maps", "auxv", "stack", "syscall", "cmdline"] {
            if fs::read(format!("/proc/1/{name}")).is_ok_and(|text| !text.is_empty()) {
                inside.loot(format!("read {name}\n"))?;
            }
        }
        for name in ["fd", "map_files", "task", "fdinfo"] {
            if fs::read_dir(format!("/proc/1/{name}")).is_ok() {
                inside.loot(format!("listed {name}\n"))?;
            }
        }
        for name in ["root", "cwd", "exe", "ns/user", "ns/mnt"] {
            if fs::read_link(format!("/proc/1/{name}")).is_ok() {
                inside.loot(format!("followed {name}\n"))?;
            }
        }
        if fs::File::open("/proc/1/mem").is_ok() {
            inside.loot("opened mem\n")?;
        }
        for descriptor in 0..20 {
            let taken = call(libc::SYS_pidfd_open, [1, 0, 0, 0, 0, 0])
                .and_then(|process| call(libc::SYS_pidfd_getfd, [process, descriptor, 0, 0, 0, 0]));
            if taken.is_ok() {
                inside.loot(format!("took descriptor {descriptor}\n"))?;
            }
        }
        // Nobody traces the host's first process for a test.
        // SAFETY: takes integers.
        if !is_among_the_hosts(inside) && unsafe { libc::ptrace(libc::PTRACE_SEIZE, 1, 0, 0) } == 0 {
            inside.loot("traces it\n")?;
        }
        Err(io::ErrorKind::PermissionDenied.into())
    },
    judge: Some(judge_by_loot),
    control: Control::BareAsRoot,
};
