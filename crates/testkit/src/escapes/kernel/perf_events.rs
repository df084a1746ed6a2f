//! Opens performance counters, which count and sample what others do.

use model::Wall;

use super::support::{BAD, NOWHERE, judge_by_loot, reach};
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "kernel/perf_events",
    wall: Wall::SystemCalls,
    about: "reach perf_event_open(2)",
    flags: &[],
    prepare: |_| Ok(()),
    inside: |inside| reach(inside, &[("perf_event_open", libc::SYS_perf_event_open, [NOWHERE, 0, BAD, BAD, 0, 0])]),
    judge: Some(judge_by_loot),
    control: Control::Bare,
};
