//! Leaves files in the workspace that would run as their owner, by every call that takes a mode.

use model::Wall;

use super::support;
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "files/set_user_id",
    wall: Wall::SystemCalls,
    about: "leave a set-user-id file on the host, by every call that takes a mode",
    flags: &[],
    prepare: |_| Ok(()),
    inside: |inside| support::make_with_bits(&inside.workspace, 0o4000),
    judge: Some(|field, _| support::without_bits(field, 0o4000)),
    control: Control::Bare,
};
