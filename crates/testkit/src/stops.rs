//! Ends a program right before one of its calls that change something on disk: the first, the second, and so on. What
//! `kill -9` can leave is what one of these leaves, but for what is written through mapped memory. A power failure can
//! leave more: what was written and not yet on disk is not lost here.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use crate::project::Said;

/// How it went.
#[derive(Debug)]
pub enum Ended {
    /// Killed before this call.
    Killed(String),
    /// There were fewer calls.
    ByItself(Said),
}

/// Runs it up to its call `number`, counted from 0.
pub fn before_call(command: &mut Command, number: usize) -> io::Result<Ended> {
    // SAFETY: one system call, which takes integers; nothing is allocated after the fork.
    unsafe {
        command.pre_exec(|| match libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        });
    }
    // Nobody reads while it stops: what it says must fit into a pipe, and does.
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let pid = child.id() as libc::pid_t;
    let mut waiting = number;
    // It stops when it becomes the program.
    wait(pid)?;
    let options = libc::PTRACE_O_TRACESYSGOOD | libc::PTRACE_O_EXITKILL;
    trace(libc::PTRACE_SETOPTIONS, pid, options as usize)?;
    let mut deliver = 0;
    loop {
        trace(libc::PTRACE_SYSCALL, pid, deliver)?;
        let status = match wait(pid)? {
            ended if libc::WIFEXITED(ended) || libc::WIFSIGNALED(ended) => {
                return said(child, ended).map(Ended::ByItself);
            }
            stopped => stopped,
        };
        let signal = libc::WSTOPSIG(status);
        if signal != libc::SIGTRAP | 0x80 {
            deliver = if signal == libc::SIGTRAP { 0 } else { signal as usize };
            continue;
        }
        deliver = 0;
        let Some(name) = changing_call(pid)? else { continue };
        if waiting > 0 {
            waiting -= 1;
            continue;
        }
        let mut child = child;
        child.kill()?;
        wait(pid)?;
        return Ok(Ended::Killed(name.to_owned()));
    }
}

fn said(mut child: Child, status: i32) -> io::Result<Said> {
    let (mut out, mut error) = (Vec::new(), String::new());
    if let (Some(from), Some(also)) = (child.stdout.as_mut(), child.stderr.as_mut()) {
        io::Read::read_to_end(from, &mut out)?;
        io::Read::read_to_string(also, &mut error)?;
    }
    Ok(Said { code: libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status)), out, error })
}

fn wait(pid: libc::pid_t) -> io::Result<i32> {
    let mut status = 0;
    // SAFETY: writes one integer, which lives through the call.
    match unsafe { libc::waitpid(pid, &mut status, libc::__WALL) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(status),
    }
}

fn trace(request: impl TryInto<u16>, pid: libc::pid_t, data: usize) -> io::Result<()> {
    // Of another width in each C library.
    let request = request.try_into().map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    // SAFETY: these requests take integers.
    match unsafe { libc::ptrace(request.into(), pid, 0usize, data) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// The call that begins, if it is one that changes something.
fn changing_call(pid: libc::pid_t) -> io::Result<Option<&'static str>> {
    // `struct ptrace_syscall_info`, which only one C library knows: the kind is its first byte; at the entry of a call its
    // number and arguments begin with the fourth word.
    const GET_SYSCALL_INFO: u16 = 0x420e;
    const ENTRY: u8 = 1;
    let mut info = [0u64; 12];
    // SAFETY: the kernel writes at most as many bytes to `info`, which lives through the call.
    if unsafe { libc::ptrace(GET_SYSCALL_INFO.into(), pid, size_of_val(&info), &raw mut info) } == -1 {
        return Err(io::Error::last_os_error());
    }
    if info[0].to_ne_bytes()[0] != ENTRY {
        return Ok(None);
    }
    let (call, arguments) = (info[3], &info[4..10]);
    let creates = |flags: u64| flags & libc::O_CREAT as u64 != 0;
    let opens = call == libc::SYS_openat as u64 && creates(arguments[2]);
    let known = CHANGING.iter().find(|(number, _)| *number as u64 == call).map(|(_, name)| *name);
    Ok(if opens { Some("openat") } else { known })
}

const CHANGING: &[(libc::c_long, &str)] = &[
    (libc::SYS_write, "write"),
    (libc::SYS_writev, "writev"),
    (libc::SYS_pwrite64, "pwrite64"),
    (libc::SYS_copy_file_range, "copy_file_range"),
    (libc::SYS_sendfile, "sendfile"),
    (libc::SYS_ftruncate, "ftruncate"),
    (libc::SYS_fsync, "fsync"),
    (libc::SYS_fdatasync, "fdatasync"),
    (libc::SYS_syncfs, "syncfs"),
    (libc::SYS_renameat, "renameat"),
    (libc::SYS_renameat2, "renameat2"),
    (libc::SYS_unlinkat, "unlinkat"),
    (libc::SYS_mkdirat, "mkdirat"),
    (libc::SYS_symlinkat, "symlinkat"),
    (libc::SYS_linkat, "linkat"),
    (libc::SYS_fchmod, "fchmod"),
    (libc::SYS_fchmodat, "fchmodat"),
    (libc::SYS_fchown, "fchown"),
    (libc::SYS_fchownat, "fchownat"),
    (libc::SYS_utimensat, "utimensat"),
    (libc::SYS_fsetxattr, "fsetxattr"),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_rename, "rename"),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_unlink, "unlink"),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mkdir, "mkdir"),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_rmdir, "rmdir"),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chmod, "chmod"),
];
