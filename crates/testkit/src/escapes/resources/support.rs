//! What attacks on resources share: marks by which the host finds their processes, ways to use things up, and the
//! judging of who was stopped by what.

use std::ffi::CString;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

use crate::Verdict;
use crate::field::{Field, Run};
use crate::inside::{Inside, TRIED, call};

pub const MIB: usize = 1 << 20;
/// Three times what the memory attacks are given.
pub const TOO_MUCH: usize = 200 * MIB;
/// Longer than the supervisor ever waits between two looks.
pub const UNTIL_SEEN: Duration = Duration::from_millis(700);

/// Proof that the attack came this far. For those that the sandbox ends in the middle: what follows is the attack.
pub fn at_the_brink(inside: &Inside) -> io::Result<()> {
    fs::write(inside.workspace.join(TRIED), "begun, and not heard of again")
}

/// Names this process, and those it forks, so that the host finds them: the field's own random name.
pub fn mark(inside: &Inside) -> io::Result<()> {
    let name = inside.workspace.parent().and_then(|root| root.file_name()).unwrap_or_default();
    let name = CString::new(name.as_encoded_bytes())?;
    call(libc::SYS_prctl, [libc::PR_SET_NAME as u64, name.as_ptr() as u64, 0, 0, 0, 0]).map(drop)
}

/// The marked processes that the host sees now, zombies too.
pub fn marked(field: &Field) -> Vec<i32> {
    let Some(name) = field.root.file_name() else { return Vec::new() };
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter(|pid| {
        fs::read(format!("/proc/{pid}/comm")).is_ok_and(|comm| comm.trim_ascii_end() == name.as_encoded_bytes())
    })
    .collect()
}

/// Held if no marked process is left soon; what is left is named, and ended.
pub fn nothing_lives_on(field: &Field, _: &Run) -> Verdict {
    // Generous for a busy machine, and well below the life of what the attacks leave behind.
    let deadline = Instant::now() + Duration::from_secs(1);
    let mut left = marked(field);
    while !left.is_empty() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(5));
        left = marked(field);
    }
    if left.is_empty() {
        return Verdict::Held;
    }
    for pid in &left {
        // SAFETY: takes integers; the name says that it is of this very field.
        unsafe { libc::kill(*pid, libc::SIGKILL) };
    }
    Verdict::Broken(format!("{} processes live on: {:?}", left.len(), &left[..left.len().min(5)]))
}

/// Broken if the attack says that it got all it wanted: nobody claims that in order to look harmless.
pub fn nothing_was_gained(field: &Field, _: &Run) -> Verdict {
    match field.loot() {
        loot if loot.is_empty() => Verdict::Held,
        loot => Verdict::Broken(String::from_utf8_lossy(&loot).into_owned()),
    }
}

/// Nothing gained, and the supervisor says that memory was why.
pub fn stopped_for_memory(field: &Field, run: &Run) -> Verdict {
    let killed = run.result["usage"]["out_of_memory_kills"].as_u64().unwrap_or(0) > 0;
    stopped_for("memory", killed, field, run)
}

/// Waits until no other attack of this kind runs: what one gives back, another seems not to have taken.
pub fn alone_on_the_disk(field: &Field) -> io::Result<()> {
    let lock = fs::File::create("/srv/belljar-escapes/disk.lock")?;
    lock.lock()?;
    field.keep(lock);
    Ok(())
}

/// Nothing gained, and the supervisor, or the kernel, says that the disk limit was why.
pub fn stopped_for_disk(field: &Field, run: &Run) -> Verdict {
    let verdict = stopped_for("disk", was_refused(field), field, run);
    // Given back while we are still alone.
    for entry in fs::read_dir(&field.workspace).into_iter().flatten().flatten() {
        let path = entry.path();
        if [TRIED, "loot", "attacker"].iter().any(|kept| path.ends_with(kept)) {
            continue;
        }
        let removed = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        if removed.is_err() {
            return Verdict::Unclear(format!("cannot remove {}", path.display()));
        }
    }
    verdict
}

pub fn stopped_for_cpu_time(field: &Field, run: &Run) -> Verdict {
    stopped_for("cpu-time", false, field, run)
}

/// Whether the attack came to its end with the kernel's refusal.
fn was_refused(field: &Field) -> bool {
    fs::read_to_string(field.workspace.join(TRIED)).is_ok_and(|tried| tried.starts_with("Err("))
}

fn stopped_for(what: &str, otherwise: bool, field: &Field, run: &Run) -> Verdict {
    let claimed = nothing_was_gained(field, run);
    // Peers have no result to look at.
    if claimed != Verdict::Held || run.result.is_null() || otherwise || run.result["overrun"] == what {
        return claimed;
    }
    Verdict::Unclear(format!("neither gained nor ended for {what}: {}", run.result))
}

/// Forks a child that does `what` and ends.
pub fn fork(what: impl FnOnce()) -> io::Result<i32> {
    // SAFETY: attacks fork while they have one thread.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            what();
            // SAFETY: never returns.
            unsafe { libc::_exit(0) }
        }
        pid => Ok(pid),
    }
}

pub fn wait(pid: i32) -> io::Result<i32> {
    let mut status = 0;
    // SAFETY: the status outlives the call.
    match unsafe { libc::waitpid(pid, &mut status, 0) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(status),
    }
}

/// A daemon: in a session of its own, child of nobody.
pub fn daemon(what: impl FnOnce()) -> io::Result<()> {
    let between = fork(|| {
        // SAFETY: takes nothing.
        unsafe { libc::setsid() };
        if fork(what).is_err() {
            // Refused: then there is no daemon, which the host will see.
        }
    })?;
    wait(between).map(drop)
}

pub fn pause(time: Duration) {
    std::thread::sleep(time);
}

/// Uses a processor for so much of its time.
pub fn burn(time: Duration) {
    let used = || {
        let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the record outlives the call.
        unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut now) };
        Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
    };
    let until = used() + time;
    while used() < until {
        std::hint::spin_loop();
    }
}

/// Maps `size` bytes, of a file that is closed at once where there is one, and touches each page.
pub fn fill_mapping(size: usize, flags: i32, file: Option<OwnedFd>) -> io::Result<()> {
    let fd = file.as_ref().map_or(-1, |file| file.as_raw_fd());
    // SAFETY: a fresh mapping at an address of the kernel's choice.
    let start = unsafe { libc::mmap(std::ptr::null_mut(), size, libc::PROT_READ | libc::PROT_WRITE, flags, fd, 0) };
    if start == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    drop(file);
    touch(start.cast(), size);
    Ok(())
}

pub fn touch(start: *mut u8, size: usize) {
    for offset in (0..size).step_by(4096) {
        // SAFETY: callers pass memory of this size that nobody else knows.
        unsafe { start.add(offset).write_volatile(1) };
    }
}

/// A file without a name, in memory.
pub fn unnamed_file() -> io::Result<OwnedFd> {
    let fd = call(libc::SYS_memfd_create, [c"escape".as_ptr() as u64, 0, 0, 0, 0, 0])?;
    // SAFETY: the kernel made it for this call.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
}

/// Writes so many zeros.
pub fn fill_file(file: &OwnedFd, size: usize) -> io::Result<()> {
    let block = vec![0u8; MIB];
    let mut written = 0;
    while written < size {
        written += rustix::io::write(file, &block[..MIB.min(size - written)])?;
    }
    Ok(())
}

/// 8 MiB, in no time: nothing is written.
pub fn reserve(file: &fs::File) -> io::Result<()> {
    Ok(rustix::fs::fallocate(file, rustix::fs::FallocateFlags::empty(), 0, 8 * MIB as u64)?)
}

/// For `--timeout 1s` and attacks that last three: broken if it got to its end, or its end was late.
pub fn ended_in_time(field: &Field, run: &Run) -> Verdict {
    ended_within(Duration::from_millis(2500), field, run)
}

/// The same for other limits.
pub fn ended_within(latest: Duration, field: &Field, run: &Run) -> Verdict {
    if run.took > latest {
        return Verdict::Broken(format!("it took {:?}", run.took));
    }
    stopped_for("wall-time", false, field, run)
}
