//! Takes part in the host's paging, quotas and accounting.

use model::Wall;

use super::support::{BAD, NOWHERE, judge_by_loot, reach};
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "kernel/host_storage",
    wall: Wall::SystemCalls,
    about: "reach swapon(2), swapoff(2), acct(2) and quotactl(2)",
    flags: &[],
    prepare: |_| Ok(()),
    inside: |inside| {
        reach(
            inside,
            &[
                ("swapon", libc::SYS_swapon, [NOWHERE, 0, 0, 0, 0, 0]),
                ("swapoff", libc::SYS_swapoff, [NOWHERE, 0, 0, 0, 0, 0]),
                ("acct", libc::SYS_acct, [NOWHERE, 0, 0, 0, 0, 0]),
                ("quotactl", libc::SYS_quotactl, [0x8000_0400, NOWHERE, 0, NOWHERE, 0, 0]),
                ("quotactl_fd", 443, [BAD, 0x8000_0700, 0, NOWHERE, 0, 0]),
            ],
        )
    },
    judge: Some(judge_by_loot),
    control: Control::Bare,
};
