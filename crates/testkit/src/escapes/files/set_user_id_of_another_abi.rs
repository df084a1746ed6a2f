//! Leaves a set-user-id file in the workspace by the calls of 32-bit programs, whose numbers are others.

use std::fs;
use std::io;

use model::Wall;

use super::support;
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "files/set_user_id_of_another_abi",
    wall: Wall::SystemCalls,
    about: "leave a set-user-id file on the host by the calls of 32-bit programs",
    flags: &[],
    prepare: |_| Ok(()),
    inside: |inside| {
        let file = inside.workspace.join("made-by-another-abi");
        fs::write(&file, "")?;
        change_mode(&support::c_text(file), 0o4755)
    },
    judge: Some(|field, _| support::without_bits(field, 0o6000)),
    control: if cfg!(target_arch = "x86_64") { Control::Bare } else { Control::None("no second ABI here") },
};

#[cfg(target_arch = "x86_64")]
fn change_mode(path: &std::ffi::CStr, mode: u32) -> io::Result<()> {
    const CHMOD: i32 = 15;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_32BIT;
    // SAFETY: a fresh page, below 4 GiB because such pointers are all that this ABI can pass.
    let page = unsafe { libc::mmap(std::ptr::null_mut(), 4096, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
    if page == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    let bytes = path.to_bytes_with_nul();
    let mut result: i32 = CHMOD;
    // SAFETY: the path fits the page, being a path; the call reads it and nothing else of ours, and the registers
    // that it may change are named.
    unsafe {
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), page.cast(), bytes.len());
        std::arch::asm!(
            "push rbx",
            "mov rbx, {path}",
            "int 0x80",
            "pop rbx",
            path = in(reg) page as u64,
            inout("eax") result,
            in("ecx") mode,
            out("r8") _, out("r9") _, out("r10") _, out("r11") _,
        );
    }
    if result < 0 { Err(io::Error::from_raw_os_error(-result)) } else { Ok(()) }
}

#[cfg(not(target_arch = "x86_64"))]
fn change_mode(_: &std::ffi::CStr, _: u32) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
