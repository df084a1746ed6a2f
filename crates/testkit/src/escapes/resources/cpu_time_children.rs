//! Many short-lived children, none of which uses much.

use std::time::Duration;

use model::Wall;

use super::support;
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "resources/cpu_time_children",
    wall: Wall::CpuTime,
    about: "use 3 s of processor time in 60 children with --cpu-time 1s",
    flags: &["--cpu-time", "1s"],
    prepare: |_| Ok(()),
    inside: |inside| {
        support::at_the_brink(inside)?;
        for _ in 0..60 {
            support::wait(support::fork(|| support::burn(Duration::from_millis(50)))?)?;
        }
        inside.loot("3 s of processor time")
    },
    judge: Some(support::stopped_for_cpu_time),
    control: Control::Bare,
};
