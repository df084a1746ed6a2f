//! Runs on more processors than granted: many processes at once, each asking for all processors.

use std::time::{Duration, Instant};

use model::Wall;

use super::support;
use crate::{Attack, Control, Verdict};

pub const ATTACK: Attack = Attack {
    id: "resources/more_processors",
    wall: Wall::Cpu,
    about: "use two processors with --cpus 1",
    flags: &["--cpus", "1"],
    prepare: |_| Ok(()),
    inside: |inside| {
        let started = Instant::now();
        let until = started + Duration::from_millis(1500);
        // Many: other work on this machine must not be what holds them back.
        let mut children = Vec::new();
        for _ in 0..24 {
            children.push(support::fork(|| {
                // A session each: where the kernel shares time by session, they count as many.
                // SAFETY: takes nothing.
                unsafe { libc::setsid() };
                let every = [0xffu8; 128];
                // SAFETY: the mask outlives the call. Refused, it is one processor.
                unsafe { libc::syscall(libc::SYS_sched_setaffinity, 0, every.len(), every.as_ptr()) };
                while Instant::now() < until {
                    std::hint::spin_loop();
                }
            })?);
        }
        for child in children {
            support::wait(child)?;
        }
        // SAFETY: an all-zero record is valid, and outlives the call.
        let used = unsafe {
            let mut used: libc::rusage = std::mem::zeroed();
            libc::getrusage(libc::RUSAGE_CHILDREN, &mut used);
            used.ru_utime.tv_sec as f64 + used.ru_utime.tv_usec as f64 / 1e6
        };
        inside.loot((used / started.elapsed().as_secs_f64()).to_string())
    },
    judge: Some(|field, run| {
        let number = |name: &str| run.result["usage"][name].as_f64();
        // The supervisor's count where there is one.
        let by_result = number("user_time").zip(number("wall_time")).map(|(used, wall)| used / wall);
        let claimed = String::from_utf8_lossy(&field.loot()).parse::<f64>().ok();
        match by_result.or(claimed) {
            Some(processors) if processors > 1.12 => Verdict::Broken(format!("{processors:.2} processors")),
            Some(_) => Verdict::Held,
            None => Verdict::Unclear("nobody counted".to_owned()),
        }
    }),
    control: Control::Bare,
};
