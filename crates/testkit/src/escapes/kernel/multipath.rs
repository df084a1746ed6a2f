//! Makes a multipath TCP socket: much new code behind an ordinary family.

use model::Wall;

use super::support::judge_by_loot;
use crate::inside::call;
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "kernel/multipath",
    wall: Wall::SystemCalls,
    about: "make a multipath TCP socket, also with rubbish in the high halves",
    flags: &[],
    prepare: |_| Ok(()),
    inside: |inside| {
        let mut refused = Ok(());
        for family in [2, 10] {
            for high in [0, 1 << 32] {
                match call(libc::SYS_socket, [family, 1, 262 | high, 0, 0, 0]) {
                    Ok(_) => inside.loot(format!("family {family}\n"))?,
                    Err(error) => refused = Err(error),
                }
            }
        }
        refused
    },
    judge: Some(judge_by_loot),
    control: Control::Bare,
};
