//! A process that shares our memory and descriptors and does one thing beside us, on another processor.
//!
//! It makes its system calls itself (`rustix` keeps no `errno`) and allocates nothing: the allocator and thread-local
//! storage are ours, and we go on meanwhile.

use std::ffi::{c_int, c_void};
use std::io;
use std::sync::atomic::{AtomicI32, Ordering};

use rustix::io::Errno;

use crate::process::{self, Alone, Ended, Processors};
use crate::{checked, stack};

/// Somebody at work.
pub(crate) struct Assistant {
    pid: i32,
    /// Leaked: the assistant may write to it at any time.
    result: &'static AtomicI32,
    /// Where it may run once somebody waits for it.
    anywhere: Option<Processors>,
}

struct Task<T: 'static> {
    about: &'static T,
    work: fn(&'static T) -> Result<i32, Errno>,
    /// A number of the work's own, or a negative error.
    result: AtomicI32,
}

impl Assistant {
    /// Begins `work`, which must do nothing but system calls without `errno` and stores to what is made to be shared. `beside`: a
    /// processor that is idle, for whoever may run on one only.
    pub(crate) fn begin<T: Sync + 'static>(
        _alone: Alone,
        about: &'static T,
        work: fn(&'static T) -> Result<i32, Errno>,
        beside: Option<usize>,
    ) -> io::Result<Assistant> {
        let result = AtomicI32::new(-Errno::IO.raw_os_error());
        let task: &'static Task<T> = Box::leak(Box::new(Task { about, work, result }));
        let stack = stack::top()?;
        let flags = libc::CLONE_VM | libc::CLONE_FILES | libc::SIGCHLD;
        // SAFETY: the stack is never freed or touched again by us, and `task` is leaked and meant to be shared. `work`
        // uses neither the allocator nor thread-local storage, which it shares with us.
        let pid = checked(unsafe {
            let argument = (&raw const *task).cast_mut().cast::<c_void>();
            libc::clone(run::<T>, stack, flags, argument).into()
        })?;
        // Beside us, or it is no help: some kernels begin it where we are, and let it wait. Where that can't be had, it is only later.
        let anywhere = match (process::stay_elsewhere(pid as i32), beside) {
            (Ok(None), Some(processor)) => process::run_on(pid as i32, processor).map(Some),
            (elsewhere, _) => elsewhere,
        };
        Ok(Assistant { pid: pid as i32, result: &task.result, anywhere: anywhere.unwrap_or_default() })
    }

    /// Waits for its end. One that ended in any other way than by itself has done nothing.
    pub(crate) fn join(self) -> io::Result<i32> {
        // Whoever has its processor may keep it: ours is free now.
        match self.anywhere.map_or(Ok(()), |all| process::run_anywhere(self.pid, &all)) {
            // It has ended, or runs where it is.
            Ok(()) | Err(_) => {}
        }
        let ended = process::wait(self.pid, false)?;
        if !matches!(ended, Some((_, Ended::Exited(0), _))) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        match self.result.load(Ordering::Acquire) {
            error if error < 0 => Err(io::Error::from_raw_os_error(-error)),
            number => Ok(number),
        }
    }
}

extern "C" fn run<T: Sync + 'static>(task: *mut c_void) -> c_int {
    // SAFETY: `begin` leaked it.
    let task: &'static Task<T> = unsafe { &*task.cast::<Task<T>>() };
    let made = (task.work)(task.about).unwrap_or_else(|error| -error.raw_os_error());
    task.result.store(made, Ordering::Release);
    0
}
