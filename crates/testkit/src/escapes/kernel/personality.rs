//! Takes on another personality: one whose memory is all executable, or has a page at zero.

use model::Wall;

use super::support::{in_child, judge_by_loot};
use crate::inside::call;
use crate::{Attack, Control};

const ASK: u64 = 0xffff_ffff;

pub const ATTACK: Attack = Attack {
    id: "kernel/personality",
    wall: Wall::SystemCalls,
    about: "set READ_IMPLIES_EXEC, MMAP_PAGE_ZERO and other flags of personality(2)",
    flags: &[],
    prepare: |_| Ok(()),
    inside: |inside| {
        for flags in [0x0400_0000u64, 0x0010_0000, 0x0020_0000, 0x0800_0000, 0x0100_0000, 0x0008, 0x0440_0000] {
            for high in [0, 1 << 32] {
                let change = || {
                    let changed = call(libc::SYS_personality, [flags | high, 0, 0, 0, 0, 0]).is_ok();
                    let now = call(libc::SYS_personality, [ASK, 0, 0, 0, 0, 0]).unwrap_or_default();
                    i32::from(!changed || now & flags != flags)
                };
                if in_child(change)? == Some(0) {
                    inside.loot(format!("{flags:#x}\n"))?;
                }
            }
        }
        Ok(())
    },
    judge: Some(judge_by_loot),
    control: Control::Bare,
};
