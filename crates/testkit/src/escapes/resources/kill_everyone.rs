//! `kill -9 -1`: everyone whom the attacker may signal.

use std::fs;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use model::Wall;

use super::support;
use crate::{Attack, Control, Verdict};

pub const ATTACK: Attack = Attack {
    id: "resources/kill_everyone",
    wall: Wall::Processes,
    about: "end every process it may signal, the supervisor among them",
    flags: &[],
    prepare: |field| {
        let id = field.who.user_id();
        let bait = Command::new("/bin/sleep").arg("60").uid(id).gid(id).stdin(Stdio::null()).spawn()?;
        field.tell("bait", bait.id());
        field.keep(Bait(bait));
        Ok(())
    },
    inside: |inside| {
        support::at_the_brink(inside)?;
        let bait: i32 = inside.hint("bait")?.parse().map_err(std::io::Error::other)?;
        // Where the bait can be seen there is no wall, and everyone would be everyone on this machine.
        let seen = fs::read(format!("/proc/{bait}/comm")).is_ok_and(|name| name.starts_with(b"sleep"));
        let target = if seen { bait } else { -1 };
        let killer = support::fork(|| {
            // SAFETY: takes integers.
            unsafe {
                libc::kill(bait, libc::SIGKILL);
                if !seen {
                    libc::kill(1, libc::SIGSTOP);
                }
                libc::kill(target, libc::SIGKILL);
            }
        })?;
        support::wait(killer).map(drop)
    },
    judge: Some(|field, run| {
        let bait = field.hint("bait").unwrap_or_default();
        let alive = || {
            let state = fs::read_to_string(format!("/proc/{bait}/stat")).unwrap_or_default();
            state.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with(['Z', 'X']))
        };
        // Death takes a moment after the signal.
        let deadline = Instant::now() + Duration::from_millis(500);
        while alive() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        let alive = alive();
        let reported = run.result.is_null() || run.result["outcome"] == "ran";
        match (alive, reported) {
            (false, _) => Verdict::Broken("the bait is dead".to_owned()),
            (true, false) => Verdict::Broken(format!("the supervisor did not report: {}", run.result)),
            (true, true) => Verdict::Held,
        }
    }),
    control: Control::Bare,
};

struct Bait(Child);

impl Drop for Bait {
    fn drop(&mut self) {
        if self.0.kill().and_then(|()| self.0.wait()).is_err() {
            eprintln!("the bait {} is left behind", self.0.id());
        }
    }
}
