//! Watches a folder that is shown read-only, and sees what the host's people run and read.

use std::ffi::CString;
use std::process::Command;
use std::time::{Duration, Instant};

use model::Wall;

use super::support::judge_by_loot;
use crate::inside::call;
use crate::{Attack, Control, Who};

const OPENED: u64 = 0x20;
const NON_BLOCKING: u64 = 0o4000;

pub const ATTACK: Attack = Attack {
    id: "kernel/watch_host",
    wall: Wall::Processes,
    about: "see by inotify which programs the host runs from a folder that is shown read-only",
    flags: &[],
    prepare: |field| {
        let ready = field.workspace.join("ready");
        // What no test or shell runs by chance; for each user another, as trials run side by side.
        let program = match field.who {
            Who::Root => "factor",
            Who::Ordinary => "tsort",
        };
        field.tell("program", program);
        std::thread::spawn(move || {
            let until = Instant::now() + Duration::from_secs(20);
            while Instant::now() < until && !ready.exists() {
                std::thread::sleep(Duration::from_millis(5));
            }
            Command::new(format!("/usr/bin/{program}")).arg("--version").output().map(drop)
        });
        Ok(())
    },
    inside: |inside| {
        let watch = call(libc::SYS_inotify_init1, [NON_BLOCKING, 0, 0, 0, 0, 0])?;
        let folder = CString::new("/usr/bin")?;
        call(libc::SYS_inotify_add_watch, [watch, folder.as_ptr() as u64, OPENED, 0, 0, 0])?;
        std::fs::write(inside.workspace.join("ready"), "")?;
        let program = inside.hint("program")?;
        let until = Instant::now() + Duration::from_millis(900);
        let mut events = [0u8; 4096];
        while Instant::now() < until {
            if let Ok(count) = call(libc::SYS_read, [watch, events.as_mut_ptr() as u64, 4096, 0, 0, 0]) {
                let seen = &events[..count as usize];
                if seen.windows(program.len()).any(|window| window == program.as_bytes()) {
                    return inside.loot(format!("the host ran {program}"));
                }
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    },
    judge: Some(judge_by_loot),
    control: Control::Bare,
};
