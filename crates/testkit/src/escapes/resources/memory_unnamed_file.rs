//! A file without a name, written and never mapped: memory that belongs to no mapping.

use model::Wall;

use super::support::{self, TOO_MUCH};
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "resources/memory_unnamed_file",
    wall: Wall::Memory,
    about: "write 200 MiB to a memfd with --memory 64M",
    // Files in memory are files too: the limit on their size is not what is tried here.
    flags: &["--memory", "64M", "--disk", "1G"],
    prepare: |_| Ok(()),
    inside: |inside| {
        support::at_the_brink(inside)?;
        let file = support::unnamed_file()?;
        support::fill_file(&file, TOO_MUCH)?;
        support::pause(support::UNTIL_SEEN);
        inside.loot("200 MiB in a file without a name")
    },
    judge: Some(support::stopped_for_memory),
    control: Control::Bare,
};
