//! The older hierarchies, one a controller. Only root can use them.

use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::Access;

use super::{Ceiling, Placement, own_group, write};

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

pub(super) fn fill(folders: &[PathBuf], ceiling: &Ceiling) -> io::Result<()> {
    for folder in folders {
        let has = |file: &str| folder.join(file).exists();
        if has("memory.limit_in_bytes") {
            write(folder, "memory.limit_in_bytes", &ceiling.memory.to_string())?;
            // Memory and swap together; absent where the kernel does not count swap.
            if has("memory.memsw.limit_in_bytes") {
                write(folder, "memory.memsw.limit_in_bytes", &ceiling.memory.to_string())?;
            }
        }
        if let Some(millicpus) = ceiling.millicpus
            && has("cpu.cfs_quota_us")
        {
            write(folder, "cpu.cfs_period_us", "100000")?;
            write(folder, "cpu.cfs_quota_us", &(u64::from(millicpus) * 100).to_string())?;
        }
    }
    Ok(())
}
