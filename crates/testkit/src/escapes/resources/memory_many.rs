//! Many processes, each well below the limit.

use model::Wall;

use super::support::{self, MIB};
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "resources/memory_many",
    wall: Wall::Memory,
    about: "touch 25 MiB in each of 8 processes with --memory 64M",
    flags: &["--memory", "64M"],
    prepare: |_| Ok(()),
    inside: |inside| {
        support::at_the_brink(inside)?;
        let mut children = Vec::new();
        for _ in 0..8 {
            children.push(support::fork(|| {
                let filled = support::fill_mapping(25 * MIB, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, None);
                support::pause(support::UNTIL_SEEN);
                if filled.is_err() {
                    std::process::exit(1);
                }
            })?);
        }
        for child in children {
            if support::wait(child)? != 0 {
                return Err(std::io::Error::other("a child was stopped"));
            }
        }
        inside.loot("8 times 25 MiB at once")
    },
    judge: Some(support::stopped_for_memory),
    control: Control::Bare,
};
