//! What several attacks on files share: ways to try, bait to lay, evidence to look for.

use std::any::Any;
use std::ffi::CString;
use std::fs;
use std::io;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::contestant::TEST_USER;
use crate::field::{Field, Run};
use crate::inside::call;
use crate::{Inside, Verdict, Who};

/// All ways are tried, so that one that works is not lost behind one that doesn't.
pub fn any(ways: impl IntoIterator<Item = io::Result<()>>) -> io::Result<()> {
    let mut outcome = Err(io::Error::other("there was no way to try"));
    for way in ways {
        if outcome.is_err() {
            outcome = way;
        }
    }
    outcome
}

/// Steals whatever of these can be read.
pub fn steal_any(inside: &Inside, paths: impl IntoIterator<Item = PathBuf>) -> io::Result<()> {
    any(paths.into_iter().map(|path| inside.steal(path)))
}

/// Leaves the name of whatever of these can be opened, and opens only.
pub fn loot_opened(inside: &Inside, paths: &[&str], options: &fs::OpenOptions) -> io::Result<()> {
    any(paths.iter().map(|path| {
        options.open(path)?;
        inside.loot(format!("{path}\n"))
    }))
}

pub fn c_text(path: impl AsRef<Path>) -> CString {
    CString::new(path.as_ref().as_os_str().as_bytes()).unwrap_or_default()
}

/// Opens for writing without waiting, whatever it is, and writes nothing.
pub fn for_writing() -> fs::OpenOptions {
    let mut options = fs::OpenOptions::new();
    options.write(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY);
    options
}

pub fn for_reading() -> fs::OpenOptions {
    let mut options = fs::OpenOptions::new();
    options.read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY);
    options
}

/// Every way to change a file's contents that needs only its name.
pub fn overwrite(path: &Path) -> io::Result<()> {
    let name = c_text(path);
    let append = || fs::OpenOptions::new().append(true).open(path)?.write_all(b"changed");
    let within = || fs::OpenOptions::new().read(true).write(true).open(path)?.write_all(b"changed");
    let cut = || call(libc::SYS_truncate, [name.as_ptr() as u64, 3, 0, 0, 0, 0]).map(drop);
    any([append(), within(), cut(), fs::write(path, "changed")])
}

// Evidence.

/// For attacks that loot only what they gained.
pub fn nothing_gained(field: &Field, _: &Run) -> Verdict {
    let loot = field.loot();
    match loot.is_empty() {
        true => Verdict::Held,
        false => Verdict::Broken(format!("gained: {}", String::from_utf8_lossy(&loot[..loot.len().min(400)]).trim())),
    }
}

pub fn target_untouched(field: &Field, _: &Run) -> Verdict {
    match field.target_is_untouched() {
        true => Verdict::Held,
        false => Verdict::Broken("the file outside was changed".to_owned()),
    }
}

pub fn nothing_appeared_outside(field: &Field, _: &Run) -> Verdict {
    let entries = fs::read_dir(&field.outside).map(|entries| {
        entries.flatten().map(|entry| entry.file_name()).filter(|name| name != "secret" && name != "target").collect()
    });
    match entries {
        Ok(strangers) if Vec::is_empty(&strangers) => Verdict::Held,
        Ok(strangers) => Verdict::Broken(format!("appeared outside: {strangers:?}")),
        Err(error) => Verdict::Unclear(error.to_string()),
    }
}

/// Every entry of the workspace and its folders, as it is on disk.
pub fn on_disk(folder: &Path) -> Vec<(PathBuf, fs::Metadata)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let Ok(stat) = fs::symlink_metadata(entry.path()) else {
            continue;
        };
        if stat.is_dir() {
            found.extend(on_disk(&entry.path()));
        }
        found.push((entry.path(), stat));
    }
    found
}

/// No file or folder of the workspace has one of these bits of its mode set.
pub fn without_bits(field: &Field, bits: u32) -> Verdict {
    let bad: Vec<_> = on_disk(&field.workspace)
        .into_iter()
        .filter(|(_, stat)| stat.mode() & bits != 0)
        .map(|(path, stat)| format!("{} {:o}", path.display(), stat.mode()))
        .collect();
    match bad.is_empty() {
        true => Verdict::Held,
        false => Verdict::Broken(bad.join(", ")),
    }
}

// Bait.

pub fn home(who: Who) -> PathBuf {
    match who {
        Who::Root => "/root".into(),
        Who::Ordinary => Path::new("/home").join(TEST_USER),
    }
}

/// Removed when the trial is over: a file, or a folder if it is empty.
pub struct Removed(pub PathBuf);

impl Drop for Removed {
    fn drop(&mut self) {
        let removed = match self.0.is_dir() {
            true => fs::remove_dir(&self.0),
            false => fs::remove_file(&self.0),
        };
        match removed {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => eprintln!("left behind: {}: {error}", self.0.display()),
        }
    }
}

/// Files with the secret at places of the host's, for the length of the trial; with the folders they need.
pub fn bait(field: &Field, paths: &[PathBuf]) -> io::Result<()> {
    let mut made: Vec<PathBuf> = Vec::new();
    for path in paths {
        let missing: Vec<&Path> = path.ancestors().skip(1).take_while(|folder| !folder.exists()).collect();
        for folder in missing.into_iter().rev() {
            fs::create_dir(folder)?;
            field.give(folder)?;
            made.push(folder.to_owned());
        }
        field.keep(Removed(path.clone()));
        fs::write(path, &field.secret)?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o644))?;
        field.give(path)?;
    }
    // What is kept goes in order: all files, then inner folders before outer ones.
    made.into_iter().rev().for_each(|folder| field.keep(Removed(folder)));
    Ok(())
}

/// A name that no other trial uses.
pub fn token(field: &Field) -> String {
    format!("belljar-bait-{}", field.root.file_name().unwrap_or_default().to_string_lossy())
}

/// Puts a file with these contents into the workspace.
pub fn put_in_workspace(field: &Field, name: &str, contents: &str) -> io::Result<PathBuf> {
    let path = field.workspace.join(name);
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
        let mut made = folder.ancestors().take_while(|folder| *folder != field.workspace);
        made.try_for_each(|folder| field.give(folder))?;
    }
    fs::write(&path, contents)?;
    field.give(&path)?;
    Ok(path)
}

/// A process of the same user outside the sandbox, until the trial is over.
pub fn bystander(field: &Field, mut command: Command) -> io::Result<u32> {
    struct Ended(Child);
    impl Drop for Ended {
        fn drop(&mut self) {
            if let Err(error) = self.0.kill().and_then(|()| self.0.wait().map(drop)) {
                eprintln!("a bystander is left behind: {error}");
            }
        }
    }
    let id = field.who.user_id();
    let child = command.uid(id).gid(id).spawn()?;
    let pid = child.id();
    field.keep(Ended(child));
    Ok(pid)
}

// What the host does meanwhile.

struct Meanwhile {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Meanwhile {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let joined: Option<Result<(), Box<dyn Any + Send>>> = self.thread.take().map(JoinHandle::join);
        if let Some(Err(_)) = joined {
            eprintln!("what the host did meanwhile went wrong");
        }
    }
}

/// The host goes on living while the attack runs. `act` must look at the flag and stop when it is set.
pub fn meanwhile(field: &Field, act: impl FnOnce(&AtomicBool) -> io::Result<()> + Send + 'static) {
    let stop = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&stop);
    let thread = std::thread::spawn(move || match act(&seen) {
        Ok(()) => {}
        Err(error) => eprintln!("what the host did meanwhile failed: {error}"),
    });
    field.keep(Meanwhile { stop, thread: Some(thread) });
}

pub fn once_exists(path: &Path, stop: &AtomicBool) -> bool {
    let until = Instant::now() + Duration::from_secs(10);
    while Instant::now() < until && !stop.load(Ordering::Relaxed) {
        if path.exists() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(3));
    }
    false
}

/// The attack says that it is there, and waits until the host has done its part.
pub const READY: &str = "ready";
pub const DONE: &str = "done";

pub fn let_the_host_act(inside: &Inside) -> io::Result<()> {
    fs::write(inside.workspace.join(READY), "")?;
    match once_exists(&inside.workspace.join(DONE), &AtomicBool::new(false)) {
        true => Ok(()),
        false => Err(io::Error::other("the host did not act in time")),
    }
}

/// The host's part of [`let_the_host_act`].
pub fn once_ready(field: &Field, act: impl FnOnce() -> io::Result<()> + Send + 'static) {
    let workspace = field.workspace.clone();
    meanwhile(field, move |stop| {
        if once_exists(&workspace.join(READY), stop) {
            act()?;
            fs::write(workspace.join(DONE), "")?;
        }
        Ok(())
    });
}

// Sockets of the host.

const CONNECTED: &str = "connected";

/// A service of the host at `path`, and another for datagrams beside it. Whoever reaches one leaves a trace.
pub fn serve(field: &Field, path: &Path) -> io::Result<()> {
    let beside = datagrams_at(path);
    let listener = UnixListener::bind(path)?;
    let datagrams = UnixDatagram::bind(&beside)?;
    for socket in [path, &beside] {
        fs::set_permissions(socket, fs::Permissions::from_mode(0o666))?;
        field.give(socket)?;
    }
    listener.set_nonblocking(true)?;
    datagrams.set_nonblocking(true)?;
    let trace = field.root.join(CONNECTED);
    meanwhile(field, move |stop| {
        while !stop.load(Ordering::Relaxed) {
            if listener.accept().is_ok() {
                fs::write(&trace, "a connection")?;
            }
            if datagrams.recv(&mut [0; 64]).is_ok() {
                fs::write(&trace, "a datagram")?;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    });
    Ok(())
}

fn datagrams_at(path: &Path) -> PathBuf {
    path.with_extension("datagrams")
}

/// Every way to reach a service at `path`.
pub fn reach(path: &Path) -> io::Result<()> {
    let beside = datagrams_at(path);
    let stream = || UnixStream::connect(path)?.write_all(b"hello");
    let datagram = || UnixDatagram::unbound()?.send_to(b"hello", &beside).map(drop);
    // A pair is made without naming anybody, and can be pointed at somebody later.
    let pair = || {
        let (one, _other) = UnixDatagram::pair()?;
        one.connect(&beside)?;
        one.send(b"hello").map(drop)
    };
    any([stream(), datagram(), pair()])
}

pub fn nobody_connected(field: &Field, _: &Run) -> Verdict {
    let trace = field.root.join(CONNECTED);
    // The service looks every few milliseconds.
    match once_exists_within(&trace, Duration::from_millis(60)) {
        true => Verdict::Broken(format!("the service got {}", fs::read_to_string(trace).unwrap_or_default())),
        false => Verdict::Held,
    }
}

fn once_exists_within(path: &Path, time: Duration) -> bool {
    let until = Instant::now() + time;
    while Instant::now() < until {
        if path.exists() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    path.exists()
}

// Modes.

/// Makes files with these bits in their mode, by every call that takes a mode.
pub fn make_with_bits(folder: &Path, bits: u32) -> io::Result<()> {
    let mode = u64::from(bits | 0o755);
    // SAFETY: takes an integer.
    unsafe { libc::umask(0) };
    let here = libc::AT_FDCWD as u64;
    let at = |name: &str| c_text(folder.join(format!("made-by-{name}")));
    let plain = |name: &str| -> io::Result<(CString, fs::File)> {
        let path = folder.join(format!("made-by-{name}"));
        let file = fs::File::create(&path)?;
        Ok((c_text(path), file))
    };
    use std::os::fd::AsRawFd;
    let mut outcomes = Vec::new();
    let mut attempt = |way: &dyn Fn() -> io::Result<u64>| outcomes.push(way().map(drop));
    attempt(&|| call(libc::SYS_fchmodat, [here, plain("fchmodat")?.0.as_ptr() as u64, mode, 0, 0, 0]));
    attempt(&|| call(libc::SYS_fchmodat2, [here, plain("fchmodat2")?.0.as_ptr() as u64, mode, 0, 0, 0]));
    attempt(&|| call(libc::SYS_fchmod, [plain("fchmod")?.1.as_raw_fd() as u64, mode, 0, 0, 0, 0]));
    // High bits that the kernel drops and a careless filter compares.
    attempt(&|| {
        let (_, file) = plain("fchmod-high-bits")?;
        call(libc::SYS_fchmod, [file.as_raw_fd() as u64, mode | 1 << 32, 0, 0, 0, 0])
    });
    let create = (libc::O_CREAT | libc::O_WRONLY) as u64;
    attempt(&|| call(libc::SYS_openat, [here, at("openat").as_ptr() as u64, create, mode, 0, 0]));
    attempt(&|| {
        let how = [create, mode, 0u64];
        call(libc::SYS_openat2, [here, at("openat2").as_ptr() as u64, how.as_ptr() as u64, 24, 0, 0])
    });
    attempt(&|| {
        let flags = (libc::O_TMPFILE | libc::O_WRONLY) as u64;
        let file = call(libc::SYS_openat, [here, c_text(folder).as_ptr() as u64, flags, mode, 0, 0])?;
        let name = c_text(format!("/proc/self/fd/{file}"));
        let to = at("tmpfile");
        let follow = libc::AT_SYMLINK_FOLLOW as u64;
        call(libc::SYS_linkat, [here, name.as_ptr() as u64, here, to.as_ptr() as u64, follow, 0])
    });
    attempt(&|| {
        call(libc::SYS_mknodat, [here, at("mknodat").as_ptr() as u64, mode | u64::from(libc::S_IFREG), 0, 0, 0])
    });
    attempt(&|| call(libc::SYS_mknodat, [here, at("fifo").as_ptr() as u64, mode | u64::from(libc::S_IFIFO), 0, 0, 0]));
    attempt(&|| call(libc::SYS_mkdirat, [here, at("mkdirat").as_ptr() as u64, mode, 0, 0, 0]));
    #[cfg(target_arch = "x86_64")]
    {
        attempt(&|| call(libc::SYS_chmod, [plain("chmod")?.0.as_ptr() as u64, mode, 0, 0, 0, 0]));
        attempt(&|| call(libc::SYS_open, [at("open").as_ptr() as u64, create, mode, 0, 0, 0]));
        attempt(&|| call(libc::SYS_creat, [at("creat").as_ptr() as u64, mode, 0, 0, 0, 0]));
        attempt(&|| call(libc::SYS_mknod, [at("mknod").as_ptr() as u64, mode | u64::from(libc::S_IFREG), 0, 0, 0, 0]));
    }
    any(outcomes)
}
