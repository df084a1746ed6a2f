//! Restarts the host, or replaces its kernel or parts of it. With bad arguments: an answer is proof enough.

use model::Wall;

use super::support::{BAD, NOWHERE, judge_by_loot, reach};
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "kernel/host_power",
    wall: Wall::SystemCalls,
    about: "reach reboot(2), kexec_load(2) and the calls for modules",
    flags: &[],
    prepare: |_| Ok(()),
    inside: |inside| {
        reach(
            inside,
            &[
                ("reboot", libc::SYS_reboot, [1, 1, 1, 0, 0, 0]),
                ("kexec_load", libc::SYS_kexec_load, [0, 99, 0, BAD, 0, 0]),
                ("kexec_file_load", 320, [BAD, BAD, 0, 0, BAD, 0]),
                ("init_module", libc::SYS_init_module, [NOWHERE, 8, NOWHERE, 0, 0, 0]),
                ("finit_module", libc::SYS_finit_module, [BAD, NOWHERE, BAD, 0, 0, 0]),
                ("delete_module", libc::SYS_delete_module, [NOWHERE, 0, 0, 0, 0, 0]),
            ],
        )
    },
    judge: Some(judge_by_loot),
    control: Control::BareAsRoot,
};
