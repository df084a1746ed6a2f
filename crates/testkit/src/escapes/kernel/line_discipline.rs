//! Changes the protocol that a terminal's line speaks, which loads and runs rarely used kernel code.

use model::Wall;

use super::push_input::own_terminal;
use super::support::{in_child, is_refusal, judge_by_loot};
use crate::inside::call;
use crate::{Attack, Control};

const SET: u64 = 0x5423;
const LINUX: u64 = 0x541c;

pub const ATTACK: Attack = Attack {
    id: "kernel/line_discipline",
    wall: Wall::Terminal,
    about: "reach TIOCSETD and TIOCLINUX on a terminal of its own, also with the high half of the command set",
    flags: &[],
    prepare: |_| Ok(()),
    inside: |inside| {
        for (name, command) in [("TIOCSETD", SET), ("TIOCLINUX", LINUX)] {
            for command in [command, command | 1 << 32] {
                // Zero is the ordinary protocol, and the console's function to select text.
                let argument = 0u64;
                let reached = || {
                    let asked = own_terminal().and_then(|terminal| {
                        call(libc::SYS_ioctl, [terminal as u64, command, &raw const argument as u64, 0, 0, 0])
                    });
                    i32::from(asked.is_err_and(|error| is_refusal(error.raw_os_error().unwrap_or(libc::EPERM))))
                };
                if in_child(reached)? == Some(0) {
                    inside.loot(format!("{name} as {command:#x}\n"))?;
                }
            }
        }
        Ok(())
    },
    judge: Some(judge_by_loot),
    control: Control::Bare,
};
