//! A folder that not even its owner may read can't be counted by that owner.

use std::fs::{self, File, Permissions};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;

use model::Wall;

use super::support::{self, MIB};
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "resources/disk_closed_folder",
    wall: Wall::Disk,
    about: "write 64 MiB to a folder of mode 000 with --disk 16M",
    flags: &["--disk", "16M"],
    prepare: support::alone_on_the_disk,
    inside: |inside| {
        support::at_the_brink(inside)?;
        let folder = inside.workspace.join("closed");
        fs::create_dir(&folder)?;
        let parts: std::io::Result<Vec<OwnedFd>> =
            (0..8).map(|number| Ok(File::create(folder.join(format!("part-{number}")))?.into())).collect();
        let parts = parts?;
        fs::set_permissions(&folder, Permissions::from_mode(0o000))?;
        let filled = parts.iter().try_for_each(|part| support::fill_file(part, 8 * MIB));
        support::pause(support::UNTIL_SEEN * 2);
        fs::set_permissions(&folder, Permissions::from_mode(0o700))?;
        filled?;
        inside.loot("64 MiB in a closed folder")
    },
    judge: Some(support::stopped_for_disk),
    control: Control::Bare,
};
