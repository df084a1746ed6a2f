//! Crashes, for the core file or for the host's helper that the kernel would start for it.

use std::fs;

use model::Wall;

use super::support;
use crate::inside::call;
use crate::{Attack, Control, Verdict};

pub const ATTACK: Attack = Attack {
    id: "resources/core_file",
    wall: Wall::CleanUp,
    about: "leave a core file behind by crashing with the limit raised",
    flags: &[],
    prepare: |_| Ok(()),
    inside: |inside| {
        std::env::set_current_dir(&inside.workspace)?;
        let child = support::fork(|| {
            let most = [u64::MAX, u64::MAX];
            let core = libc::RLIMIT_CORE as u64;
            if call(libc::SYS_setrlimit, [core, most.as_ptr() as u64, 0, 0, 0, 0]).is_err() {
                // Then with what is allowed.
            }
            // SAFETY: the end of this process.
            unsafe { libc::abort() };
        })?;
        match libc::WCOREDUMP(support::wait(child)?) {
            true => inside.loot("a core was dumped"),
            false => Ok(()),
        }
    },
    judge: Some(|field, run| {
        let names = fs::read_dir(&field.workspace).into_iter().flatten().flatten();
        match names.map(|entry| entry.file_name()).find(|name| name.as_encoded_bytes().starts_with(b"core")) {
            Some(name) => Verdict::Broken(format!("there is a file {name:?}")),
            None => support::nothing_was_gained(field, run),
        }
    }),
    control: Control::Bare,
};
