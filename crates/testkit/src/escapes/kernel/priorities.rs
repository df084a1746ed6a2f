//! Runs before all others: real-time scheduling, a higher priority, a better place in the disk's queue, and memory
//! that is never paged out.

use model::Wall;

use super::support::{in_child, judge_by_loot};
use crate::inside::call;
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "kernel/priorities",
    wall: Wall::Privileges,
    about: "take real-time scheduling, a negative nice value, real-time disk priority or much locked memory",
    flags: &[],
    prepare: |_| Ok(()),
    inside: |inside| {
        let priority = 1u32;
        let at = &raw const priority as u64;
        // struct sched_attr: size and policy, flags, nice, priority, then run time, deadline and period.
        let deadline = [48u64 | 6 << 32, 0, 0, 10_000_000, 30_000_000, 30_000_000];
        let deadline_at = deadline.as_ptr() as u64;
        for (name, number, arguments) in [
            ("first in, first out", libc::SYS_sched_setscheduler, [0, 1, at, 0, 0, 0]),
            ("round robin", libc::SYS_sched_setscheduler, [0, 2, at, 0, 0, 0]),
            ("deadline", libc::SYS_sched_setattr, [0, deadline_at, 0, 0, 0, 0]),
            ("nice", libc::SYS_setpriority, [0, 0, -20i64 as u64, 0, 0, 0]),
            ("disk", libc::SYS_ioprio_set, [1, 0, 1 << 13, 0, 0, 0]),
        ] {
            if in_child(|| i32::from(call(number, arguments).is_err()))? == Some(0) {
                inside.loot(format!("{name}\n"))?;
            }
        }
        let lock = || {
            const SIZE: u64 = 32 << 20;
            let protection = (libc::PROT_READ | libc::PROT_WRITE) as u64;
            let flags = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as u64;
            let locked = call(libc::SYS_mmap, [0, SIZE, protection, flags, u64::MAX, 0])
                .and_then(|place| call(libc::SYS_mlock, [place, SIZE, 0, 0, 0, 0]));
            i32::from(locked.is_err())
        };
        if in_child(lock)? == Some(0) {
            inside.loot("locked memory\n")?;
        }
        Ok(())
    },
    judge: Some(judge_by_loot),
    control: Control::BareAsRoot,
};
