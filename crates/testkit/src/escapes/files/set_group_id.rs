//! Leaves files and folders in the workspace that would run as, or hand on, their group.

use model::Wall;

use super::support;
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "files/set_group_id",
    wall: Wall::SystemCalls,
    about: "leave a set-group-id file or folder on the host, by every call that takes a mode",
    flags: &[],
    prepare: |_| Ok(()),
    inside: |inside| support::make_with_bits(&inside.workspace, 0o2000),
    judge: Some(|field, _| support::without_bits(field, 0o2000)),
    control: Control::Bare,
};
