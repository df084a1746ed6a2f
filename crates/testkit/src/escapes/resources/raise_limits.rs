//! Raises its own limits, hard and soft, and then uses what it gained.

use std::fs::File;
use std::time::Duration;

use model::Wall;

use super::support;
use crate::inside::call;
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "resources/raise_limits",
    wall: Wall::OpenFiles,
    about: "raise --files 64 and --pids 50 with setrlimit and prlimit, then have 1,000 files or 300 processes",
    flags: &["--files", "64", "--pids", "50"],
    prepare: |_| Ok(()),
    inside: |inside| {
        for limit in [libc::RLIMIT_NOFILE, libc::RLIMIT_NPROC] {
            for most in [[1u64 << 20; 2], [4_000; 2], [4_000, 1 << 20]] {
                let limit = limit as u64;
                let attempts = [
                    call(libc::SYS_setrlimit, [limit, most.as_ptr() as u64, 0, 0, 0, 0]),
                    call(libc::SYS_prlimit64, [0, limit, most.as_ptr() as u64, 0, 0, 0]),
                ];
                if attempts.iter().any(Result::is_ok) {
                    break;
                }
            }
        }
        let files: Vec<File> = (0..1000).map_while(|_| File::open("/dev/null").ok()).collect();
        if files.len() == 1000 {
            inside.loot("1,000 open files")?;
        }
        drop(files);
        let children = (0..300).map_while(|_| support::fork(|| support::pause(Duration::from_secs(2))).ok());
        if children.count() == 300 {
            inside.loot("300 processes")?;
        }
        Ok(())
    },
    judge: Some(support::nothing_was_gained),
    control: Control::Bare,
};
