//! A process whose name is no text: whoever reads its records as text reads nothing.

use model::Wall;

use super::support::{self, TOO_MUCH};
use crate::inside::call;
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "resources/memory_no_text_name",
    wall: Wall::Memory,
    about: "touch 200 MiB in a process whose name is no text, with --memory 64M",
    flags: &["--memory", "64M"],
    prepare: |_| Ok(()),
    inside: |inside| {
        support::at_the_brink(inside)?;
        let name = c"\xff\xfe\x80";
        call(libc::SYS_prctl, [libc::PR_SET_NAME as u64, name.as_ptr() as u64, 0, 0, 0, 0])?;
        support::fill_mapping(TOO_MUCH, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, None)?;
        support::pause(support::UNTIL_SEEN);
        inside.loot("200 MiB under a name that is no text")
    },
    judge: Some(support::stopped_for_memory),
    control: Control::Bare,
};
