//! Fills /tmp.

use std::fs::{self, File};

use model::Wall;

use super::support::{self, MIB};
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "resources/disk_tmp",
    wall: Wall::Disk,
    about: "write 32 MiB to /tmp with --disk 8M",
    flags: &["--disk", "8M"],
    prepare: support::alone_on_the_disk,
    inside: |inside| {
        let path = format!("/tmp/escape-{}", std::process::id());
        let file = File::create(&path)?.into();
        // SAFETY: ignoring is always valid; a too large file is then an error rather than the end.
        unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
        let filled = support::fill_file(&file, 32 * MIB);
        fs::remove_file(&path)?;
        filled?;
        inside.loot("32 MiB in /tmp")
    },
    judge: Some(support::nothing_was_gained),
    control: Control::Bare,
};
