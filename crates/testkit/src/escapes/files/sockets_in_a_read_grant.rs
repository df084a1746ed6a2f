//! Reaches a service whose socket lies in a folder that is granted for reading. A read-only mount does not stop it.

use model::Wall;

use super::support;
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "files/sockets_in_a_read_grant",
    wall: Wall::Network,
    about: "reach a service at a socket in a folder that is granted for reading",
    flags: &["--read", "../outside"],
    prepare: |field| support::serve(field, &field.outside.join("service.socket")),
    inside: |inside| support::reach(&inside.outside.join("service.socket")),
    judge: Some(support::nobody_connected),
    control: Control::Bare,
};
