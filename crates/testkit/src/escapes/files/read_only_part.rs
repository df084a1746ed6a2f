//! Changes a part of the workspace that is granted for reading only.

use std::fs;

use model::Wall;

use super::support;
use crate::{Attack, Control, Verdict};

pub const ATTACK: Attack = Attack {
    id: "files/read_only_part",
    wall: Wall::Files,
    about: "change, replace, move or add to a read-only part of the workspace",
    flags: &["--read", "part"],
    prepare: |field| support::put_in_workspace(field, "part/file", "untouched").map(drop),
    inside: |inside| {
        let here = |name: &str| inside.workspace.join(name);
        let second_name = || {
            fs::hard_link(here("part/file"), here("second-name"))?;
            support::overwrite(&here("second-name"))
        };
        let copied = || {
            fs::create_dir(here("copy"))?;
            fs::write(here("copy/file"), "changed")?;
            let (one, other) = (support::c_text(here("copy")), support::c_text(here("part")));
            let cwd = libc::AT_FDCWD as u64;
            let exchange = u64::from(libc::RENAME_EXCHANGE);
            crate::inside::call(
                libc::SYS_renameat2,
                [cwd, one.as_ptr() as u64, cwd, other.as_ptr() as u64, exchange, 0],
            )
            .map(drop)
        };
        support::any([
            second_name(),
            support::overwrite(&here("part/file")),
            fs::write(here("part/new"), "made"),
            copied(),
            fs::remove_file(here("part/file")),
            fs::rename(here("part"), here("moved")),
        ])
    },
    judge: Some(|field, _| {
        let part = field.workspace.join("part");
        let same = fs::read(part.join("file")).is_ok_and(|contents| contents == b"untouched");
        match same && fs::read_dir(part).is_ok_and(|entries| entries.count() == 1) {
            true => Verdict::Held,
            false => Verdict::Broken("the read-only part was changed".to_owned()),
        }
    }),
    control: Control::Bare,
};
