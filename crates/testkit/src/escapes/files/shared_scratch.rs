//! Reads what others have put in /tmp, /var/tmp and /dev/shm.

use model::Wall;

use super::support;
use crate::{Attack, Control};

const FOLDERS: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];

pub const ATTACK: Attack = Attack {
    id: "files/shared_scratch",
    wall: Wall::Files,
    about: "read what others have put in /tmp, /var/tmp and /dev/shm",
    flags: &[],
    prepare: |field| {
        let name = support::token(field);
        field.tell("name", &name);
        support::bait(field, &FOLDERS.map(|folder| format!("{folder}/{name}").into()))
    },
    inside: |inside| {
        let name = inside.hint("name")?;
        let aliases = ["/run/shm", "/proc/self/root/tmp", "/proc/1/root/dev/shm", "/usr/tmp"];
        let folders = FOLDERS.iter().chain(&aliases);
        support::steal_any(inside, folders.map(|folder| format!("{folder}/{name}").into()))
    },
    judge: None,
    control: Control::Bare,
};
