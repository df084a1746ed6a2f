//! Processes: making them in fresh namespaces, waiting for them, ending them.

use std::ffi::{CStr, c_int, c_void};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use serde::{Deserialize, Serialize};

use crate::{checked, stack};

/// Which namespaces a new process gets for itself. The user namespace comes first and owns the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Namespaces {
    pub user: bool,
    pub mount: bool,
    pub pid: bool,
    pub network: bool,
    pub ipc: bool,
    pub hostname: bool,
    pub cgroup: bool,
}

impl Namespaces {
    pub const NONE: Namespaces = Namespaces {
        user: false,
        mount: false,
        pid: false,
        network: false,
        ipc: false,
        hostname: false,
        cgroup: false,
    };

    fn flags(self) -> c_int {
        let Namespaces { user, mount, pid, network, ipc, hostname, cgroup } = self;
        let flag = |wanted: bool, flag: c_int| if wanted { flag } else { 0 };
        flag(user, libc::CLONE_NEWUSER)
            | flag(mount, libc::CLONE_NEWNS)
            | flag(pid, libc::CLONE_NEWPID)
            | flag(network, libc::CLONE_NEWNET)
            | flag(ipc, libc::CLONE_NEWIPC)
            | flag(hostname, libc::CLONE_NEWUTS)
            | flag(cgroup, libc::CLONE_NEWCGROUP)
    }
}

/// Proof that this process has one thread, without which a fork may copy another thread's held lock.
#[derive(Clone, Copy, Debug)]
pub struct Alone(());

impl Alone {
    pub fn prove() -> io::Result<Alone> {
        // A directory's link count is two and one for each folder in it: here, one for each thread.
        let tasks = rustix::fs::stat("/proc/self/task")?;
        match tasks.st_nlink {
            3 => Ok(Alone(())),
            links => Err(io::Error::other(format!(
                "a sandbox can only be started from a process with one thread, and this one has {}",
                links.saturating_sub(2)
            ))),
        }
    }
}

/// Which side of a fork this is.
pub enum Forked {
    Child,
    Parent { pid: i32, handle: OwnedFd },
}

/// From linux/sched.h; the C library's own constant has too few bits for it.
const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

/// Forks into `namespaces`, the child born in the control group `cgroup` where one is given.
pub fn fork_into(_alone: Alone, namespaces: Namespaces, cgroup: Option<BorrowedFd<'_>>) -> io::Result<Forked> {
    let mut handle: c_int = -1;
    let mut flags = libc::CLONE_PIDFD as u64 | namespaces.flags() as u64;
    if cgroup.is_some() {
        flags |= CLONE_INTO_CGROUP;
    }
    let arguments = libc::clone_args {
        flags,
        pidfd: &raw mut handle as u64,
        child_tid: 0,
        parent_tid: 0,
        exit_signal: libc::SIGCHLD as u64,
        stack: 0,
        stack_size: 0,
        tls: 0,
        set_tid: 0,
        set_tid_size: 0,
        cgroup: cgroup.map_or(0, |group| group.as_raw_fd() as u64),
    };
    // SAFETY: without CLONE_VM this is a fork: the child has a copy of our memory and `arguments` outlives
    // the call. `Alone` says that no other thread held a lock that the child would wait for.
    let pid = checked(unsafe { libc::syscall(libc::SYS_clone3, &raw const arguments, size_of::<libc::clone_args>()) })?;
    if pid == 0 {
        return Ok(Forked::Child);
    }
    // SAFETY: CLONE_PIDFD made this descriptor for this call; nothing else owns it.
    let handle = unsafe { OwnedFd::from_raw_fd(handle as RawFd) };
    Ok(Forked::Parent { pid: pid as i32, handle })
}

/// Where a process may run.
pub type Processors = rustix::thread::CpuSet;

/// Has a child that was just forked run on other processors than ours, if we have several. Some kernels let it wait for ours while others
/// are idle, and take whoever is told something over a socket to the processor of who told it, where it waits until that one waits.
/// Where we may run, if there is another place: `run_anywhere` lets it.
pub fn stay_elsewhere(pid: i32) -> io::Result<Option<Processors>> {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};
    let all = sched_getaffinity(None)?;
    let here = sched_getcpu();
    if all.count() < 2 || here >= CpuSet::MAX_CPU {
        return Ok(None);
    }
    let mut others = all;
    others.unset(here);
    sched_setaffinity(rustix::process::Pid::from_raw(pid), &others)?;
    Ok(Some(all))
}

/// How many want to run just now, we among them, and how many processors there are for us. Nothing, where the kernel does not say.
pub fn who_wants_to_run() -> Option<(u32, u32)> {
    let mut text = [0; 64];
    let file = rustix::fs::open(c"/proc/loadavg", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let length = rustix::io::read(&file, &mut text).ok()?;
    let running = running_in(std::str::from_utf8(&text[..length]).ok()?)?;
    Some((running, rustix::thread::sched_getaffinity(None).ok()?.count()))
}

/// `0.20 0.18 0.12 3/80 11206`: three run or could, whoever asks among them.
fn running_in(loadavg: &str) -> Option<u32> {
    loadavg.split(' ').nth(3)?.split_once('/')?.0.parse().ok()
}

/// We and what we fork stay on the processor where we are, for as long as this lives.
pub struct Together(Processors);

impl Together {
    /// Nothing, where there is only one anyway.
    pub fn stay() -> Option<Together> {
        let all = rustix::thread::sched_getaffinity(None).ok().filter(|all| all.count() > 1)?;
        let mut here = Processors::new();
        let processor = processor();
        if processor >= Processors::MAX_CPU {
            return None;
        }
        here.set(processor);
        rustix::thread::sched_setaffinity(None, &here).ok()?;
        Some(Together(all))
    }

    /// Where we may run afterwards.
    pub fn all(&self) -> &Processors {
        &self.0
    }
}

impl Drop for Together {
    fn drop(&mut self) {
        // Only speed is lost: what runs inside is let go by itself.
        match rustix::thread::sched_setaffinity(None, &self.0) {
            Ok(()) | Err(_) => {}
        }
    }
}

/// The one that we run on just now.
pub fn processor() -> usize {
    rustix::thread::sched_getcpu()
}

/// Has a child run on this one; to go back to, that one and wherever we may run ourselves.
pub fn run_on(pid: i32, processor: usize) -> io::Result<Processors> {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
    let mut one = CpuSet::new();
    if processor >= CpuSet::MAX_CPU {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    one.set(processor);
    sched_setaffinity(rustix::process::Pid::from_raw(pid), &one)?;
    let mut both = sched_getaffinity(None)?;
    both.set(processor);
    Ok(both)
}

/// Has a child run wherever it may.
pub fn run_anywhere(pid: i32, all: &Processors) -> io::Result<()> {
    Ok(rustix::thread::sched_setaffinity(rustix::process::Pid::from_raw(pid), all)?)
}

/// Lets whoever runs go on when we are woken, rather than to take their processor; or not any more. What we fork begins with the same.
/// Whether it is another than before: whoever was given a schedule of their own keeps it.
pub fn let_others_go_on(yes: bool) -> io::Result<bool> {
    let (from, to) = if yes { (libc::SCHED_OTHER, libc::SCHED_BATCH) } else { (libc::SCHED_BATCH, libc::SCHED_OTHER) };
    // System calls, because musl's own functions always fail.
    // SAFETY: sched_getscheduler(2) takes an integer and reads none of our memory.
    if checked(unsafe { libc::syscall(libc::SYS_sched_getscheduler, 0) })? != libc::c_long::from(from) {
        return Ok(false);
    }
    // SAFETY: sched_setscheduler(2) reads one `sched_param`, whose priority must be 0 for these.
    checked(unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, to, &raw const NO_PRIORITY) })?;
    Ok(true)
}

/// All that there is of a `sched_param`.
static NO_PRIORITY: c_int = 0;

/// Forks, and that is all: with a call that is on the list of what may be done inside a sandbox. `None` in the child.
pub fn fork_plainly(_alone: Alone) -> io::Result<Option<i32>> {
    // SAFETY: the child has a copy of our memory. `Alone` says that no other thread held a lock that it would wait for.
    let pid = checked(unsafe { libc::fork() }.into())?;
    Ok((pid != 0).then_some(pid as i32))
}

/// Starts a child that runs `begin` in our own memory, on a stack of its own, while we stand still until it has
/// executed a program or ended. Descriptors, signal actions and the current folder are its own.
pub fn start_borrowing<F: FnOnce() -> c_int>(_alone: Alone, begin: F) -> io::Result<i32> {
    extern "C" fn run<F: FnOnce() -> c_int>(begin: *mut c_void) -> c_int {
        // SAFETY: `begin` points at the Option in the caller's frame, which stands still meanwhile.
        match unsafe { (*begin.cast::<Option<F>>()).take() } {
            Some(begin) => begin(),
            None => 125,
        }
    }
    let stack = stack::top()?;
    let mut begin = Some(begin);
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
    // SAFETY: the stack is the child's for ever, and `begin` outlives the child's use of it, because CLONE_VFORK keeps
    // us here until the child executes or ends. `Alone`: nobody else uses the memory meanwhile.
    let pid = unsafe { libc::clone(run::<F>, stack, flags, (&raw mut begin).cast::<c_void>()) };
    checked(pid.into()).map(|pid| pid as i32)
}

/// Runs `work` in a copy of this process that has the calling thread alone, and waits for its end. For tests, whose harness
/// has threads: a lock that one of them holds stays held in the copy.
#[doc(hidden)]
pub fn in_a_copy(work: impl FnOnce() -> c_int) -> io::Result<Ended> {
    // SAFETY: the child has a copy of our memory; the C library's fork leaves its own locks in order there.
    let pid = checked(unsafe { libc::fork() }.into())? as i32;
    if pid == 0 {
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        exit(done.unwrap_or(101));
    }
    wait(pid, false)?.map(|(_, ended, _)| ended).ok_or_else(|| io::ErrorKind::NotFound.into())
}

/// Leaves the namespaces of the parent for fresh ones.
pub fn unshare(namespaces: Namespaces) -> io::Result<()> {
    // SAFETY: takes one integer; no namespace of `Namespaces` shares memory or descriptors.
    checked(unsafe { libc::unshare(namespaces.flags()) }.into()).map(drop)
}

/// How a child ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    Exited(i32),
    Signalled(i32),
}

impl Ended {
    /// The status word of wait(2); stops and continues are never asked for.
    pub fn from_status(status: i32) -> Ended {
        if libc::WIFSIGNALED(status) {
            Ended::Signalled(libc::WTERMSIG(status))
        } else {
            Ended::Exited(libc::WEXITSTATUS(status))
        }
    }
}

/// What a process and those it waited for have used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Used {
    pub user: Duration,
    pub system: Duration,
    pub peak_resident: u64,
}

/// Waits for any child (`-1`) or for one. `Ok(None)`: `now` was asked and none has ended.
pub fn wait(pid: i32, now: bool) -> io::Result<Option<(i32, Ended, Used)>> {
    let mut status = 0;
    // SAFETY: an all-zero rusage is a valid value.
    let mut used: libc::rusage = unsafe { std::mem::zeroed() };
    let options = libc::__WALL | if now { libc::WNOHANG } else { 0 };
    loop {
        // SAFETY: both pointers are to locals that outlive the call.
        match checked(unsafe { libc::wait4(pid, &mut status, options, &mut used) }.into()) {
            Ok(0) => return Ok(None),
            Ok(pid) => {
                return Ok(Some((pid as i32, Ended::from_status(status), Used::of(&used))));
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

impl Used {
    fn of(raw: &libc::rusage) -> Used {
        let duration = |time: libc::timeval| {
            Duration::new(time.tv_sec.max(0) as u64, (time.tv_usec.max(0) as u32).saturating_mul(1000))
        };
        Used {
            user: duration(raw.ru_utime),
            system: duration(raw.ru_stime),
            peak_resident: (raw.ru_maxrss.max(0) as u64).saturating_mul(1024),
        }
    }
}

/// Sends `signal` to exactly the process behind `handle`, which can never come to mean another.
pub fn signal(handle: BorrowedFd<'_>, signal: i32) -> io::Result<()> {
    // SAFETY: takes integers and a null pointer, which asks the kernel to fill in the sender.
    checked(unsafe {
        libc::syscall(libc::SYS_pidfd_send_signal, handle.as_raw_fd(), signal, std::ptr::null::<c_void>(), 0)
    })
    .map(drop)
}

/// Signals a process, or with a negative number a process group.
pub fn kill(pid: i32, signal: i32) -> io::Result<()> {
    // SAFETY: takes two integers.
    checked(unsafe { libc::kill(pid, signal) }.into()).map(drop)
}

/// A descriptor for `pid` that can never come to mean another process.
pub fn open(pid: i32) -> io::Result<OwnedFd> {
    // SAFETY: pidfd_open(2) takes two integers and reads none of our memory.
    let fd = checked(unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) })?;
    // SAFETY: the kernel made `fd` for this call, so nothing else owns or closes it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as RawFd) })
}

/// Be killed when the parent ends. Must follow every change of identity, which clears it.
pub fn die_with_parent() -> io::Result<()> {
    prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as u64)
}

/// Orphans below this process become its children rather than those of the host's first process.
pub fn adopt_orphans() -> io::Result<()> {
    prctl(libc::PR_SET_CHILD_SUBREAPER, 1)
}

/// No one of the same user may trace this process, read its memory, or get a core file of it.
pub fn forbid_inspection() -> io::Result<()> {
    prctl(libc::PR_SET_DUMPABLE, 0)
}

/// This process, and what it starts, leaves no core file: it holds something that belongs on no disk. Unlike
/// `forbid_inspection`, this leaves /proc/self ours, which whoever makes user namespaces needs.
pub fn no_core_files() -> io::Result<()> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    // One byte, not none: where cores are piped to a helper, the kernel takes only that for a no.
    let maximum = getrlimit(Resource::Core).maximum;
    let current = Some(maximum.map_or(1, |most| most.min(1)));
    Ok(setrlimit(Resource::Core, Rlimit { current, maximum })?)
}

/// Undoes `forbid_inspection`, and what a change of identity did of that kind.
pub fn permit_inspection() -> io::Result<()> {
    prctl(libc::PR_SET_DUMPABLE, 1)
}

/// No program started from here on gains anything from set-user-id bits or file capabilities.
pub fn forbid_new_privileges() -> io::Result<()> {
    prctl(libc::PR_SET_NO_NEW_PRIVS, 1)
}

pub(crate) fn prctl(option: c_int, value: u64) -> io::Result<()> {
    // SAFETY: every option passed from this crate takes integers only.
    checked(unsafe { libc::prctl(option, value, 0, 0, 0) }.into()).map(drop)
}

/// Leaves the caller's session, and with it the caller's terminal.
pub fn new_session() -> io::Result<()> {
    // SAFETY: takes nothing.
    checked(unsafe { libc::setsid() }.into()).map(drop)
}

/// Makes the terminal at `fd` the controlling one of this session.
pub fn take_terminal(fd: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: TIOCSCTTY takes an integer.
    checked(unsafe { libc::ioctl(fd.as_raw_fd(), libc::TIOCSCTTY, 0) }.into()).map(drop)
}

/// Every descriptor from `first` on closes by itself when a program is executed.
pub fn close_on_exec_from(first: u32) -> io::Result<()> {
    close_range(first, u32::MAX, libc::CLOSE_RANGE_CLOEXEC)
}

/// The descriptor of that number stays open when a program is executed. One that is not there is an error.
pub fn keep_over_exec(number: RawFd) -> io::Result<()> {
    // SAFETY: F_SETFD takes an integer, and changes nothing but whether an exec closes the descriptor.
    checked(unsafe { libc::fcntl(number, libc::F_SETFD, 0) }.into()).map(drop)
}

/// The same descriptor under that number, whatever was there before, and open when a program is executed. For a fresh child.
pub fn put_at(descriptor: BorrowedFd<'_>, number: RawFd) -> io::Result<()> {
    if descriptor.as_raw_fd() != number {
        // SAFETY: takes two integers. What was at `number` is the caller's to give up: a copy in a child that is about to execute.
        checked(unsafe { libc::dup2(descriptor.as_raw_fd(), number) }.into())?;
    }
    keep_over_exec(number)
}

/// Closes every descriptor from `first` on but `keep`. For a fresh child that owns none of them.
pub fn close_all_from(first: u32, keep: RawFd) -> io::Result<()> {
    let keep = keep as u32;
    if keep > first {
        close_range(first, keep - 1, 0)?;
    }
    close_range(first.max(keep + 1), u32::MAX, 0)
}

/// The same with several to keep.
pub fn close_all_but(first: u32, keep: &mut [RawFd]) -> io::Result<()> {
    keep.sort_unstable();
    let mut next = first;
    for keep in keep.iter().map(|keep| *keep as u32).filter(|keep| *keep >= first) {
        if keep > next {
            close_range(next, keep - 1, 0)?;
        }
        next = keep + 1;
    }
    close_range(next, u32::MAX, 0)
}

fn close_range(first: u32, last: u32, flags: u32) -> io::Result<()> {
    // SAFETY: takes three integers. Closing descriptors others own is the caller's wish, made just before an
    // exec or in a child that forgets its copies.
    checked(unsafe { libc::syscall(libc::SYS_close_range, first, last, flags) }).map(drop)
}

/// Strings as execve(2) wants them: a null-terminated list of pointers, made before a fork.
#[derive(Serialize, Deserialize)]
#[serde(from = "Vec<std::ffi::CString>")]
pub struct Strings {
    #[serde(skip)]
    pointers: Vec<*const libc::c_char>,
    #[serde(rename = "owned")]
    _owned: Vec<std::ffi::CString>,
}

impl From<Vec<std::ffi::CString>> for Strings {
    fn from(owned: Vec<std::ffi::CString>) -> Strings {
        Strings::new(owned)
    }
}

impl Strings {
    pub fn new(owned: Vec<std::ffi::CString>) -> Strings {
        let mut pointers: Vec<_> = owned.iter().map(|string| string.as_ptr()).collect();
        pointers.push(std::ptr::null());
        Strings { pointers, _owned: owned }
    }
}

/// Becomes another program; returns only on failure.
pub fn execute(program: &CStr, arguments: &Strings, environment: &Strings) -> io::Error {
    // SAFETY: `Strings` keeps both lists alive, null-terminated, and each string in them terminated.
    unsafe { libc::execve(program.as_ptr(), arguments.pointers.as_ptr(), environment.pointers.as_ptr()) };
    io::Error::last_os_error()
}

/// Ends at once, without running anything that a fork copied.
pub fn exit(code: i32) -> ! {
    // SAFETY: _exit never returns and touches no memory.
    unsafe { libc::_exit(code) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_runs_just_now_is_counted() {
        assert_eq!(running_in("0.20 0.18 0.12 3/80 11206\n"), Some(3));
        assert_eq!(running_in(""), None);
        let (running, processors) = who_wants_to_run().expect("Linux says it");
        assert!(running > 0 && processors > 0);
    }

    #[test]
    fn who_stayed_may_run_everywhere_again() {
        let all = || rustix::thread::sched_getaffinity(None).expect("known");
        let before = all();
        let Some(together) = Together::stay() else {
            assert_eq!(before.count(), 1);
            return;
        };
        assert_eq!((all().count(), *together.all()), (1, before));
        drop(together);
        assert_eq!(all(), before);
    }
}
