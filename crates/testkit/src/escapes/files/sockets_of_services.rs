//! Reaches a service where services have their sockets: in /run, /var/run, /tmp and /tmp/.X11-unix.

use std::path::PathBuf;

use model::Wall;

use super::support;
use crate::field::Field;
use crate::{Attack, Control};

fn places(name: &str) -> [PathBuf; 3] {
    ["/run", "/tmp", "/dev/shm"].map(|folder| format!("{folder}/{name}.socket").into())
}

fn serve(field: &Field) -> std::io::Result<()> {
    for path in places(&support::token(field)) {
        field.keep(support::Removed(path.clone()));
        field.keep(support::Removed(path.with_extension("datagrams")));
        support::serve(field, &path)?;
    }
    field.tell("name", support::token(field));
    Ok(())
}

pub const ATTACK: Attack = Attack {
    id: "files/sockets_of_services",
    wall: Wall::Network,
    about: "reach a service of the host at its socket in /run, /tmp or /dev/shm",
    flags: &[],
    prepare: serve,
    inside: |inside| {
        let name = inside.hint("name")?;
        let aliases = ["/var/run", "/var/tmp", "/proc/1/root/run", "/proc/self/root/run"]
            .map(|folder| format!("{folder}/{name}.socket").into());
        support::any(places(name).iter().chain(&aliases).map(|path| support::reach(path)))
    },
    judge: Some(support::nobody_connected),
    control: Control::Bare,
};
