//! Finds out which machine this is, by numbers that no other machine has.

use model::Wall;

use super::support;
use crate::{Attack, Control, Verdict};

const FILES: &[&str] = &[
    "/etc/machine-id", "/var/lib/dbus/machine-id", "/sys/class/dmi/id/product_uuid",
    "/sys/class/dmi/id/product_serial", "/sys/class/dmi/id/board_serial", "/sys/devices/virtual/dmi/id/product_uuid",
    "/sys/class/net/eth0/address", "/var/lib/cloud/data/instance-id", "/run/machine-id", "/etc/hostid",
];

pub const ATTACK: Attack = Attack {
    id: "files/machine_identity",
    wall: Wall::Files,
    about: "tell this machine from others by its machine, board or card number",
    flags: &[],
    prepare: |_| Ok(()),
    inside: |inside| support::steal_any(inside, FILES.iter().map(Into::into)),
    judge: Some(|field, _| {
        let loot = String::from_utf8_lossy(&field.loot()).into_owned();
        let known = FILES.iter().filter_map(|file| std::fs::read_to_string(file).ok());
        match known.filter(|number| number.trim().len() > 6).find(|number| loot.contains(number.trim())) {
            Some(number) => Verdict::Broken(format!("the host's number {} was read", number.trim())),
            None => Verdict::Held,
        }
    }),
    control: Control::Bare,
};
