//! The clock that files get their times from: it moves in ticks, some milliseconds apart.

use rustix::thread::{NanosleepRelativeResult, nanosleep};
use rustix::time::{Timespec, clock_getres, clock_gettime};

/// Nanoseconds since 1970, as exactly as can be: never before the time of a file that was changed already.
pub fn now() -> i64 {
    nanoseconds(clock_gettime(rustix::time::ClockId::Realtime))
}

/// Returns when whatever is changed from now on gets a later time than `moment`.
pub fn await_tick(moment: i64) {
    let tick = nanoseconds(clock_getres(rustix::time::ClockId::RealtimeCoarse)).max(1);
    let started = nanoseconds(clock_gettime(rustix::time::ClockId::Monotonic));
    loop {
        let now = nanoseconds(clock_gettime(rustix::time::ClockId::RealtimeCoarse));
        let waited = nanoseconds(clock_gettime(rustix::time::ClockId::Monotonic)) - started;
        // Somebody who sets the clock back meanwhile does not keep us here.
        if now > moment || waited > tick.saturating_mul(4) {
            return;
        }
        let pause = Timespec { tv_sec: 0, tv_nsec: (tick / 16).clamp(10_000, 500_000) };
        match nanosleep(&pause) {
            NanosleepRelativeResult::Ok | NanosleepRelativeResult::Interrupted(_) => {}
            NanosleepRelativeResult::Err(_) => return,
        }
    }
}

fn nanoseconds(time: Timespec) -> i64 {
    time.tv_sec.saturating_mul(1_000_000_000).saturating_add(time.tv_nsec)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_changed_after_the_tick_is_later_and_what_was_changed_before_is_not() {
        use std::os::unix::fs::MetadataExt;
        let path = std::env::temp_dir().join(format!("belljar-tick-{}", std::process::id()));
        let time = || {
            std::fs::write(&path, "x").expect("a file");
            let stat = std::fs::metadata(&path).expect("it is there");
            stat.ctime() * 1_000_000_000 + stat.ctime_nsec()
        };
        for _ in 0..20 {
            let before = time();
            let moment = now();
            await_tick(moment);
            let after = time();
            assert!(before <= moment && moment < after, "{before} {moment} {after}");
        }
        std::fs::remove_file(&path).expect("it was there");
    }
}
