//! Files without names, held by a process that may not be inspected: its list of open files can't be read.

use model::Wall;

use super::support;
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "resources/memory_hidden_files",
    wall: Wall::Memory,
    about: "hide 200 MiB in a memfd behind PR_SET_DUMPABLE, with --memory 64M",
    // Files in memory are files too: the limit on their size is not what is tried here.
    flags: &["--memory", "64M", "--disk", "1G"],
    prepare: |_| Ok(()),
    inside: |inside| {
        support::at_the_brink(inside)?;
        crate::inside::call(libc::SYS_prctl, [libc::PR_SET_DUMPABLE as u64, 0, 0, 0, 0, 0])?;
        let file = support::unnamed_file()?;
        support::fill_file(&file, support::TOO_MUCH)?;
        support::pause(support::UNTIL_SEEN);
        inside.loot("200 MiB in a file without a name, unseen")
    },
    judge: Some(support::stopped_for_memory),
    control: Control::Bare,
};
