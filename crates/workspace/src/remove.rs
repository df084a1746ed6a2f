//! Removes trees that hostile code wrote: by descriptors alone, through no link, onto no other mount, however deep.
//!
//! Meant for trees whose writers are gone. Who still changes the tree meanwhile can make the removal fail, but can't lead
//! it elsewhere.

use std::ffi::{CStr, CString, OsStr};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, PROC_SUPER_MAGIC, ResolveFlags};
use rustix::io::Errno;
use rustix::rand::GetRandomFlags;

/// Folders that are open at once, so that a deep tree can't use up our descriptors.
const OPEN: usize = 48;
/// How often things may turn out other than they were a moment ago. Against a writer who is not gone after all.
const SURPRISES: u32 = 10_000;

/// Removes what `parent` has under `name`: a file, a link, or a folder with all that is in it. That nothing is there is
/// fine.
pub fn tree(parent: BorrowedFd<'_>, name: &OsStr) -> io::Result<()> {
    let mut removal = Removal::new()?;
    let name = single(name).map_err(|error| removal.failed(name.as_bytes(), error))?;
    while removal.at_once(parent, &name, FileType::Directory)? == Attempt::IsFolder {
        removal.surprise(&name)?;
        let Some(folder) = removal.open(parent, &name)? else { continue };
        removal.above.clone_from(&name);
        removal.empty(folder)?;
        removal.above = CString::default();
    }
    Ok(())
}

/// Removes all that is in `folder`, and leaves the folder.
pub fn contents(folder: BorrowedFd<'_>) -> io::Result<()> {
    let mut removal = Removal::new()?;
    let reopen = || rustix::fs::openat(folder, c".", FOLDER, Mode::empty());
    let reopened = match reopen() {
        Err(Errno::ACCESS) => allow_all(folder).and_then(|()| reopen()),
        answer => answer,
    };
    let reopened = reopened.map_err(|errno| removal.failed(b".", errno))?;
    removal.empty(reopened)
}

/// What could not be removed. It is the inner error of the [`io::Error`], whose kind is that of the cause.
#[derive(Debug, thiserror::Error)]
#[error("cannot remove `{}`: {source}", path.to_string_lossy().escape_debug())]
pub struct Unremoved {
    /// From the folder that was asked about. What was deep down may have been moved up before.
    pub path: PathBuf,
    pub source: io::Error,
}

const FOLDER: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC).union(OFlags::NONBLOCK);
const HANDLE: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const INSIDE: ResolveFlags = ResolveFlags::BENEATH
    .union(ResolveFlags::NO_SYMLINKS)
    .union(ResolveFlags::NO_MAGICLINKS)
    .union(ResolveFlags::NO_XDEV);

/// One name, so that nothing is looked up on the way to it.
fn single(name: &OsStr) -> io::Result<CString> {
    let bytes = name.as_bytes();
    if bytes.contains(&b'/') || matches!(bytes, b"" | b"." | b"..") {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not the name of one thing in a folder"));
    }
    CString::new(bytes).map_err(io::Error::from)
}

#[derive(PartialEq, Eq)]
enum Attempt {
    Gone,
    /// With something in it.
    IsFolder,
}

/// A folder that is being emptied.
struct Level {
    folder: Dir,
    name: CString,
}

#[derive(Default)]
struct Removal {
    /// The name of the tree, for errors.
    above: CString,
    /// From the top down; each was opened from the one before.
    levels: Vec<Level>,
    /// Folders that were moved up to the top so far: they are called by their numbers, behind what nobody can guess.
    moved: u64,
    secret: u64,
    surprises: u32,
}

impl Removal {
    fn new() -> io::Result<Removal> {
        let mut secret = [0; 8];
        rustix::rand::getrandom(&mut secret, GetRandomFlags::empty())?;
        Ok(Removal { secret: u64::from_ne_bytes(secret), ..Removal::default() })
    }

    fn empty(&mut self, folder: OwnedFd) -> io::Result<()> {
        self.enter(folder, CString::default())?;
        let mut next_moved = 0;
        let mut was_empty = true;
        loop {
            let depth = self.levels.len();
            let Some(level) = self.levels.last_mut() else { return Ok(()) };
            match level.folder.read() {
                Some(Ok(entry)) if matches!(entry.file_name().to_bytes(), b"." | b"..") => {}
                Some(Ok(entry)) => {
                    was_empty = false;
                    self.remove(entry.file_name(), entry.file_type())?;
                }
                // A folder that somebody else removed has nothing more to tell.
                Some(Err(Errno::NOENT)) => {}
                Some(Err(errno)) => return Err(self.failed(b"", errno)),
                None if depth > 1 => {
                    if let Some(Level { folder, name }) = self.levels.pop() {
                        // Closed first: some file systems keep a removed folder that is open under another name.
                        drop(folder);
                        self.remove(&name, FileType::Directory)?;
                        // Entered again, since there was still something in it.
                        if self.levels.len() == depth {
                            self.surprise(c"")?;
                        }
                    }
                }
                None if next_moved < self.moved => {
                    self.remove(&self.moved_name(next_moved), FileType::Directory)?;
                    next_moved += 1;
                }
                None if was_empty => {
                    self.levels.clear();
                    return Ok(());
                }
                // Reading while removing may skip what is there.
                None => {
                    level.folder.rewind();
                    was_empty = true;
                    self.surprise(c"")?;
                }
            }
        }
    }

    /// Removes what the lowest level has under `name`, or makes it the lowest level, or moves it up.
    fn remove(&mut self, name: &CStr, kind: FileType) -> io::Result<()> {
        loop {
            let Some(level) = self.levels.last() else { return Ok(()) };
            let folder = level.folder.fd().map_err(|errno| self.failed(name.to_bytes(), errno))?;
            if self.at_once(folder, name, kind)? == Attempt::Gone {
                return Ok(());
            }
            if self.levels.len() < OPEN {
                if let Some(opened) = self.open(folder, name)? {
                    return self.enter(opened, name.to_owned());
                }
            } else if self.move_up(name)? {
                return Ok(());
            }
            self.surprise(name)?;
        }
    }

    /// Without looking inside. Neither call follows a link or removes a mount.
    fn at_once(&self, parent: BorrowedFd<'_>, name: &CStr, kind: FileType) -> io::Result<Attempt> {
        let as_folder = || rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR);
        let as_file = || rustix::fs::unlinkat(parent, name, AtFlags::empty());
        let answer = match kind {
            FileType::Directory => {
                as_folder().or_else(|errno| if errno == Errno::NOTDIR { as_file() } else { Err(errno) })
            }
            // The kind that a folder tells of its entries may be unknown, and old.
            _ => as_file().or_else(|errno| if errno == Errno::ISDIR { as_folder() } else { Err(errno) }),
        };
        match answer {
            Ok(()) | Err(Errno::NOENT) => Ok(Attempt::Gone),
            // `ISDIR` and `NOTDIR` are left when it was swapped between the two calls.
            Err(Errno::NOTEMPTY | Errno::EXIST | Errno::ISDIR | Errno::NOTDIR) => Ok(Attempt::IsFolder),
            Err(errno) => Err(self.failed(name.to_bytes(), errno)),
        }
    }

    /// A folder to read; none when it is no longer there, or no longer a folder.
    fn open(&self, parent: BorrowedFd<'_>, name: &CStr) -> io::Result<Option<OwnedFd>> {
        let opened = match rustix::fs::openat2(parent, name, FOLDER, Mode::empty(), INSIDE) {
            Err(Errno::ACCESS) => open_closed(parent, name),
            answer => answer,
        };
        match opened {
            Ok(folder) => Ok(Some(folder)),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::AGAIN) => Ok(None),
            Err(errno) => Err(self.failed(name.to_bytes(), errno)),
        }
    }

    fn enter(&mut self, folder: OwnedFd, name: CString) -> io::Result<()> {
        let level = allow_changes(&folder).and_then(|()| Dir::new(folder));
        let folder = level.map_err(|errno| self.failed(name.to_bytes(), errno))?;
        self.levels.push(Level { folder, name });
        Ok(())
    }

    /// Moves a folder from the lowest level to the top of the tree, to be removed from there; false when it is no
    /// longer there.
    fn move_up(&mut self, name: &CStr) -> io::Result<bool> {
        let (Some(top), Some(lowest)) = (self.levels.first(), self.levels.last()) else { return Ok(false) };
        let fresh = self.moved_name(self.moved);
        let moved = top.folder.fd().and_then(|top| {
            let lowest = lowest.folder.fd()?;
            match rustix::fs::renameat(lowest, name, top, &fresh) {
                // To move a folder is to write its `..`, for which it must be writable.
                Err(Errno::ACCESS) => {
                    open_closed(lowest, name)?;
                    rustix::fs::renameat(lowest, name, top, &fresh)
                }
                answer => answer,
            }
        });
        match moved {
            Ok(()) => {
                self.moved += 1;
                Ok(true)
            }
            Err(Errno::NOENT | Errno::LOOP) => Ok(false),
            // Something else has that name after all, and is removed as well; or this is no folder any more.
            Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOTDIR | Errno::ISDIR) => {
                self.moved += 1;
                Ok(false)
            }
            Err(errno) => Err(self.failed(name.to_bytes(), errno)),
        }
    }

    fn moved_name(&self, number: u64) -> CString {
        // Digits hold no zero byte.
        CString::new(format!("belljar-removing-{:016x}-{number}", self.secret)).unwrap_or_default()
    }

    fn surprise(&mut self, name: &CStr) -> io::Result<()> {
        self.surprises += 1;
        if self.surprises < SURPRISES {
            return Ok(());
        }
        Err(self.failed(name.to_bytes(), io::Error::new(io::ErrorKind::ResourceBusy, "somebody keeps changing it")))
    }

    fn failed(&self, name: &[u8], cause: impl Into<io::Error>) -> io::Error {
        let source = cause.into();
        let above = self.levels.iter().map(|level| level.name.to_bytes());
        let names = std::iter::once(self.above.to_bytes()).chain(above).chain([name]);
        let path = names.filter(|name| !name.is_empty()).map(OsStr::from_bytes).collect();
        io::Error::new(source.kind(), Unremoved { path, source })
    }
}

/// Opens a folder that we may not read, after changing its mode.
fn open_closed(parent: BorrowedFd<'_>, name: &CStr) -> rustix::io::Result<OwnedFd> {
    let handle = rustix::fs::openat2(parent, name, HANDLE, Mode::empty(), INSIDE)?;
    // By the handle and not by the name: under that, a link could be by now.
    allow_all(handle.as_fd())?;
    rustix::fs::openat(&handle, c".", FOLDER, Mode::empty())
}

/// Gives ourselves all rights to the folder, whatever the descriptor was opened for.
fn allow_all(folder: BorrowedFd<'_>) -> rustix::io::Result<()> {
    // The kernel changes modes by a mere handle only through its own links, so they must be its own.
    let links = rustix::fs::openat(CWD, c"/proc/thread-self/fd", HANDLE, Mode::empty())?;
    if rustix::fs::fstatfs(&links)?.f_type != PROC_SUPER_MAGIC {
        return Err(Errno::ACCESS);
    }
    rustix::fs::chmodat(&links, folder.as_raw_fd().to_string(), Mode::RWXU, AtFlags::empty())
}

/// Makes it possible to remove what is in the folder.
fn allow_changes(folder: &OwnedFd) -> rustix::io::Result<()> {
    let mode = Mode::from_raw_mode(rustix::fs::fstat(folder)?.st_mode);
    if mode.contains(Mode::RWXU) {
        return Ok(());
    }
    match rustix::fs::fchmod(folder.as_fd(), Mode::RWXU) {
        // Somebody else's folder. Whether it can be emptied all the same is seen when it is tried.
        Err(Errno::PERM) => Ok(()),
        answer => answer,
    }
}
