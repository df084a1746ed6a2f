//! Makes an io_uring, which does what a call filter never sees.

use model::Wall;

use crate::inside::call;
use crate::{Attack, Control, Verdict};

pub const ATTACK: Attack = Attack {
    id: "kernel/io_uring",
    wall: Wall::SystemCalls,
    about: "make an io_uring, whose work no call filter sees",
    flags: &[],
    prepare: |_| Ok(()),
    inside: |inside| {
        let mut parameters = [0u8; 120];
        call(libc::SYS_io_uring_setup, [1, parameters.as_mut_ptr() as u64, 0, 0, 0, 0])?;
        inside.loot("a ring")
    },
    judge: Some(|field, _| match field.loot().is_empty() {
        true => Verdict::Held,
        false => Verdict::Broken("a ring was made".to_owned()),
    }),
    control: Control::Bare,
};
