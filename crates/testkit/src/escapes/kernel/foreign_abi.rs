//! Makes calls by the numbers of another ABI, where the same call has another number and filters may not look.

use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;

use model::Wall;

use crate::inside::call;
use crate::{Attack, Control, Verdict};

const X32: libc::c_long = 0x4000_0000;

pub const ATTACK: Attack = Attack {
    id: "kernel/foreign_abi",
    wall: Wall::SystemCalls,
    about: "make a folder by the 32-bit ABI's mkdir (int 0x80) and by x32's",
    flags: &[],
    prepare: |_| Ok(()),
    inside: |inside| {
        let i386 = CString::new(inside.workspace.join("by-i386").as_os_str().as_bytes())?;
        let x32 = CString::new(inside.workspace.join("by-x32").as_os_str().as_bytes())?;
        let by_x32 = call(libc::SYS_mkdir | X32, [x32.as_ptr() as u64, 0o755, 0, 0, 0, 0]);
        by_int_0x80(&i386)?;
        by_x32.map(drop)
    },
    judge: Some(|field, _| {
        let made = ["by-i386", "by-x32"].map(|name| field.workspace.join(name)).into_iter().find(|path| path.exists());
        made.map_or(Verdict::Held, |path| Verdict::Broken(format!("{} was made", path.display())))
    }),
    control: Control::Bare,
};

fn by_int_0x80(path: &CString) -> io::Result<()> {
    const MKDIR: i64 = 39;
    let bytes = path.as_bytes_with_nul();
    // SAFETY: a fresh page below 4 GiB, as long as any path; the copy fits and the kernel only reads it.
    let result = unsafe {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_32BIT;
        let low = libc::mmap(std::ptr::null_mut(), 4096, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0);
        if low == libc::MAP_FAILED || bytes.len() > 4096 {
            return Err(io::Error::last_os_error());
        }
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), low.cast(), bytes.len());
        let mut result = MKDIR;
        // The first argument's register is the compiler's own, so it is lent for the call.
        std::arch::asm!(
            "xchg rbx, {path}",
            "int 0x80",
            "xchg rbx, {path}",
            path = inout(reg) low => _,
            inout("rax") result,
            in("rcx") 0o755i64,
            out("r8") _, out("r9") _, out("r10") _, out("r11") _,
        );
        result as i32
    };
    if result < 0 { Err(io::Error::from_raw_os_error(-result)) } else { Ok(()) }
}
