//! Gains a capability, by every way of raising one, or becomes the first user of its namespace.

use std::fs;

use model::Wall;

use super::support::judge_by_loot;
use crate::inside::call;
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "kernel/capabilities",
    wall: Wall::Privileges,
    about: "raise a capability by capset, ambient set, secure bits or a change of user",
    flags: &[],
    prepare: |_| Ok(()),
    inside: |inside| {
        let header = [0x2008_0522u32, 0];
        let data = [u32::MAX; 6];
        let number = |value: i32| value as u64;
        let mut tries = vec![
            (libc::SYS_capset, [header.as_ptr() as u64, data.as_ptr() as u64, 0, 0, 0, 0]),
            (libc::SYS_prctl, [number(libc::PR_SET_KEEPCAPS), 1, 0, 0, 0, 0]),
            (libc::SYS_prctl, [number(libc::PR_SET_SECUREBITS), 0, 0, 0, 0, 0]),
            (libc::SYS_setgroups, [0, 0, 0, 0, 0, 0]),
            (libc::SYS_setresgid, [0, 0, 0, 0, 0, 0]),
            (libc::SYS_setresuid, [0, 0, 0, 0, 0, 0]),
            (libc::SYS_setreuid, [0, 0, 0, 0, 0, 0]),
            (libc::SYS_setuid, [0, 0, 0, 0, 0, 0]),
            (libc::SYS_setfsuid, [0, 0, 0, 0, 0, 0]),
        ];
        for capability in 0..41 {
            // One by one: a set with one too many is refused whole.
            tries.push((libc::SYS_prctl, [number(libc::PR_CAP_AMBIENT), 2, capability, 0, 0, 0]));
        }
        let mut refused = Ok(());
        for (call_number, arguments) in tries {
            if let Err(error) = call(call_number, arguments) {
                refused = Err(error);
            }
        }
        let status = fs::read_to_string("/proc/self/status")?;
        for line in status.lines().filter(|line| line.starts_with("Cap")) {
            if line.split_whitespace().nth(1).is_none_or(|set| set.bytes().any(|digit| digit != b'0')) {
                inside.loot(format!("{line}\n"))?;
            }
        }
        for line in status.lines().filter(|line| line.starts_with("Uid") || line.starts_with("Gid")) {
            if line.split_whitespace().skip(1).any(|id| id == "0") {
                inside.loot(format!("{line}\n"))?;
            }
        }
        refused
    },
    judge: Some(judge_by_loot),
    // The bounding set of an ordinary user is full, too: bare, nobody is without.
    control: Control::Bare,
};
