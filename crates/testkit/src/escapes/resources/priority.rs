//! Takes precedence over everybody else on the machine.

use model::Wall;

use super::support;
use crate::inside::call;
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "resources/priority",
    wall: Wall::Privileges,
    about: "run before others: nice -20, real-time scheduling, real-time input and output, locked memory",
    flags: &[],
    prepare: |_| Ok(()),
    inside: |inside| {
        let priority = [1u32];
        let locked = vec![1u8; 16 << 20];
        let attempts = [
            ("nice", call(libc::SYS_setpriority, [0, 0, -20i64 as u64, 0, 0, 0])),
            ("fifo", call(libc::SYS_sched_setscheduler, [0, 1, priority.as_ptr() as u64, 0, 0, 0])),
            ("round robin", call(libc::SYS_sched_setscheduler, [0, 2, priority.as_ptr() as u64, 0, 0, 0])),
            ("io", call(libc::SYS_ioprio_set, [1, 0, 1 << 13, 0, 0, 0])),
            ("locked", call(libc::SYS_mlock, [locked.as_ptr() as u64, locked.len() as u64, 0, 0, 0, 0])),
        ];
        let gained: Vec<&str> = attempts.iter().filter(|(_, result)| result.is_ok()).map(|(name, _)| *name).collect();
        match gained.is_empty() {
            true => Ok(()),
            false => inside.loot(gained.join(", ")),
        }
    },
    judge: Some(support::nothing_was_gained),
    control: Control::BareAsRoot,
};
