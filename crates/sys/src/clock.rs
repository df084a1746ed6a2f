//! The clock that files get their times from: it moves in ticks, some milliseconds apart.

use rustix::thread::{NanosleepRelativeResult, nanosleep};
use rustix::time::{Timespec, clock_getres, clock_gettime};

/// Where the kernel tells finely, one of so many does; where it does not, they cost little.
const TRIES: u32 = 3;

/// Nanoseconds since 1970, as exactly as can be: never before the time of a file that was changed already.
pub fn now() -> i64 {
    nanoseconds(clock_gettime(rustix::time::ClockId::Realtime))
}

/// A moment that everything changed so far is before, and nothing changed from now on: by changing `file`, which must
/// be ours. Nothing where the kernel or the filesystem can't tell that finely.
///
/// Files get their times from a clock whose hand stands still for milliseconds. Since Linux 6.13 what somebody has looked
/// at since its last change gets a finer time; and having given that, the kernel gives no earlier one to anything.
pub fn moment(file: std::os::fd::BorrowedFd<'_>) -> std::io::Result<Option<i64>> {
    let change = |stat: &rustix::fs::Stat| {
        rustix::fs::fchmod(file, rustix::fs::Mode::from_raw_mode(stat.st_mode & 0o7777))?;
        rustix::fs::fstat(file)
    };
    let mut stat = rustix::fs::fstat(file)?;
    // The hand may move on between our change and our look at it: then the change looks like one of those that are not told
    // finely. To wait for its next move would take longer than to try again.
    for _ in 0..TRIES {
        // Twice: the first may get the time of somebody's change before it, the second is later than that.
        stat = change(&change(&stat)?)?;
        let changed = stat.st_ctime.saturating_mul(1_000_000_000).saturating_add(stat.st_ctime_nsec as i64);
        let is_fine = changed > nanoseconds(clock_gettime(rustix::time::ClockId::RealtimeCoarse));
        // A server's clock may go ahead of ours.
        if is_fine && changed <= now() {
            return Ok(Some(changed));
        }
    }
    Ok(None)
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
    fn a_moment_lies_between_what_was_changed_before_it_and_after_it() {
        use std::os::fd::AsFd;
        use std::os::unix::fs::MetadataExt;
        let path = std::env::temp_dir().join(format!("belljar-moment-{}", std::process::id()));
        let other = path.with_extension("other");
        let time = || {
            std::fs::write(&other, "x").expect("a file");
            let stat = std::fs::metadata(&other).expect("it is there");
            stat.ctime() * 1_000_000_000 + stat.ctime_nsec()
        };
        let file = std::fs::File::create(&path).expect("a file");
        for _ in 0..100 {
            let before = time();
            if let Some(moment) = moment(file.as_fd()).expect("it is ours") {
                let after = time();
                assert!(before < moment && moment <= after, "{before} {moment} {after}");
            }
        }
        std::fs::remove_file(&path).expect("it was there");
        std::fs::remove_file(&other).expect("it was there");
    }

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
