//! Opens what shows the kernel's own memory and log, and reads where its functions are.

use std::fs;

use model::Wall;

use super::support;
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "files/kernel_memory",
    wall: Wall::User,
    about: "open the kernel's memory and log, and learn its addresses",
    flags: &[],
    prepare: |_| Ok(()),
    inside: |inside| {
        let files = [
            "/proc/kcore", "/dev/mem", "/dev/kmem", "/dev/port", "/dev/kmsg", "/proc/kmsg", "/proc/kpagecount",
            "/proc/kpageflags", "/proc/vmallocinfo", "/proc/slabinfo", "/sys/kernel/debug/kernel_page_tables",
            "/sys/firmware/acpi/tables/DSDT", "/proc/pagetypeinfo",
        ];
        let opened = support::loot_opened(inside, &files, &support::for_reading());
        let addresses = || {
            let symbols = fs::read_to_string("/proc/kallsyms")?;
            let real = symbols.lines().take(50).find(|line| !line.starts_with("0000000000000000"));
            inside.loot(real.ok_or(std::io::ErrorKind::PermissionDenied)?)
        };
        support::any([opened, addresses()])
    },
    judge: Some(support::nothing_gained),
    control: Control::BareAsRoot,
};
