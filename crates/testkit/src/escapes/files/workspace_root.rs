//! Replaces the workspace itself by a link, for whoever comes to fetch what was made there.

use std::fs;
use std::os::unix::fs::symlink;

use model::Wall;

use super::support;
use crate::inside::call;
use crate::{Attack, Control, Verdict};

pub const ATTACK: Attack = Attack {
    id: "files/workspace_root",
    wall: Wall::Files,
    about: "move the workspace itself away and leave a link in its place",
    flags: &[],
    prepare: |_| Ok(()),
    inside: |inside| {
        let away = inside.workspace.with_extension("moved");
        let (one, other) = (support::c_text(&inside.workspace), support::c_text(&inside.outside));
        let cwd = libc::AT_FDCWD as u64;
        let exchange = u64::from(libc::RENAME_EXCHANGE);
        support::any([
            fs::rename(&inside.workspace, &away).and_then(|()| symlink(&inside.outside, &inside.workspace)),
            fs::rename(".", "../elsewhere"),
            fs::remove_dir(&inside.workspace),
            call(libc::SYS_renameat2, [cwd, one.as_ptr() as u64, cwd, other.as_ptr() as u64, exchange, 0]).map(drop),
        ])
    },
    judge: Some(|field, _| {
        let a_folder = fs::symlink_metadata(&field.workspace).is_ok_and(|stat| stat.is_dir());
        match a_folder && field.workspace.join("attacker").exists() {
            true => Verdict::Held,
            false => Verdict::Broken("the workspace is another".to_owned()),
        }
    }),
    control: Control::Bare,
};
