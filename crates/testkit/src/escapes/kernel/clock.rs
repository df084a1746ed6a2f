//! Sets the clock of the host, or only its rate.

use model::Wall;

use super::support::{NOWHERE, judge_by_loot, reach};
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "kernel/clock",
    wall: Wall::SystemCalls,
    about: "reach the calls that set the host's clock",
    flags: &[],
    prepare: |_| Ok(()),
    inside: |inside| {
        reach(
            inside,
            &[
                ("clock_settime", libc::SYS_clock_settime, [0, NOWHERE, 0, 0, 0, 0]),
                ("settimeofday", libc::SYS_settimeofday, [NOWHERE, 0, 0, 0, 0, 0]),
                ("clock_adjtime", libc::SYS_clock_adjtime, [0, NOWHERE, 0, 0, 0, 0]),
                ("adjtimex", libc::SYS_adjtimex, [NOWHERE, 0, 0, 0, 0, 0]),
            ],
        )
    },
    judge: Some(judge_by_loot),
    control: Control::Bare,
};
