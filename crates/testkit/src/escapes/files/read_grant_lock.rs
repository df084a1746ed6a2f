//! Locks a file that is granted for reading: whoever locks it on the host then has to wait.

use std::fs;

use model::Wall;

use super::support;
use crate::{Attack, Control, Verdict};

const WAITS: &str = "the-host-waits";

pub const ATTACK: Attack = Attack {
    id: "files/read_grant_lock",
    wall: Wall::Files,
    about: "hold up the host by a lock on a file that is granted for reading",
    flags: &["--read", "../outside"],
    prepare: |field| {
        let (target, trace) = (field.outside.join("target"), field.root.join(WAITS));
        support::once_ready(field, move || match fs::File::open(target)?.try_lock() {
            Err(fs::TryLockError::WouldBlock) => fs::write(trace, ""),
            Err(fs::TryLockError::Error(error)) => Err(error),
            Ok(()) => Ok(()),
        });
        Ok(())
    },
    inside: |inside| {
        let file = fs::File::open(inside.target_file())?;
        file.lock()?;
        support::let_the_host_act(inside)
    },
    judge: Some(|field, _| match field.root.join(WAITS).exists() {
        true => Verdict::Broken("the host could not lock its own file".to_owned()),
        false => Verdict::Held,
    }),
    control: Control::Bare,
};
