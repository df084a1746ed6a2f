//! Leaves a file that its owner can neither change nor remove.

use std::fs;
use std::os::fd::AsRawFd;

use model::Wall;

use super::support;
use crate::inside::call;
use crate::{Attack, Control, Verdict};

const GET: u64 = 0x8008_6601;
const SET: u64 = 0x4008_6602;
const APPEND_ONLY: u32 = 0x20;
const IMMUTABLE: u32 = 0x10;

pub const ATTACK: Attack = Attack {
    id: "files/immutable",
    wall: Wall::Privileges,
    about: "leave a file that nobody can change or remove",
    flags: &[],
    prepare: |_| Ok(()),
    inside: |inside| {
        support::any([("immutable", IMMUTABLE), ("append-only", APPEND_ONLY)].map(|(name, flag)| {
            let file = fs::File::create(inside.workspace.join(name))?;
            call(libc::SYS_ioctl, [file.as_raw_fd() as u64, SET, &raw const flag as u64, 0, 0, 0]).map(drop)
        }))
    },
    judge: Some(|field, _| {
        let stuck = ["immutable", "append-only"].iter().filter(|name| {
            let Ok(file) = fs::File::open(field.workspace.join(name)) else {
                return false;
            };
            let (fd, mut flags, none) = (file.as_raw_fd() as u64, 0u32, 0u32);
            let read = call(libc::SYS_ioctl, [fd, GET, &raw mut flags as u64, 0, 0, 0]).is_ok();
            // Taken off again, or the field could not be removed.
            let cleared = call(libc::SYS_ioctl, [fd, SET, &raw const none as u64, 0, 0, 0]).is_ok();
            read && cleared && flags & (IMMUTABLE | APPEND_ONLY) != 0
        });
        match stuck.count() {
            0 => Verdict::Held,
            count => Verdict::Broken(format!("{count} files can't be removed")),
        }
    }),
    control: Control::BareAsRoot,
};
