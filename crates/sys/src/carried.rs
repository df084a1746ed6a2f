//! Processes that do one job for another process: how they end with it, and what they keep of its environment.

use std::ffi::OsStr;
use std::io;

use crate::process::{self, Alone};

/// Be told to end, by SIGTERM, when the parent ends: there is time to say so in the record. `parent` is who that was before; if it
/// has ended meanwhile, nobody would tell us, so that is an error.
pub fn told_to_end_with(parent: i32) -> io::Result<()> {
    process::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM as u64)?;
    match rustix::process::getppid() {
        Some(now) if now.as_raw_nonzero().get() == parent => Ok(()),
        _ => Err(io::Error::other("whoever started this process has ended")),
    }
}

/// Forgets every variable that `keeps` does not want.
pub fn keep_variables(_alone: Alone, keeps: impl Fn(&OsStr, &OsStr) -> bool) {
    let all: Vec<_> = std::env::vars_os().collect();
    for (name, _) in all.iter().filter(|(name, value)| !keeps(name, value)) {
        // SAFETY: `Alone` says that no other thread reads the environment meanwhile.
        unsafe { std::env::remove_var(name) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_whose_parent_is_another_by_now_is_told_so() {
        let parent = rustix::process::getppid().map_or(0, |parent| parent.as_raw_nonzero().get());
        assert!(told_to_end_with(parent).is_ok());
        assert!(told_to_end_with(parent + 1).is_err());
        process::prctl(libc::PR_SET_PDEATHSIG, 0).expect("undone");
    }
}
