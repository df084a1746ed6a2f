//! Calls that are newer than most lists: an unknown number must be refused as well.

use model::Wall;

use super::support::{BAD, NOWHERE, judge_by_loot, reach};
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "kernel/newest",
    wall: Wall::SystemCalls,
    about: "reach calls that kernels learned lately",
    flags: &[],
    prepare: |_| Ok(()),
    inside: |inside| {
        reach(
            inside,
            &[
                ("lsm_list_modules", 461, [NOWHERE, NOWHERE, 0, 0, 0, 0]),
                ("lsm_get_self_attr", 459, [100, NOWHERE, NOWHERE, 0, 0, 0]),
                ("setxattrat", 463, [BAD, NOWHERE, 0, NOWHERE, NOWHERE, 16]),
                ("getxattrat", 464, [BAD, NOWHERE, 0, NOWHERE, NOWHERE, 16]),
                ("listxattrat", 465, [BAD, NOWHERE, 0, NOWHERE, 8, 0]),
                ("removexattrat", 466, [BAD, NOWHERE, 0, NOWHERE, 0, 0]),
                ("file_getattr", 468, [BAD, NOWHERE, NOWHERE, 24, 0, 0]),
                ("file_setattr", 469, [BAD, NOWHERE, NOWHERE, 24, 0, 0]),
            ],
        )
    },
    judge: Some(judge_by_loot),
    control: Control::Bare,
};
