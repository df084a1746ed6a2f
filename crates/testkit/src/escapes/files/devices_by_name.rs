//! Opens the host's disks and other devices by their names.

use model::Wall;

use super::support;
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "files/devices_by_name",
    wall: Wall::Files,
    about: "open disks, virtual machines, loops and consoles by their names in /dev",
    flags: &[],
    prepare: |_| Ok(()),
    inside: |inside| {
        let devices = [
            "/dev/vda", "/dev/sda", "/dev/nvme0n1", "/dev/loop0", "/dev/loop-control", "/dev/fuse", "/dev/kvm",
            "/dev/net/tun", "/dev/zram0", "/dev/vcs1", "/dev/tty1", "/dev/ttyS0", "/dev/userfaultfd", "/dev/vsock",
            "/dev/btrfs-control", "/dev/mapper/control", "/dev/cpu/0/msr", "/dev/snapshot", "/dev/vhost-net",
            "/proc/self/root/dev/vda", "/dev/fd/../../../dev/vda",
        ];
        support::loot_opened(inside, &devices, &support::for_reading())
    },
    judge: Some(support::nothing_gained),
    control: Control::BareAsRoot,
};
