//! Reads a credential store that the host makes while the sandbox runs, in a home that is granted whole.

use std::fs;

use model::Wall;

use super::support;
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "files/stores_made_later",
    wall: Wall::Files,
    about: "read a credential store in a granted home that the host makes only later",
    flags: &["--read", "/root", "--read", "/home/belljar-test"],
    prepare: |field| {
        let store = support::home(field.who).join(".databrickscfg");
        field.tell("store", store.display());
        // What is there already is somebody's.
        if store.exists() {
            return Err(std::io::ErrorKind::AlreadyExists.into());
        }
        field.keep(support::Removed(store.clone()));
        let contents = field.secret.clone();
        support::once_ready(field, move || fs::write(store, contents));
        Ok(())
    },
    inside: |inside| {
        support::let_the_host_act(inside)?;
        inside.steal(inside.hint("store")?)
    },
    judge: None,
    control: Control::Bare,
};
