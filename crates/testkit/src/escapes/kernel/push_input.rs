//! Pushes bytes into a terminal's input as if they had been typed, with the command written in more than one way.

use std::ffi::CStr;
use std::io;

use model::Wall;

use super::support::{in_child, judge_by_loot};
use crate::inside::call;
use crate::{Attack, Control};

const PUSH: u64 = 0x5412;

pub const ATTACK: Attack = Attack {
    id: "kernel/push_input",
    wall: Wall::Terminal,
    about: "push input into a terminal with TIOCSTI, also with the high half of the command set",
    flags: &[],
    prepare: |_| Ok(()),
    inside: |inside| {
        for command in [PUSH, PUSH | 1 << 32, PUSH | 0xffff_ffff << 32] {
            if in_child(|| i32::from(!pushed(command).unwrap_or(false)))? == Some(0) {
                inside.loot(format!("{command:#x} typed a line\n"))?;
            }
        }
        Ok(())
    },
    judge: Some(judge_by_loot),
    control: Control::Bare,
};

/// On a terminal of its own that is also its controlling one. True if the line can be read back.
fn pushed(command: u64) -> io::Result<bool> {
    let terminal = own_terminal()?;
    for letter in *b"x\n" {
        call(libc::SYS_ioctl, [terminal as u64, command, &raw const letter as u64, 0, 0, 0])?;
    }
    let mut line = [0u8; 8];
    // SAFETY: reads into a local that outlives the call; the terminal does not block.
    let count = unsafe { libc::read(terminal, line.as_mut_ptr().cast(), line.len()) };
    Ok(count == 2 && line.starts_with(b"x\n"))
}

/// For a process that leads its session: a new terminal, taken as its controlling one.
pub fn own_terminal() -> io::Result<i32> {
    // SAFETY: a new pair of a terminal; its name is static memory of the C library, and this is the only thread.
    unsafe {
        let outer = libc::posix_openpt(libc::O_RDWR | libc::O_NOCTTY);
        if outer < 0 || libc::grantpt(outer) < 0 || libc::unlockpt(outer) < 0 {
            return Err(io::Error::last_os_error());
        }
        let name = libc::ptsname(outer);
        if name.is_null() {
            return Err(io::Error::last_os_error());
        }
        let inner = libc::open(CStr::from_ptr(name).as_ptr(), libc::O_RDWR | libc::O_NONBLOCK);
        if inner < 0 || libc::ioctl(inner, libc::TIOCSCTTY, 0) < 0 && libc::tcgetsid(inner) != libc::getpid() {
            return Err(io::Error::last_os_error());
        }
        Ok(inner)
    }
}
