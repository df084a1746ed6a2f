//! Processes whose names are no text: whoever reads their records as text reads nothing.

use std::time::Duration;

use model::Wall;

use super::support;
use crate::inside::call;
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "resources/cpu_time_no_text_name",
    wall: Wall::CpuTime,
    about: "use 3 s of processor time in 60 children whose names are no text, with --cpu-time 1s",
    flags: &["--cpu-time", "1s"],
    prepare: |_| Ok(()),
    inside: |inside| {
        support::at_the_brink(inside)?;
        let name = c"\xff\xfe\x80";
        // Inherited by the children.
        call(libc::SYS_prctl, [libc::PR_SET_NAME as u64, name.as_ptr() as u64, 0, 0, 0, 0])?;
        for _ in 0..60 {
            support::wait(support::fork(|| support::burn(Duration::from_millis(50)))?)?;
        }
        inside.loot("3 s of processor time")
    },
    judge: Some(support::stopped_for_cpu_time),
    control: Control::Bare,
};
