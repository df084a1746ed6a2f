//! Reads the password records and host keys of the system.

use model::Wall;

use super::support;
use crate::{Attack, Control, Verdict};

pub const ATTACK: Attack = Attack {
    id: "files/password_records",
    wall: Wall::Files,
    about: "read /etc/shadow and its copies, by several names",
    flags: &[],
    prepare: |_| Ok(()),
    inside: |inside| {
        let names = [
            "/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/proc/self/root/etc/shadow",
            "/usr/../etc/shadow", "/usr/share/../../etc/shadow", "/var/backups/shadow.bak", "/etc/security/opasswd",
            "/etc/ssh/ssh_host_ed25519_key", "/etc/ssh/ssh_host_rsa_key",
        ];
        support::steal_any(inside, names.map(Into::into))
    },
    judge: Some(|field, _| {
        let loot = String::from_utf8_lossy(&field.loot()).into_owned();
        // A record of root's is in every one of them; keys have a header.
        match loot.contains("root:") || loot.contains("PRIVATE KEY") {
            true => Verdict::Broken("records of passwords or keys were read".to_owned()),
            false => Verdict::Held,
        }
    }),
    control: Control::BareAsRoot,
};
