//! A file without a name, mapped and then closed: in no list of open files, and no private memory.

use model::Wall;

use super::support::{self, TOO_MUCH};
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "resources/memory_closed_file",
    wall: Wall::Memory,
    about: "keep 200 MiB in a memfd that is mapped and closed, with --memory 64M",
    // Files in memory are files too: the limit on their size is not what is tried here.
    flags: &["--memory", "64M", "--disk", "1G"],
    prepare: |_| Ok(()),
    inside: |inside| {
        support::at_the_brink(inside)?;
        let file = support::unnamed_file()?;
        rustix::fs::ftruncate(&file, TOO_MUCH as u64)?;
        support::fill_mapping(TOO_MUCH, libc::MAP_SHARED, Some(file))?;
        support::pause(support::UNTIL_SEEN);
        inside.loot("200 MiB in a mapped file that is closed")
    },
    judge: Some(support::stopped_for_memory),
    control: Control::Bare,
};
