//! Reads the names of the user's keys, which say what there is to steal, in /proc.

use std::fs;

use model::Wall;

use super::session_key::add_key;
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "kernel/key_names",
    wall: Wall::Inheritance,
    about: "read in /proc/keys what keys the caller's user has",
    flags: &[],
    prepare: |field| add_key(field, &field.secret),
    inside: |inside| inside.loot(fs::read("/proc/keys")?),
    judge: None,
    control: Control::Bare,
};
