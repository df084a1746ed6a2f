//! Paths, walked part by part: never into the kernel's own files, whose links lead past every wall of names.
//!
//! `openat2` could be told that, but it is not on the list of calls that anybody inside may make.

use std::ffi::CString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RawMode, Stat};
use rustix::io::Errno;

use super::{Entry, Kind, LONGEST_PATH, Why};

/// As many as a kernel follows.
const MOST_LINKS: usize = 40;
const MOST_PARTS: usize = 512;

/// Why it was not done, and about what.
#[derive(Debug)]
pub struct Failed {
    pub why: Why,
    pub errno: i32,
    pub about: Vec<u8>,
}

pub type Result<T> = std::result::Result<T, Failed>;

pub fn failed(why: Why, about: &[u8]) -> Failed {
    Failed { why, errno: 0, about: about[..about.len().min(LONGEST_PATH)].to_vec() }
}

/// What the kernel said about a path.
pub fn about(path: &[u8]) -> impl Fn(Errno) -> Failed + '_ {
    move |errno| Failed { errno: errno.raw_os_error(), ..failed(Why::Errno, path) }
}

/// The end of a path.
pub enum End {
    /// A name in a folder, whatever is or is not there.
    Name(OwnedFd, CString),
    /// A folder that the path names by `/`, `.` or `..`.
    Folder(OwnedFd),
}

pub const FOLDER: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Walks to the end of a path; what stands there is not looked at, unless it is a link that is to be followed.
pub fn to(path: &[u8], follow: bool) -> Result<End> {
    if path.len() > LONGEST_PATH || path.contains(&0) {
        return Err(failed(Why::BadPath, path));
    }
    let mut links = 0;
    let mut current = start(path).map_err(about(path))?;
    let mut rest = parts(path);
    while let Some(part) = rest.pop() {
        let last = rest.is_empty();
        if part == b".." || part == b"." {
            current = enter(current.as_fd(), &part, path)?;
            continue;
        }
        let name = CString::new(part).map_err(|_| failed(Why::BadPath, path))?;
        if last && !follow {
            return Ok(End::Name(current, name));
        }
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let next = match rustix::fs::openat(&current, &*name, flags, Mode::empty()) {
            Ok(next) => next,
            Err(Errno::NOENT) if last => return Ok(End::Name(current, name)),
            Err(errno) => return Err(about(path)(errno)),
        };
        match type_of(&next, path)? {
            FileType::Symlink => {
                links += 1;
                if links > MOST_LINKS {
                    return Err(about(path)(Errno::LOOP));
                }
                let target = rustix::fs::readlinkat(&next, c"", Vec::new()).map_err(about(path))?;
                let target = target.into_bytes();
                if target.first() == Some(&b'/') {
                    current = start(&target).map_err(about(path))?;
                }
                rest.extend(parts(&target));
            }
            _ if last => return Ok(End::Name(current, name)),
            FileType::Directory => {
                not_the_kernels(&next, path)?;
                current = next;
            }
            _ => return Err(about(path)(Errno::NOTDIR)),
        }
        if rest.len() > MOST_PARTS {
            return Err(about(path)(Errno::NAMETOOLONG));
        }
    }
    Ok(End::Folder(current))
}

fn start(path: &[u8]) -> rustix::io::Result<OwnedFd> {
    let from = if path.first() == Some(&b'/') { c"/" } else { c"." };
    rustix::fs::openat(CWD, from, FOLDER | OFlags::PATH, Mode::empty())
}

/// The last one first. A `/` at the end asks for a folder, as `.` does.
fn parts(path: &[u8]) -> Vec<Vec<u8>> {
    let mut parts: Vec<Vec<u8>> =
        path.split(|byte| *byte == b'/').filter(|part| !part.is_empty() && *part != b".").map(<[u8]>::to_vec).collect();
    if path.ends_with(b"/") || path.ends_with(b"/.") || path == b"." {
        parts.push(b".".to_vec());
    }
    parts.reverse();
    parts
}

fn enter(folder: BorrowedFd<'_>, part: &[u8], path: &[u8]) -> Result<OwnedFd> {
    let next = rustix::fs::openat(folder, part, FOLDER | OFlags::PATH, Mode::empty()).map_err(about(path))?;
    not_the_kernels(&next, path)?;
    Ok(next)
}

fn type_of(at: &OwnedFd, path: &[u8]) -> Result<FileType> {
    Ok(FileType::from_raw_mode(rustix::fs::fstat(at).map_err(about(path))?.st_mode))
}

/// Behind what is in there are processes: their memory, their variables, their roots. One of them is ours.
pub fn not_the_kernels(at: &OwnedFd, path: &[u8]) -> Result<()> {
    match rustix::fs::fstatfs(at).map_err(about(path))?.f_type == rustix::fs::PROC_SUPER_MAGIC {
        true => Err(failed(Why::Kernels, path)),
        false => Ok(()),
    }
}

/// The folder at the end of a path, to be read.
pub fn folder(path: &[u8]) -> Result<OwnedFd> {
    let (at, name) = match to(path, true)? {
        End::Name(at, name) => (at, name),
        End::Folder(at) => (at, c".".into()),
    };
    let folder = rustix::fs::openat(&at, &*name, FOLDER, Mode::empty()).map_err(about(path))?;
    not_the_kernels(&folder, path)?;
    Ok(folder)
}

/// A plain file in a folder, to be read. Nothing else is even opened: a pipe would wait for its other end.
pub fn file(folder: BorrowedFd<'_>, name: &std::ffi::CStr, path: &[u8]) -> Result<(OwnedFd, Stat)> {
    let before = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).map_err(about(path))?;
    let is_file = |stat: &Stat| FileType::from_raw_mode(stat.st_mode).is_file();
    if !is_file(&before) {
        return Err(failed(Why::WrongKind, path));
    }
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = rustix::fs::openat(folder, name, flags, Mode::empty()).map_err(about(path))?;
    let stat = rustix::fs::fstat(&file).map_err(about(path))?;
    // It may be another by now.
    if !is_file(&stat) {
        return Err(failed(Why::WrongKind, path));
    }
    not_the_kernels(&file, path)?;
    Ok((file, stat))
}

/// What stands at a name, itself.
pub fn entry(folder: BorrowedFd<'_>, name: &std::ffi::CStr, path: &[u8]) -> Result<Entry> {
    let stat = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).map_err(about(path))?;
    let mut entry = entry_of(&stat, path);
    if entry.kind == Kind::Link {
        let target = rustix::fs::readlinkat(folder, name, Vec::new()).map_err(about(path))?;
        entry.target = target.into_bytes();
    }
    Ok(entry)
}

pub fn entry_of(stat: &Stat, path: &[u8]) -> Entry {
    let kind = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Kind::File,
        FileType::Directory => Kind::Folder,
        FileType::Symlink => Kind::Link,
        _ => Kind::Special,
    };
    let mode: RawMode = stat.st_mode & 0o7777;
    let size = if kind == Kind::File { u64::try_from(stat.st_size).unwrap_or_default() } else { 0 };
    Entry { kind, mode, size, modified: stat.st_mtime, path: path.to_vec(), target: Vec::new() }
}

pub fn join(folder: &[u8], name: &[u8]) -> Vec<u8> {
    match folder {
        b"" => name.to_vec(),
        _ => [folder, b"/", name].concat(),
    }
}
