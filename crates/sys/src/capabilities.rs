//! Capabilities: giving up all of them, from every set, for good.

use std::io;

use crate::checked;
use crate::process::prctl;

const VERSION_3: u32 = 0x2008_0522;

#[repr(C)]
struct Header {
    version: u32,
    pid: i32,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Data {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

// securebits: neither user id 0, nor a change of user, nor an ambient raise gives a capability; all locked.
const NO_ROOT: u64 = 1 << 0 | 1 << 1;
const NO_SETUID_FIXUP: u64 = 1 << 2 | 1 << 3;
const NO_AMBIENT_RAISE: u64 = 1 << 6 | 1 << 7;

/// Empties the bounding, ambient, inheritable, permitted and effective sets, in the order that works.
pub fn drop_all() -> io::Result<()> {
    prctl(libc::PR_SET_SECUREBITS, NO_ROOT | NO_SETUID_FIXUP | NO_AMBIENT_RAISE)?;
    drop_bounding()?;
    prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL as u64)?;
    drop_current()
}

/// The same where the kernel is gVisor's, which has neither securebits nor ambient capabilities. Whoever is not root, may
/// gain no privileges and is bounded by nothing gets none either.
pub fn drop_all_in_a_guest() -> io::Result<()> {
    drop_bounding()?;
    match prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL as u64) {
        Err(error) if error.raw_os_error() != Some(libc::EINVAL) => return Err(error),
        _ => {}
    }
    drop_current()
}

fn drop_bounding() -> io::Result<()> {
    for capability in 0.. {
        // The kernel's last capability is the last number it does not call invalid.
        match prctl(libc::PR_CAPBSET_DROP, capability) {
            Ok(()) => {}
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) && capability > 0 => break,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Empties the sets of this process that can be emptied without any privilege.
pub fn drop_current() -> io::Result<()> {
    let header = Header { version: VERSION_3, pid: 0 };
    let data = [Data::default(); 2];
    // SAFETY: version 3 reads one header and two data records, which outlive the call.
    checked(unsafe { libc::syscall(libc::SYS_capset, &raw const header, data.as_ptr()) }).map(drop)
}

/// Holds these from here on and no others, of those that this process may hold.
pub fn hold_only(capabilities: &[u32]) -> io::Result<()> {
    let header = Header { version: VERSION_3, pid: 0 };
    let mut data = [Data::default(); 2];
    for capability in capabilities {
        if let Some(word) = data.get_mut(*capability as usize / 32) {
            word.effective |= 1 << (capability % 32);
            word.permitted |= 1 << (capability % 32);
        }
    }
    // SAFETY: version 3 reads one header and two data records, which outlive the call.
    checked(unsafe { libc::syscall(libc::SYS_capset, &raw const header, data.as_ptr()) }).map(drop)
}

/// A change of user from here on leaves what may be held as it is, though it is held no more.
pub fn keep_over_change_of_user() -> io::Result<()> {
    prctl(libc::PR_SET_KEEPCAPS, 1)
}

/// Whether this process holds `capability` right now.
pub fn holds(capability: u32) -> io::Result<bool> {
    let header = Header { version: VERSION_3, pid: 0 };
    let mut data = [Data::default(); 2];
    // SAFETY: version 3 reads one header and writes two data records, which outlive the call.
    checked(unsafe { libc::syscall(libc::SYS_capget, &raw const header, data.as_mut_ptr()) })?;
    Ok(data.get(capability as usize / 32).is_some_and(|word| word.effective & (1 << (capability % 32)) != 0))
}

pub const KILL: u32 = 5;
pub const SETGID: u32 = 6;
pub const SETUID: u32 = 7;
pub const SYS_ADMIN: u32 = 21;
