//! Reaches a service of the host by its socket's path, which no network namespace hides.

use model::Wall;

use super::support;
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "files/sockets_outside",
    wall: Wall::Network,
    about: "reach a service at a socket outside the grant, as stream and as datagram",
    flags: &[],
    prepare: |field| support::serve(field, &field.outside.join("service.socket")),
    inside: |inside| {
        let socket = inside.outside.join("service.socket");
        let alias = format!("/proc/self/root{}", socket.display());
        std::os::unix::fs::symlink(&inside.outside, "way-out")?;
        let names = [socket, alias.into(), "../outside/service.socket".into(), "way-out/service.socket".into()];
        support::any(names.iter().map(|name| support::reach(name)))
    },
    judge: Some(support::nobody_connected),
    control: Control::Bare,
};
