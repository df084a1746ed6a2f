//! Makes namespaces of its own: inside a user namespace of one's own, much of the kernel is open to anyone.

use std::io;

use model::Wall;

use super::support::{in_child, judge_by_loot};
use crate::inside::call;
use crate::{Attack, Control};

const NEW_USER: u64 = 0x1000_0000;
const NEW_TIME: u64 = 0x80;
/// Mount, control group, hostname, ipc, user, process, network.
const EACH: [u64; 7] = [0x2_0000, 0x200_0000, 0x400_0000, 0x800_0000, NEW_USER, 0x2000_0000, 0x4000_0000];
const RUBBISH: u64 = 0xdead_beef << 32;

pub const ATTACK: Attack = Attack {
    id: "kernel/nested_namespaces",
    wall: Wall::SystemCalls,
    about: "make further namespaces by unshare, clone and clone3, also with rubbish in the high halves",
    flags: &[],
    prepare: |_| Ok(()),
    inside: |inside| {
        let mut ways: Vec<(String, [u64; 2])> = Vec::new();
        for flag in EACH {
            for flags in [flag, flag | NEW_USER] {
                ways.push((format!("unshare {flags:#x}"), [libc::SYS_unshare as u64, flags]));
                for high in [0, RUBBISH] {
                    let flags = flags | high | libc::SIGCHLD as u64;
                    ways.push((format!("clone {flags:#x}"), [libc::SYS_clone as u64, flags]));
                }
                ways.push((format!("clone3 {flags:#x}"), [libc::SYS_clone3 as u64, flags]));
            }
        }
        for flags in [NEW_TIME, NEW_TIME | NEW_USER] {
            ways.push((format!("unshare {flags:#x}"), [libc::SYS_unshare as u64, flags]));
            ways.push((format!("clone3 {flags:#x}"), [libc::SYS_clone3 as u64, flags]));
        }
        for (name, [number, flags]) in ways {
            if in_child(|| i32::from(make(number as libc::c_long, flags).is_err()))? == Some(0) {
                inside.loot(format!("{name}\n"))?;
            }
        }
        Ok(())
    },
    judge: Some(judge_by_loot),
    control: Control::Bare,
};

/// Only success counts: what the kernel refuses for reasons of its own made no namespace either.
fn make(number: libc::c_long, flags: u64) -> io::Result<()> {
    // struct clone_args: the signal of the end is its fifth word.
    let record = [flags, 0, 0, 0, libc::SIGCHLD as u64, 0, 0, 0];
    let made = match number {
        libc::SYS_clone3 => call(number, [record.as_ptr() as u64, 64, 0, 0, 0, 0])?,
        _ => call(number, [flags, 0, 0, 0, 0, 0])?,
    };
    if made == 0 && number != libc::SYS_unshare {
        // The clone itself.
        std::process::exit(0);
    }
    Ok(())
}
