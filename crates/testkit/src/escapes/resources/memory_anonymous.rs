//! The plain memory hog.

use model::Wall;

use super::support::{self, TOO_MUCH};
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "resources/memory_anonymous",
    wall: Wall::Memory,
    about: "touch 200 MiB of its own with --memory 64M",
    flags: &["--memory", "64M"],
    prepare: |_| Ok(()),
    inside: |inside| {
        support::at_the_brink(inside)?;
        support::fill_mapping(TOO_MUCH, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, None)?;
        support::pause(support::UNTIL_SEEN);
        inside.loot("200 MiB of its own")
    },
    judge: Some(support::stopped_for_memory),
    control: Control::Bare,
};
