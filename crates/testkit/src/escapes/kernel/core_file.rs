//! Crashes after asking for core files: they hold memory, and the host may start a helper for each.

use std::fs;

use model::Wall;

use super::support::in_child;
use crate::inside::call;
use crate::{Attack, Control, Verdict};

pub const ATTACK: Attack = Attack {
    id: "kernel/core_file",
    wall: Wall::SystemCalls,
    about: "leave a core file after raising its limit by prlimit64 and setrlimit",
    flags: &[],
    prepare: |_| Ok(()),
    inside: |inside| {
        std::env::set_current_dir(&inside.workspace)?;
        in_child(|| {
            const CORE: u64 = 4;
            let mut all = [0u64; 2];
            let asked = call(libc::SYS_prlimit64, [0, CORE, 0, all.as_mut_ptr() as u64, 0, 0]);
            all[0] = all[1];
            let raised = [
                call(libc::SYS_prlimit64, [0, CORE, all.as_ptr() as u64, 0, 0, 0]),
                call(libc::SYS_setrlimit, [CORE, all.as_ptr() as u64, 0, 0, 0, 0]),
                call(libc::SYS_prctl, [libc::PR_SET_DUMPABLE as u64, 1, 0, 0, 0, 0]),
            ];
            // SAFETY: takes integers. Ends this process.
            unsafe { libc::kill(libc::getpid(), libc::SIGQUIT) };
            i32::from(asked.is_err() || raised.iter().any(|answer| answer.is_err()))
        })
        .map(drop)
    },
    judge: Some(|field, _| {
        let Ok(entries) = fs::read_dir(&field.workspace) else {
            return Verdict::Unclear("the workspace can't be read".to_owned());
        };
        let core = entries.flatten().find(|entry| entry.file_name().as_encoded_bytes().starts_with(b"core"));
        core.map_or(Verdict::Held, |core| Verdict::Broken(format!("{} was left", core.path().display())))
    }),
    control: Control::Bare,
};
