//! Who a process is: user and group maps, the switch to a mapped identity, the session keyring.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags};
use serde::{Deserialize, Serialize};

use crate::checked;
use crate::process::{self, Alone, Forked, Namespaces};

/// One line of a user or group map: `inside` in the new namespace is `outside` in its parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mapping {
    pub inside: u32,
    pub outside: u32,
}

impl Mapping {
    fn line(self) -> ([u8; 32], usize) {
        // By hand, because a forked child must not allocate.
        let mut line = [0u8; 32];
        let mut length = 0;
        for (number, after) in [(self.inside, b' '), (self.outside, b' '), (1, b'\n')] {
            let mut digits = [0u8; 10];
            let mut count = 0;
            let mut rest = number;
            loop {
                digits[count] = b'0' + (rest % 10) as u8;
                count += 1;
                rest /= 10;
                if rest == 0 {
                    break;
                }
            }
            while count > 0 {
                count -= 1;
                line[length] = digits[count];
                length += 1;
            }
            line[length] = after;
            length += 1;
        }
        (line, length)
    }
}

/// Writes our own maps. An ordinary user may map only itself, and must give up `setgroups` for it.
pub fn map_self(user: Mapping, group: Mapping) -> io::Result<()> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    map_self_at(rustix::fs::open(c"/proc/self", flags, Mode::empty())?.as_fd(), user, group)
}

/// The same, with our folder in some /proc already open.
pub fn map_self_at(own: BorrowedFd<'_>, user: Mapping, group: Mapping) -> io::Result<()> {
    let (line, length) = user.line();
    write_once(own, c"uid_map", &line[..length])?;
    write_once(own, c"setgroups", b"deny")?;
    let (line, length) = group.line();
    write_once(own, c"gid_map", &line[..length])
}

/// The same where the kernel is gVisor's, which has no `setgroups` to give up.
pub fn map_self_in_a_guest(user: Mapping, group: Mapping) -> io::Result<()> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let own = rustix::fs::open(c"/proc/self", flags, Mode::empty())?;
    let (line, length) = user.line();
    write_once(own.as_fd(), c"uid_map", &line[..length])?;
    match write_once(own.as_fd(), c"setgroups", b"deny") {
        Err(error) if !matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied) => {
            return Err(error);
        }
        _ => {}
    }
    let (line, length) = group.line();
    write_once(own.as_fd(), c"gid_map", &line[..length])
}

/// Writes the maps of `pid`, which takes privilege over both identities.
pub fn map_other(pid: i32, user: Mapping, group: Mapping) -> io::Result<()> {
    let folder = Path::new("/proc").join(pid.to_string());
    let (line, length) = user.line();
    write_once(CWD, folder.join("uid_map"), &line[..length])?;
    let (line, length) = group.line();
    write_once(CWD, folder.join("gid_map"), &line[..length])
}

/// A user namespace that nobody lives in, for mounts whose owners are to be seen through its maps.
pub fn namespace_mapping(user: Mapping, group: Mapping, alone: Alone) -> io::Result<OwnedFd> {
    let (ear, line) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    let namespaces = Namespaces { user: true, ..Namespaces::NONE };
    let pid = match process::fork_into(alone, namespaces, None)? {
        Forked::Child => {
            // Only there to keep the namespace until it is opened: until the other end closes, or is gone with us.
            drop(line);
            let mut byte = [0u8; 1];
            while matches!(rustix::io::read(&ear, &mut byte), Err(rustix::io::Errno::INTR)) {}
            process::exit(0)
        }
        Forked::Parent { pid, .. } => pid,
    };
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let opened = map_other(pid, user, group)
        .and_then(|()| Ok(rustix::fs::open(format!("/proc/{pid}/ns/user"), flags, Mode::empty())?));
    drop(line);
    process::wait(pid, false)?;
    opened
}

/// Opens, writes once, closes: the kernel reads these files whole, in one write.
pub fn write_once(folder: BorrowedFd<'_>, path: impl rustix::path::Arg, bytes: &[u8]) -> io::Result<()> {
    let file = rustix::fs::openat(folder, path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    let written = rustix::io::write(&file, bytes)?;
    if written == bytes.len() { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
}

/// Becomes `user` and `group` of the current namespace for good, in no other group.
pub fn become_only(user: u32, group: u32) -> io::Result<()> {
    // SAFETY: a null list of length zero is valid; the others take integers. Straight to the kernel, because
    // the C library's wrappers would try to change threads that a forked child does not have.
    unsafe {
        checked(libc::syscall(libc::SYS_setgroups, 0, std::ptr::null::<libc::gid_t>()))?;
        checked(libc::syscall(libc::SYS_setresgid, group, group, group))?;
        checked(libc::syscall(libc::SYS_setresuid, user, user, user))?;
    }
    Ok(())
}

/// A fresh, empty session keyring: keys of the caller's session can't be found from here on.
pub fn join_new_keyring() -> io::Result<()> {
    const KEYCTL_JOIN_SESSION_KEYRING: libc::c_long = 1;
    // SAFETY: a null name asks for an anonymous keyring; nothing of ours is read.
    match checked(unsafe {
        libc::syscall(libc::SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, std::ptr::null::<libc::c_char>())
    }) {
        Ok(_) => Ok(()),
        // A kernel built without keyrings has none to leave.
        Err(error) if error.raw_os_error() == Some(libc::ENOSYS) => Ok(()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapping_is_written_as_the_kernel_reads_it() {
        let (line, length) = Mapping { inside: 0, outside: u32::MAX }.line();
        assert_eq!(&line[..length], b"0 4294967295 1\n");
        let (line, length) = Mapping { inside: 1000, outside: 1000 }.line();
        assert_eq!(&line[..length], b"1000 1000 1\n");
    }
}
