//! Raises its own limits, hard and soft.

use crate::inside::call;
use model::Wall;

use super::support;
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "resources/raise_limits",
    wall: Wall::OpenFiles,
    about: "raise limits on files, processes and file size with setrlimit and prlimit",
    flags: &["--files", "64", "--pids", "50", "--disk", "16M"],
    prepare: |_| Ok(()),
    inside: |inside| {
        let most = [1_000_000u64, 1_000_000];
        let mut raised = Vec::new();
        for limit in [libc::RLIMIT_NOFILE, libc::RLIMIT_NPROC, libc::RLIMIT_FSIZE, libc::RLIMIT_MEMLOCK] {
            let limit = u64::from(limit);
            let by_own = call(libc::SYS_setrlimit, [limit, most.as_ptr() as u64, 0, 0, 0, 0]);
            let by_number = call(libc::SYS_prlimit64, [0, limit, most.as_ptr() as u64, 0, 0, 0]);
            if by_own.is_ok() || by_number.is_ok() {
                raised.push(limit);
            }
        }
        // Lower than before is no gain: the descriptor limit is the one that was below.
        match raised.contains(&u64::from(libc::RLIMIT_NOFILE)) {
            true => inside.loot(format!("raised {raised:?}")),
            false => Ok(()),
        }
    },
    judge: Some(support::nothing_was_gained),
    control: Control::BareAsRoot,
};
