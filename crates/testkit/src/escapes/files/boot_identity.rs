//! Tells this machine's present run from all others by the number it drew at start.

use model::Wall;

use super::support;
use crate::{Attack, Control, Verdict};

const FILE: &str = "/proc/sys/kernel/random/boot_id";

pub const ATTACK: Attack = Attack {
    id: "files/boot_identity",
    wall: Wall::Files,
    about: "read the number that tells this start of this machine from every other",
    flags: &[],
    prepare: |_| Ok(()),
    inside: |inside| support::steal_any(inside, [FILE.into(), "/proc/self/root/proc/sys/kernel/random/boot_id".into()]),
    judge: Some(|field, _| {
        let host = std::fs::read(FILE).unwrap_or_default();
        match !host.is_empty() && field.loot().windows(host.len()).any(|window| window == host) {
            true => Verdict::Broken("the host's boot number was read".to_owned()),
            false => Verdict::Held,
        }
    }),
    control: Control::Bare,
};
