//! Slows a process of the host down, or takes its limits away, by its number and by its user.

use std::fs;

use model::Wall;

use super::support::{bait, is_among_the_hosts, set_bait};
use crate::inside::call;
use crate::{Attack, Control, Verdict};

pub const ATTACK: Attack = Attack {
    id: "kernel/tune_host",
    wall: Wall::Processes,
    about: "change priority, processors and limits of a process of the host",
    flags: &[],
    prepare: |field| {
        let pid = set_bait(field)?;
        field.tell("before", condition(pid)?);
        Ok(())
    },
    inside: |inside| {
        let bait = bait(inside)? as u64;
        // SAFETY: takes nothing, always succeeds.
        let own = u64::from(unsafe { libc::getuid() });
        let few = [16u64, 16];
        let processor = 1u64;
        let idle = 3 << 13;
        let nothing = 0u32;
        let mut tries = vec![
            (libc::SYS_setpriority, [0, bait, 19, 0, 0, 0]),
            (libc::SYS_sched_setscheduler, [bait, 5, &raw const nothing as u64, 0, 0, 0]),
            (libc::SYS_sched_setaffinity, [bait, 8, &raw const processor as u64, 0, 0, 0]),
            (libc::SYS_ioprio_set, [1, bait, idle, 0, 0, 0]),
            (libc::SYS_prlimit64, [bait, 7, few.as_ptr() as u64, 0, 0, 0]),
        ];
        if !is_among_the_hosts(inside) {
            // By user: bare, this would hit all that the user runs.
            tries.push((libc::SYS_setpriority, [2, own, 19, 0, 0, 0]));
            tries.push((libc::SYS_ioprio_set, [3, own, idle, 0, 0, 0]));
        }
        let mut refused = Ok(());
        for (number, arguments) in tries {
            if let Err(error) = call(number, arguments) {
                refused = Err(error);
            }
        }
        refused
    },
    judge: Some(|field, _| {
        let now = field.hint("bait").and_then(|pid| condition(pid.parse().ok()?).ok());
        match (field.hint("before"), now) {
            (Some(before), Some(now)) if before == now => Verdict::Held,
            (Some(before), Some(now)) => Verdict::Broken(format!("it was {before} and is {now}")),
            _ => Verdict::Unclear("the bait is gone".to_owned()),
        }
    }),
    control: Control::Bare,
};

/// Priority, kind of scheduling, processors, disk priority and limit of open files.
fn condition(pid: u32) -> std::io::Result<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let processors = status.lines().find(|line| line.starts_with("Cpus_allowed:")).unwrap_or_default();
    let limits = fs::read_to_string(format!("/proc/{pid}/limits"))?;
    let files = limits.lines().find(|line| line.starts_with("Max open files")).unwrap_or_default();
    let disk = call(libc::SYS_ioprio_get, [1, u64::from(pid), 0, 0, 0, 0])?;
    // Counted from the third field, which comes first here: nice is the 19th, the policy the 41st.
    Ok(format!("{:?} {:?} {processors} {files} {disk}", fields.get(16), fields.get(38)))
}
