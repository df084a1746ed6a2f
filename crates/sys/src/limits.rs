//! Per-process limits of the kernel.

use std::io;

/// A limit that setrlimit(2) holds, for this process and those it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Size of a core file. One byte means none, even where the host pipes them to a helper.
    Core,
    CpuSeconds,
    FileSize,
    LockedMemory,
    MessageQueues,
    Nice,
    OpenFiles,
    Processes,
    RealtimePriority,
    PendingSignals,
}

impl Limit {
    fn raw(self) -> libc::__rlimit_resource_t {
        match self {
            Limit::Core => libc::RLIMIT_CORE,
            Limit::CpuSeconds => libc::RLIMIT_CPU,
            Limit::FileSize => libc::RLIMIT_FSIZE,
            Limit::LockedMemory => libc::RLIMIT_MEMLOCK,
            Limit::MessageQueues => libc::RLIMIT_MSGQUEUE,
            Limit::Nice => libc::RLIMIT_NICE,
            Limit::OpenFiles => libc::RLIMIT_NOFILE,
            Limit::Processes => libc::RLIMIT_NPROC,
            Limit::RealtimePriority => libc::RLIMIT_RTPRIO,
            Limit::PendingSignals => libc::RLIMIT_SIGPENDING,
        }
    }
}

/// Sets `limit` to `value`, or to what the caller may have at most if that is less. Never raises.
pub fn lower(limit: Limit, value: u64) -> io::Result<()> {
    let highest = highest(limit)?;
    let value = value.min(highest);
    let both = libc::rlimit { rlim_cur: value, rlim_max: value };
    // SAFETY: reads one rlimit, which outlives the call.
    crate::checked(unsafe { libc::setrlimit(limit.raw(), &both) }.into()).map(drop)
}

/// What the caller may set `limit` to at most.
pub fn highest(limit: Limit) -> io::Result<u64> {
    let mut both = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: writes one rlimit, which outlives the call.
    crate::checked(unsafe { libc::getrlimit(limit.raw(), &mut both) }.into())?;
    Ok(both.rlim_max)
}
