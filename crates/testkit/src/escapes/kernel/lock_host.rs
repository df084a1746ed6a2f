//! Locks a file that is shown read-only, so that a program of the host waits for it for ever; or passes word to
//! another sandbox by locking or not.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use model::Wall;

use super::support::judge_by_ear;
use crate::inside::call;
use crate::{Attack, Control, Who};

const EXCLUSIVE: u64 = 2;
const AT_ONCE: u64 = 4;

pub const ATTACK: Attack = Attack {
    id: "kernel/lock_host",
    wall: Wall::Files,
    about: "hold an exclusive lock on a file that is shown read-only",
    flags: &[],
    prepare: |field| {
        let (ready, heard) = (field.workspace.join("ready"), field.outside.join("heard"));
        // Of the host, shown in every sandbox, and locked by nobody; for each user another, as trials run side by side.
        let shown = match field.who {
            Who::Root => "/usr/bin/factor",
            Who::Ordinary => "/usr/bin/tsort",
        };
        field.tell("shown", shown);
        let file = File::open(shown)?;
        std::thread::spawn(move || {
            let until = Instant::now() + Duration::from_secs(20);
            while Instant::now() < until && !ready.exists() {
                std::thread::sleep(Duration::from_millis(5));
            }
            let locked = call(libc::SYS_flock, [file.as_raw_fd() as u64, EXCLUSIVE | AT_ONCE, 0, 0, 0, 0]);
            if locked.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock) {
                return std::fs::write(&heard, "somebody holds the lock");
            }
            Ok(())
        });
        Ok(())
    },
    inside: |inside| {
        let file = File::open(inside.hint("shown")?)?;
        call(libc::SYS_flock, [file.as_raw_fd() as u64, EXCLUSIVE | AT_ONCE, 0, 0, 0, 0])?;
        std::fs::write(inside.workspace.join("ready"), "")?;
        std::thread::sleep(Duration::from_millis(500));
        Ok(())
    },
    judge: Some(judge_by_ear),
    control: Control::Bare,
};
