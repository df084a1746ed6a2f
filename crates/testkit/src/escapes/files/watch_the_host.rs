//! Watches the system's programs: who watches /usr/bin learns what the host runs, and when.

use std::fs;
use std::os::fd::FromRawFd;
use std::process::Command;
use std::time::{Duration, Instant};

use model::Wall;

use super::support;
use crate::inside::call;
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "files/watch_the_host",
    wall: Wall::Processes,
    about: "learn from watched system folders which programs the host runs",
    flags: &[],
    prepare: |field| {
        support::once_ready(field, || Command::new("/usr/bin/factor").arg("6").output().map(drop));
        Ok(())
    },
    inside: |inside| {
        let watcher = call(libc::SYS_inotify_init1, [libc::IN_NONBLOCK as u64, 0, 0, 0, 0, 0])?;
        // SAFETY: the kernel just made it for us.
        let mut watcher_file = unsafe { fs::File::from_raw_fd(watcher as i32) };
        let mask = u64::from(libc::IN_OPEN);
        call(libc::SYS_inotify_add_watch, [watcher, c"/usr/bin".as_ptr() as u64, mask, 0, 0, 0])?;
        support::let_the_host_act(inside)?;
        let until = Instant::now() + Duration::from_millis(300);
        let mut seen = Vec::new();
        while Instant::now() < until {
            let mut events = [0u8; 4096];
            match std::io::Read::read(&mut watcher_file, &mut events) {
                Ok(read) => seen.extend_from_slice(&events[..read]),
                Err(_) => std::thread::sleep(Duration::from_millis(5)),
            }
        }
        match seen.windows(6).any(|window| window == b"factor") {
            true => inside.loot("the host ran `factor`"),
            false => Err(std::io::ErrorKind::NotFound.into()),
        }
    },
    judge: Some(support::nothing_gained),
    control: Control::Bare,
};
