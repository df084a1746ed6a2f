//! Looks for the host's network interfaces by every way there is to list them.

use std::ffi::CStr;
use std::fs;

use model::Wall;

use crate::{Attack, Control, Verdict};

pub const ATTACK: Attack = Attack {
    id: "kernel/host_interfaces",
    wall: Wall::Network,
    about: "see the host's network interfaces in /proc, /sys and by netlink",
    flags: &[],
    prepare: |_| Ok(()),
    inside: |inside| {
        for path in ["/proc/net/dev", "/proc/1/net/dev", "/proc/net/if_inet6"] {
            if let Ok(text) = fs::read(path) {
                inside.loot(text)?;
            }
        }
        if let Ok(entries) = fs::read_dir("/sys/class/net") {
            for entry in entries.flatten() {
                inside.loot(format!("{}:\n", entry.file_name().display()))?;
            }
        }
        // SAFETY: the list ends with a null name, and is freed once, after its last use.
        unsafe {
            let list = libc::if_nameindex();
            let mut entry = list;
            while !entry.is_null() && !(*entry).if_name.is_null() {
                inside.loot(format!("{}:\n", CStr::from_ptr((*entry).if_name).to_string_lossy()))?;
                entry = entry.add(1);
            }
            if !list.is_null() {
                libc::if_freenameindex(list);
            }
        }
        Ok(())
    },
    judge: Some(|field, _| {
        let loot = String::from_utf8_lossy(&field.loot()).into_owned();
        let Ok(own) = fs::read_dir("/sys/class/net") else {
            return Verdict::Unclear("the host does not list its interfaces".to_owned());
        };
        let names = own.flatten().map(|entry| entry.file_name().display().to_string());
        let seen = names.filter(|name| name != "lo").find(|name| loot.contains(&format!("{name}:")));
        seen.map_or(Verdict::Held, |name| Verdict::Broken(format!("{name} was seen")))
    }),
    control: Control::Bare,
};
