//! A file of a terabyte with nothing in it, for whoever copies it out.

use std::fs::{self, File};

use model::Wall;

use crate::{Attack, Control, Verdict};

pub const ATTACK: Attack = Attack {
    id: "resources/sparse_file",
    wall: Wall::Disk,
    about: "make a sparse file of 1 TiB in the workspace with --disk 16M",
    flags: &["--disk", "16M"],
    prepare: |_| Ok(()),
    inside: |inside| {
        // SAFETY: ignoring is always valid; a too large file is then an error rather than the end.
        unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
        File::create(inside.workspace.join("sparse"))?.set_len(1 << 40)
    },
    judge: Some(|field, _| match fs::metadata(field.workspace.join("sparse")) {
        Ok(stat) if stat.len() > 1 << 30 => Verdict::Broken(format!("a file of {} bytes", stat.len())),
        _ => Verdict::Held,
    }),
    control: Control::Bare,
};
