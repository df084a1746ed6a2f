//! The older hierarchies, one a controller. Only root can use them.

use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::Access;

use super::{Ceiling, Placement, own_group, quota, write, write_if_there};

pub(super) fn look(root: &Path, own: &str) -> Placement {
    let place = |controller: &str| -> Option<PathBuf> {
        let path = root.join(controller).join(own_group(own, controller)?.trim_start_matches('/'));
        rustix::fs::access(&path, Access::WRITE_OK).is_ok().then_some(path)
    };
    match place("memory") {
        Some(memory) => Placement::Older { memory, cpu: place("cpu"), accounting: place("cpuacct") },
        None => {
            Placement::Nowhere { why: "control groups are mounted as version 1, which only root may divide".to_owned() }
        }
    }
}

/// `folders`: the one of the memory controller first.
pub(super) fn limit(folders: &[PathBuf], ceiling: &Ceiling) -> io::Result<()> {
    let memory = ceiling.memory.to_string();
    write(&folders[0], "memory.limit_in_bytes", &memory)?;
    // Memory and swap together; absent where the kernel does not count swap.
    write_if_there(&folders[0], "memory.memsw.limit_in_bytes", &memory)?;
    if let Some(millicpus) = ceiling.millicpus {
        let with_quota = |folder: &&PathBuf| folder.join("cpu.cfs_quota_us").exists();
        let folder = folders.iter().find(with_quota).ok_or(io::ErrorKind::NotFound)?;
        let (share, period) = quota(millicpus);
        write(folder, "cpu.cfs_period_us", &period.to_string())?;
        write(folder, "cpu.cfs_quota_us", &share.to_string())?;
    }
    Ok(())
}
