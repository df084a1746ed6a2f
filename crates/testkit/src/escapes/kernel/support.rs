//! What attacks on the kernel's surface share: asking whether a call is answered by the kernel, bait processes,
//! and knowing whether there is a sandbox at all.

use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::field::Run;
use crate::inside::call;
use crate::{Field, Inside, Verdict};

/// A call to try: its name, its number, its arguments.
pub type Try = (&'static str, libc::c_long, [u64; 6]);

/// Bad as a pointer, a descriptor, a process and a length: whoever looks at it answers with an error of its own.
pub const BAD: u64 = 0xffff_ffff_ffff_f001;
/// A page that is never mapped, for calls that take small numbers and pointers alike.
pub const NOWHERE: u64 = 8;

/// Makes each call in a process of its own, and takes down those that the kernel's code itself answered: any answer
/// but "not permitted" and "no such call" comes from behind the filter.
pub fn reach(inside: &Inside, tries: &[Try]) -> io::Result<()> {
    let mut refused = Ok(());
    for (name, number, arguments) in tries {
        match answer(*number, *arguments)? {
            answer if is_refusal(answer) => refused = Err(io::Error::from_raw_os_error(answer)),
            answer => inside.loot(format!("{name} answered {answer}\n"))?,
        }
    }
    refused
}

pub fn is_refusal(errno: i32) -> bool {
    errno == libc::EPERM || errno == libc::ENOSYS
}

/// The error that a call gives in a process of its own; 0 for success. A caller that is killed has made no call
/// that anyone could use, and counts as not permitted.
pub fn answer(number: libc::c_long, arguments: [u64; 6]) -> io::Result<i32> {
    in_child(|| match call(number, arguments) {
        Ok(_) => 0,
        Err(error) => error.raw_os_error().unwrap_or(255),
    })
    .map(|code| code.unwrap_or(libc::EPERM))
}

/// Runs `work` in a forked process, in a session of its own and for at most two seconds; its code, or `None` if a
/// signal ended it.
pub fn in_child(work: impl FnOnce() -> i32) -> io::Result<Option<i32>> {
    // SAFETY: the attacker has one thread, so the child may do anything.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            // SAFETY: take integers only. A session of its own keeps the caller's terminal out of it.
            unsafe {
                libc::setsid();
                libc::alarm(2);
                libc::_exit(work())
            }
        }
        child => {
            let mut status = 0;
            // SAFETY: waits for our own child; `status` outlives the call.
            while unsafe { libc::waitpid(child, &mut status, 0) } < 0 {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
            Ok(libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status)))
        }
    }
}

/// Whether something was gained at all. For attacks whose loot is itself the proof.
pub fn judge_by_loot(field: &Field, _: &Run) -> Verdict {
    let loot = field.loot();
    match loot.is_empty() {
        true => Verdict::Held,
        false => Verdict::Broken(String::from_utf8_lossy(&loot).trim().replace('\n', "; ")),
    }
}

/// Remembers which processes the host sees, so that the attacker can tell whether it is among them.
pub fn mark_the_host(field: &Field) -> io::Result<()> {
    field.tell("host-pids", fs::read_link("/proc/self/ns/pid")?.display());
    Ok(())
}

/// Whether the attacker is among the host's processes. Then it must not aim at all that it sees.
pub fn is_among_the_hosts(inside: &Inside) -> bool {
    // Unknown means yes: the careful way.
    let own = fs::read_link("/proc/self/ns/pid").ok().map(|link| link.display().to_string());
    match (own, inside.hint("host-pids")) {
        (Some(own), Ok(host)) => own == host,
        _ => true,
    }
}

/// A process of the host that belongs to the user of the trial, ended with the field.
pub struct Bait(pub Child);

impl Drop for Bait {
    fn drop(&mut self) {
        // It may well be dead: that is what some attacks are after.
        if self.0.kill().and_then(|()| self.0.wait()).is_err() {
            eprintln!("the bait {} could not be ended", self.0.id());
        }
    }
}

/// Starts a process of the host that holds the secret in its environment and as its standard input, and tells the
/// attacker its number as `bait`.
pub fn set_bait(field: &Field) -> io::Result<u32> {
    mark_the_host(field)?;
    let id = field.who.user_id();
    let bait = Command::new("/bin/sleep")
        .arg("40")
        .env_clear()
        .env("SECRET", &field.secret)
        .stdin(fs::File::open(field.outside.join("secret"))?)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .uid(id)
        .gid(id)
        .process_group(0)
        .spawn()?;
    let pid = bait.id();
    field.tell("bait", pid);
    field.keep(Bait(bait));
    wait_until(|| fs::read(format!("/proc/{pid}/comm")).is_ok_and(|name| name == b"sleep\n"));
    Ok(pid)
}

pub fn bait(inside: &Inside) -> io::Result<i32> {
    inside.hint("bait")?.parse().map_err(io::Error::other)
}

/// The state letter of a process of the host; `None` if it is gone.
pub fn state_of(pid: &str) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit(')').next()?.trim_start().chars().next()
}

/// Broken if the bait no longer sleeps.
pub fn judge_by_bait(field: &Field, _: &Run) -> Verdict {
    let Some(pid) = field.hint("bait") else {
        return Verdict::Unclear("no bait was set".to_owned());
    };
    // A signal takes a moment to be the end.
    std::thread::sleep(Duration::from_millis(100));
    match state_of(&pid) {
        Some('S' | 'R' | 'D') => Verdict::Held,
        other => Verdict::Broken(format!("the host's process {pid} was hit: {other:?}")),
    }
}

/// Waits until something is so, for at most two seconds.
pub fn wait_until(so: impl Fn() -> bool) -> bool {
    let until = Instant::now() + Duration::from_secs(2);
    while Instant::now() < until {
        if so() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    false
}

/// Takes connections until the field goes, and writes what they say to `heard` outside the workspace.
pub fn listen<L: Send + 'static, S: io::Read + 'static>(
    field: &Field,
    listener: L,
    accept: fn(&L) -> io::Result<S>,
    set_timeout: fn(&S) -> io::Result<()>,
) -> io::Result<()> {
    let path = field.outside.join("heard");
    std::thread::spawn(move || {
        while let Ok(mut stream) = accept(&listener) {
            let mut bytes = Vec::from(*b"a connection: ");
            if set_timeout(&stream).is_ok() {
                let mut part = [0u8; 256];
                if let Ok(count) = stream.read(&mut part) {
                    bytes.extend_from_slice(&part[..count]);
                }
            }
            if fs::write(&path, &bytes).is_err() {
                return;
            }
        }
    });
    Ok(())
}

/// Broken if a listener of the host heard anything.
pub fn judge_by_ear(field: &Field, _: &Run) -> Verdict {
    let path = field.outside.join("heard");
    // The listener may be a moment behind the attacker.
    std::thread::sleep(Duration::from_millis(100));
    match fs::read(path) {
        Ok(bytes) => Verdict::Broken(format!("the host heard: {}", String::from_utf8_lossy(&bytes))),
        Err(_) => Verdict::Held,
    }
}
