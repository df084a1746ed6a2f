//! Reads how this machine was started, which may name its services, disks and tokens.

use model::Wall;

use super::support;
use crate::{Attack, Control, Verdict};

const FILE: &str = "/proc/cmdline";

pub const ATTACK: Attack = Attack {
    id: "files/boot_command",
    wall: Wall::Files,
    about: "read the host's kernel command line",
    flags: &[],
    prepare: |_| Ok(()),
    inside: |inside| support::steal_any(inside, [FILE.into()]),
    judge: Some(|field, _| {
        let host = std::fs::read(FILE).unwrap_or_default();
        match host.len() > 1 && field.loot().windows(host.len()).any(|window| window == host) {
            true => Verdict::Broken("the host's kernel command line was read".to_owned()),
            false => Verdict::Held,
        }
    }),
    control: Control::Bare,
};
