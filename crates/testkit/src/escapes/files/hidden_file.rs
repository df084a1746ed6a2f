//! Reads a hidden file of the workspace by every name and detour.

use std::fs;
use std::os::fd::AsRawFd;
use std::os::unix::fs::symlink;

use model::Wall;

use super::support;
use crate::inside::call;
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "files/hidden_file",
    wall: Wall::Files,
    about: "read a hidden file of the workspace by other names, links, moves and copies",
    flags: &["--hide", "hidden"],
    prepare: |field| support::put_in_workspace(field, "hidden", &field.secret).map(drop),
    inside: |inside| {
        let here = |name: &str| inside.workspace.join(name);
        let hidden = here("hidden");
        let alias = format!("/proc/self/root{}", hidden.display());
        symlink("hidden", here("link"))?;
        fs::write(here("other"), "of no worth")?;
        let (one, other) = (support::c_text(&hidden), support::c_text(here("other")));
        let cwd = libc::AT_FDCWD as u64;
        let exchange = u64::from(libc::RENAME_EXCHANGE);
        let folder = fs::File::open(&inside.workspace)?;
        support::any([
            inside.steal(&hidden),
            inside.steal(alias),
            inside.steal("/proc/self/cwd/hidden"),
            inside.steal(format!("/proc/self/fd/{}/hidden", folder.as_raw_fd())),
            inside.steal(here("link")),
            fs::hard_link(&hidden, here("second-name")).and_then(|()| inside.steal(here("second-name"))),
            call(libc::SYS_renameat2, [cwd, one.as_ptr() as u64, cwd, other.as_ptr() as u64, exchange, 0])
                .and_then(|_| inside.steal(here("other"))),
            fs::rename(&hidden, here("moved")).and_then(|()| inside.steal(here("moved"))),
            fs::remove_file(&hidden).and_then(|()| inside.steal(&hidden)),
        ])
    },
    judge: None,
    control: Control::Bare,
};
