//! Per-process limits of the kernel.

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::{Deserialize, Serialize};

/// A limit that setrlimit(2) holds, for this process and those it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
}

impl Limit {
    /// As the kernel calls it, which is the same for every machine that we run on.
    pub fn number(self) -> u32 {
        match self {
            Limit::CpuSeconds => 0,
            Limit::FileSize => 1,
            Limit::Core => 4,
            Limit::Processes => 6,
            Limit::OpenFiles => 7,
            Limit::LockedMemory => 8,
            Limit::MessageQueues => 12,
            Limit::Nice => 13,
            Limit::RealtimePriority => 14,
        }
    }

    fn resource(self) -> Resource {
        match self {
            Limit::Core => Resource::Core,
            Limit::CpuSeconds => Resource::Cpu,
            Limit::FileSize => Resource::Fsize,
            Limit::LockedMemory => Resource::Memlock,
            Limit::MessageQueues => Resource::Msgqueue,
            Limit::Nice => Resource::Nice,
            Limit::OpenFiles => Resource::Nofile,
            Limit::Processes => Resource::Nproc,
            Limit::RealtimePriority => Resource::Rtprio,
        }
    }
}

/// Sets `limit` to `value`, or to what the caller may have at most if that is less. Never raises.
pub fn lower(limit: Limit, value: u64) -> io::Result<()> {
    let value = getrlimit(limit.resource()).maximum.map_or(value, |highest| highest.min(value));
    Ok(setrlimit(limit.resource(), Rlimit { current: Some(value), maximum: Some(value) })?)
}

/// What `limit` is now; as good as none where there is none.
pub fn current(limit: Limit) -> u64 {
    getrlimit(limit.resource()).current.unwrap_or(u64::MAX)
}
