//! Finds out the host's name by every means that tells it.

use model::Wall;

use super::support;
use crate::{Attack, Control, Verdict};

pub const ATTACK: Attack = Attack {
    id: "files/host_name",
    wall: Wall::Hostname,
    about: "find out the host's name from files and calls",
    flags: &[],
    prepare: |_| Ok(()),
    inside: |inside| {
        let uname = || inside.loot(format!("{}\n", rustix::system::uname().nodename().to_string_lossy()));
        let files = ["/etc/hostname", "/proc/sys/kernel/hostname", "/etc/mailname", "/proc/sys/kernel/domainname"];
        let files = support::steal_any(inside, files.map(Into::into));
        support::any([uname(), files])
    },
    judge: Some(|field, _| {
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let loot = String::from_utf8_lossy(&field.loot()).into_owned();
        match loot.lines().any(|line| line.trim() == host) {
            true => Verdict::Broken(format!("the host is called {host}")),
            false => Verdict::Held,
        }
    }),
    control: Control::Bare,
};
