//! Reads the memory of a process of the host, through /proc and by process_vm_readv(2).

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;

use model::Wall;

use super::support::{bait, set_bait};
use crate::inside::call;
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "kernel/read_memory",
    wall: Wall::Processes,
    about: "read the memory of a process of the host of the same user",
    flags: &[],
    prepare: |field| set_bait(field).map(drop),
    inside: |inside| {
        let bait = bait(inside)?;
        let (start, end) = stack(bait)?;
        let mut copy = vec![0u8; (end - start) as usize];
        if File::open(format!("/proc/{bait}/mem")).and_then(|memory| memory.read_exact_at(&mut copy, start)).is_ok() {
            inside.loot(&copy)?;
        }
        copy.fill(0);
        let here = [copy.as_mut_ptr() as u64, end - start];
        let there = [start, end - start];
        call(libc::SYS_process_vm_readv, [bait as u64, here.as_ptr() as u64, 1, there.as_ptr() as u64, 1, 0])?;
        inside.loot(&copy)
    },
    judge: None,
    control: Control::Bare,
};

/// Where the process keeps its environment.
pub fn stack(pid: i32) -> io::Result<(u64, u64)> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps"))?;
    let line = maps.lines().find(|line| line.ends_with("[stack]")).ok_or(io::ErrorKind::NotFound)?;
    let (start, rest) = line.split_once('-').ok_or(io::ErrorKind::InvalidData)?;
    let end = rest.split(' ').next().unwrap_or_default();
    let number = |text| u64::from_str_radix(text, 16).map_err(io::Error::other);
    Ok((number(start)?, number(end)?))
}
