//! Moves a file from outside into the workspace, or swaps it for one of the workspace's.

use std::fs;

use model::Wall;

use super::support;
use crate::inside::call;
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "files/rename_in",
    wall: Wall::Files,
    about: "move a file from outside into the workspace, or exchange it for another",
    flags: &[],
    prepare: |_| Ok(()),
    inside: |inside| {
        let own = inside.workspace.join("own");
        fs::write(&own, "of no worth")?;
        let (from, to) = (support::c_text(inside.secret_file()), support::c_text(&own));
        let (from, to, here) = (from.as_ptr() as u64, to.as_ptr() as u64, libc::AT_FDCWD as u64);
        let exchange = u64::from(libc::RENAME_EXCHANGE);
        // Each is read at once: the next would undo it.
        support::any([
            call(libc::SYS_renameat2, [here, from, here, to, exchange, 0]).and_then(|_| inside.steal(&own)),
            fs::rename(inside.secret_file(), &own).and_then(|()| inside.steal(&own)),
            fs::rename(&inside.outside, inside.workspace.join("folder"))
                .and_then(|()| inside.steal(inside.workspace.join("folder/secret"))),
        ])
    },
    judge: None,
    control: Control::Bare,
};
