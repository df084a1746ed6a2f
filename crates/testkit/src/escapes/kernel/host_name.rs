//! Renames the host.

use model::Wall;

use super::support::{NOWHERE, judge_by_loot, reach};
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "kernel/host_name",
    wall: Wall::Hostname,
    about: "reach sethostname(2) and setdomainname(2)",
    flags: &[],
    prepare: |_| Ok(()),
    inside: |inside| {
        reach(
            inside,
            &[
                ("sethostname", libc::SYS_sethostname, [NOWHERE, 4, 0, 0, 0, 0]),
                ("setdomainname", libc::SYS_setdomainname, [NOWHERE, 4, 0, 0, 0, 0]),
            ],
        )
    },
    judge: Some(judge_by_loot),
    control: Control::BareAsRoot,
};
