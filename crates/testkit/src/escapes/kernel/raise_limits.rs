//! Raises limits above what they were when it started.

use model::Wall;

use super::support::{in_child, judge_by_loot};
use crate::inside::call;
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "kernel/raise_limits",
    wall: Wall::OpenFiles,
    about: "raise limits beyond their hard values, by prlimit64 and setrlimit",
    flags: &[],
    prepare: |_| Ok(()),
    inside: |inside| {
        for (name, limit) in [
            ("core", 4),
            ("processes", 6),
            ("open files", 7),
            ("locked memory", 8),
            ("queues", 12),
            ("nice", 13),
            ("real time", 14),
        ] {
            let raised = || {
                let mut now = [0u64; 2];
                let read = |into: &mut [u64; 2]| {
                    call(libc::SYS_prlimit64, [0, limit, 0, into.as_mut_ptr() as u64, 0, 0]).is_ok()
                };
                if !read(&mut now) || now[1] == u64::MAX {
                    return 1;
                }
                let before = now;
                let more = [now[1] + 1; 2];
                let mut after = before;
                let tried = [
                    call(libc::SYS_prlimit64, [0, limit, more.as_ptr() as u64, 0, 0, 0]),
                    call(libc::SYS_prlimit64, [0, limit | 1 << 32, more.as_ptr() as u64, 0, 0, 0]),
                    call(libc::SYS_setrlimit, [limit, more.as_ptr() as u64, 0, 0, 0, 0]),
                    call(libc::SYS_setrlimit, [limit | 1 << 32, more.as_ptr() as u64, 0, 0, 0, 0]),
                ];
                // An answer may be a pretence; what counts is what holds afterwards.
                let higher = read(&mut after) && after[1] > before[1];
                i32::from(!higher || tried.iter().all(|answer| answer.is_err()))
            };
            if in_child(raised)? == Some(0) {
                inside.loot(format!("{name}\n"))?;
            }
        }
        Ok(())
    },
    judge: Some(judge_by_loot),
    control: Control::BareAsRoot,
};
