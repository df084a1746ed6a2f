//! Lists the host's cards, disks and firmware under /sys.

use std::fs;

use model::Wall;

use super::support;
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "files/system_buses",
    wall: Wall::Files,
    about: "list the host's cards, disks, modules and groups under /sys",
    flags: &[],
    prepare: |_| Ok(()),
    inside: |inside| {
        let folders = [
            "/sys/class", "/sys/bus", "/sys/bus/pci/devices", "/sys/block", "/sys/class/net", "/sys/class/dmi/id",
            "/sys/firmware", "/sys/kernel", "/sys/module", "/sys/fs/cgroup", "/sys/power", "/sys/devices/virtual",
            "/proc/self/root/sys/class", "/sys/devices/system/../../class",
        ];
        support::any(folders.iter().map(|folder| match fs::read_dir(folder)?.next() {
            Some(_) => inside.loot(format!("{folder}\n")),
            None => Err(std::io::ErrorKind::NotFound.into()),
        }))
    },
    judge: Some(support::nothing_gained),
    control: Control::Bare,
};
