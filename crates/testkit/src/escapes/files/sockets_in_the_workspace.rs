//! Reaches a service of the host whose socket lies in the workspace, as those of editors and git's monitor do.

use model::Wall;

use super::support;
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "files/sockets_in_the_workspace",
    wall: Wall::Network,
    about: "reach a service of the host at a socket that lies in the workspace",
    flags: &[],
    prepare: |field| support::serve(field, &field.workspace.join("service.socket")),
    inside: |inside| support::reach(&inside.workspace.join("service.socket")),
    judge: Some(support::nobody_connected),
    control: Control::Bare,
};
