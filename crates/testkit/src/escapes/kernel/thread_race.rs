//! Many threads, some just being born, call what is refused, while others put filters of their own over all.

use std::sync::atomic::{AtomicU64, Ordering};

use model::Wall;

use super::own_filter::{allow_all, install};
use super::support::judge_by_loot;
use crate::inside::call;
use crate::{Attack, Control};

const SYNCHRONISE: u64 = 1;

pub const ATTACK: Attack = Attack {
    id: "kernel/thread_race",
    wall: Wall::SystemCalls,
    about: "make a refused call from many threads while filters are being laid over all of them",
    flags: &[],
    prepare: |_| Ok(()),
    inside: |inside| {
        let gained = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for _ in 0..60 {
                scope.spawn(|| {
                    for _ in 0..10 {
                        if call(libc::SYS_userfaultfd, [1, 0, 0, 0, 0, 0]).is_ok() {
                            gained.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                });
                // It may fail when a thread is between two states: that is the race.
                if install(&allow_all(), SYNCHRONISE).is_err() {
                    std::thread::yield_now();
                }
            }
        });
        match gained.into_inner() {
            0 => Ok(()),
            count => inside.loot(format!("{count} calls passed")),
        }
    },
    judge: Some(judge_by_loot),
    control: Control::Bare,
};
