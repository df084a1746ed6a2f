//! Raises limits again to what the host gave the caller.

use std::io;

use model::Wall;

use super::support::judge_by_loot;
use crate::inside::call;
use crate::{Attack, Control};

/// What a sandbox holds lower than hosts do.
const LIMITS: [(&str, u64); 4] = [("core", 4), ("file size", 1), ("processes", 6), ("open files", 7)];

pub const ATTACK: Attack = Attack {
    id: "kernel/raise_limits",
    wall: Wall::OpenFiles,
    about: "raise limits to the host's, by prlimit64 and setrlimit, also with rubbish in the high half",
    flags: &[],
    prepare: |field| {
        for (name, limit) in LIMITS {
            field.tell(name, read(limit)?[1]);
        }
        Ok(())
    },
    inside: |inside| {
        let mut refused = Ok(());
        for (name, limit) in LIMITS {
            let most: u64 = inside.hint(name)?.parse().map_err(io::Error::other)?;
            let both = [most; 2];
            for (number, arguments) in [
                (libc::SYS_prlimit64, [0, limit, both.as_ptr() as u64, 0, 0, 0]),
                (libc::SYS_prlimit64, [0, limit | 1 << 32, both.as_ptr() as u64, 0, 0, 0]),
                (libc::SYS_setrlimit, [limit, both.as_ptr() as u64, 0, 0, 0, 0]),
                (libc::SYS_setrlimit, [limit | 1 << 32, both.as_ptr() as u64, 0, 0, 0, 0]),
            ] {
                if let Err(error) = call(number, arguments) {
                    refused = Err(error);
                }
            }
            // An answer may be a pretence; what counts is what holds afterwards.
            if read(limit)?[1] >= most {
                inside.loot(format!("{name} {most}\n"))?;
            }
        }
        refused
    },
    judge: Some(judge_by_loot),
    control: Control::Bare,
};

fn read(limit: u64) -> io::Result<[u64; 2]> {
    let mut both = [0u64; 2];
    call(libc::SYS_prlimit64, [0, limit, 0, both.as_mut_ptr() as u64, 0, 0])?;
    Ok(both)
}
