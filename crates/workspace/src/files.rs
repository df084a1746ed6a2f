//! Files by descriptor: every path is walked beneath an open folder, over no link and no mount. Whoever wrote the
//! tree gains nothing from what it put where.

use std::cell::RefCell;
use std::ffi::{CStr, OsStr};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;

/// An open folder.
#[derive(Debug)]
pub struct Folder {
    fd: OwnedFd,
    /// A layer of ours: what the sandbox has closed in it is opened all the same.
    layer: bool,
}

/// What is known of a file without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    pub kind: FileType,
    /// Permission bits, with set-user-id and the like.
    pub mode: u32,
    pub size: u64,
    /// Nanoseconds since 1970.
    pub modified: i64,
    pub changed: i64,
    pub inode: u64,
    pub device: u64,
    pub owner: (u32, u32),
    /// Of a device node.
    pub number: u64,
    /// On disk.
    pub bytes: u64,
}

impl Seen {
    pub fn of(stat: &Stat) -> Seen {
        let time = |seconds: i64, nanoseconds: u64| {
            seconds.saturating_mul(1_000_000_000).saturating_add(i64::try_from(nanoseconds).unwrap_or(0))
        };
        Seen {
            kind: FileType::from_raw_mode(stat.st_mode),
            mode: stat.st_mode & 0o7777,
            size: u64::try_from(stat.st_size).unwrap_or(0),
            modified: time(stat.st_mtime, stat.st_mtime_nsec),
            changed: time(stat.st_ctime, stat.st_ctime_nsec),
            inode: stat.st_ino,
            device: stat.st_dev,
            owner: (stat.st_uid, stat.st_gid),
            number: stat.st_rdev,
            bytes: u64::try_from(stat.st_blocks).unwrap_or(0).saturating_mul(512),
        }
    }

    pub fn is_folder(&self) -> bool {
        self.kind.is_dir()
    }

    pub fn is_file(&self) -> bool {
        self.kind.is_file()
    }

    pub fn is_link(&self) -> bool {
        self.kind.is_symlink()
    }

    /// How an overlay says that something is gone.
    pub fn is_whiteout(&self) -> bool {
        self.kind.is_char_device() && self.number == 0
    }
}

const BENEATH: ResolveFlags = ResolveFlags::BENEATH
    .union(ResolveFlags::NO_SYMLINKS)
    .union(ResolveFlags::NO_MAGICLINKS)
    .union(ResolveFlags::NO_XDEV);
/// The longest path that the kernel walks in one call, with room for its end.
const LONGEST: usize = 4000;
/// Links are shorter everywhere.
const LONGEST_LINK: u64 = 1 << 16;

impl Folder {
    /// By an absolute path without links in it.
    pub fn open(path: &Path) -> io::Result<Folder> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        Ok(Folder { fd: rustix::fs::openat2(CWD, path, flags, Mode::empty(), resolve)?, layer: false })
    }

    /// A layer, of which nothing is closed to us.
    pub fn open_layer(path: &Path) -> io::Result<Folder> {
        Ok(Folder { layer: true, ..Folder::open(path)? })
    }

    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    pub fn seen(&self) -> io::Result<Seen> {
        Ok(Seen::of(&rustix::fs::fstat(&self.fd)?))
    }

    /// The folder at `path`, to be listed. An empty path is this folder.
    pub fn below(&self, path: &[u8]) -> io::Result<Folder> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        Ok(Folder { fd: self.enter(path, flags)?, layer: self.layer })
    }

    /// Opens what is at `path` for something, without waiting for the other end of a pipe.
    pub fn open_file(&self, path: &[u8]) -> io::Result<OwnedFd> {
        self.enter(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY)
    }

    fn enter(&self, path: &[u8], flags: OFlags) -> io::Result<OwnedFd> {
        match self.walk(path, flags) {
            Err(error) if self.layer && error.kind() == io::ErrorKind::PermissionDenied => {
                let folders: Vec<&[u8]> = ancestors(path).collect();
                for path in folders.into_iter().rev().chain([path]) {
                    self.insist(path)?;
                }
                self.walk(path, flags)
            }
            opened => opened,
        }
    }

    /// The folder that `path` is in, and its name there.
    pub fn parent_of<'a>(&self, path: &'a [u8]) -> io::Result<(Folder, &'a OsStr)> {
        let (parent, name) = split(path);
        let fd = self.walk(parent, OFlags::PATH | OFlags::DIRECTORY)?;
        Ok((Folder { fd, layer: self.layer }, OsStr::from_bytes(name)))
    }

    /// What is at `path`; nothing if any part of the way is missing, or is no folder.
    pub fn look(&self, path: &[u8]) -> io::Result<Option<Seen>> {
        if path.is_empty() {
            return self.seen().map(Some);
        }
        match self.walk(path, OFlags::PATH) {
            Ok(found) => Ok(Some(Seen::of(&rustix::fs::fstat(found)?))),
            Err(error) if is_absent(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The target of the link at `path`.
    pub fn link(&self, path: &[u8]) -> io::Result<Vec<u8>> {
        let link = self.enter(path, OFlags::PATH)?;
        if Seen::of(&rustix::fs::fstat(&link)?).size > LONGEST_LINK {
            return Err(io::ErrorKind::InvalidData.into());
        }
        Ok(rustix::fs::readlinkat(link, c"", Vec::new())?.into_bytes())
    }

    /// All of a file that has at most `most` bytes; nothing if it has more, or is no file.
    pub fn read(&self, path: &[u8], most: u64) -> io::Result<Option<Vec<u8>>> {
        use std::io::Read;
        let file = self.open_file(path)?;
        let seen = Seen::of(&rustix::fs::fstat(&file)?);
        if !seen.is_file() || seen.size > most {
            return Ok(None);
        }
        let mut contents = Vec::with_capacity(usize::try_from(seen.size).unwrap_or(0).min(1 << 24));
        // It may have grown since.
        std::fs::File::from(file).take(most.saturating_add(1)).read_to_end(&mut contents)?;
        Ok((contents.len() as u64 <= most).then_some(contents))
    }

    /// Names in this folder, in order.
    pub fn names(&self) -> io::Result<Vec<Vec<u8>>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.fd)? {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if name != b"." && name != b".." {
                names.push(name.to_owned());
            }
        }
        names.sort();
        Ok(names)
    }

    pub fn is_empty(&self) -> io::Result<bool> {
        for entry in Dir::read_from(&self.fd)? {
            let entry = entry?;
            if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// What is called `name` right here.
    pub fn look_at(&self, name: &OsStr) -> io::Result<Option<Seen>> {
        match rustix::fs::statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(Seen::of(&stat))),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Sets the mode of this folder, also where it was only opened to be walked over.
    pub fn set_own_mode(&self, mode: u32) -> io::Result<()> {
        let own = format!("/proc/self/fd/{}", self.fd.as_raw_fd());
        Ok(rustix::fs::chmod(own, Mode::from_raw_mode(mode))?)
    }

    /// Sets the mode of the folder called `name` right here.
    pub fn set_mode(&self, name: &OsStr, mode: u32) -> io::Result<()> {
        Folder { fd: self.walk(name.as_bytes(), OFlags::PATH | OFlags::DIRECTORY)?, layer: false }.set_own_mode(mode)
    }

    /// An attribute of the folder itself, if it has it and it is not longer than 256 bytes.
    pub fn attribute(&self, name: &CStr) -> io::Result<Option<Vec<u8>>> {
        let mut value = vec![0u8; 256];
        match rustix::fs::fgetxattr(&self.fd, name, value.as_mut_slice()) {
            Ok(length) => {
                value.truncate(length);
                Ok(Some(value))
            }
            Err(Errno::NODATA | Errno::OPNOTSUPP | Errno::RANGE) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn walk(&self, path: &[u8], flags: OFlags) -> io::Result<OwnedFd> {
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let open = |from: BorrowedFd<'_>, path: &[u8], flags| {
            let path = if path.is_empty() { b"." } else { path };
            // Somebody who renames meanwhile makes the kernel give up: then again, but not for ever.
            for _ in 0..100 {
                match rustix::fs::openat2(from, path, flags, Mode::empty(), BENEATH) {
                    Err(Errno::AGAIN | Errno::INTR) => {}
                    opened => return Ok(opened?),
                }
            }
            Err(io::Error::from(Errno::AGAIN))
        };
        let mut rest = path;
        let mut from: Option<OwnedFd> = None;
        while rest.len() > LONGEST {
            let at = rest[..LONGEST].iter().rposition(|byte| *byte == b'/').ok_or(Errno::NAMETOOLONG)?;
            let folder = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            from = Some(open(from.as_ref().map_or(self.fd(), AsFd::as_fd), &rest[..at], folder)?);
            rest = &rest[at + 1..];
        }
        open(from.as_ref().map_or(self.fd(), AsFd::as_fd), rest, flags)
    }

    /// Makes something of ours readable that the sandbox has closed to everyone. It stays so until `close_again`, because
    /// what is in it can only be looked at as long as it is.
    fn insist(&self, path: &[u8]) -> io::Result<()> {
        let found = self.walk(path, OFlags::PATH)?;
        let seen = Seen::of(&rustix::fs::fstat(&found)?);
        if !(seen.is_folder() || seen.is_file()) {
            return Ok(());
        }
        if seen.owner.0 != rustix::process::geteuid().as_raw() {
            return Err(Errno::ACCESS.into());
        }
        let wanted = seen.mode | if seen.is_folder() { 0o500 } else { 0o400 };
        if wanted == seen.mode {
            return Ok(());
        }
        // Through the descriptor: the name may be a link by now.
        let own = format!("/proc/self/fd/{}", found.as_raw_fd());
        rustix::fs::chmod(&own, Mode::from_raw_mode(wanted))?;
        OPENED.with_borrow_mut(|opened| opened.push((found, seen.mode)));
        Ok(())
    }
}

thread_local! {
    /// What we have opened for ourselves, and its mode before.
    static OPENED: RefCell<Vec<(OwnedFd, u32)>> = const { RefCell::new(Vec::new()) };
}

/// Gives everything that was closed to us its mode back, the last first.
pub fn close_again() {
    for (found, mode) in OPENED.take().into_iter().rev() {
        // Whoever has removed it meanwhile needs no mode.
        match rustix::fs::chmod(format!("/proc/self/fd/{}", found.as_raw_fd()), Mode::from_raw_mode(mode)) {
            Ok(()) | Err(_) => {}
        }
    }
}

/// Does so when it is dropped.
pub struct Courtesy;

impl Drop for Courtesy {
    fn drop(&mut self) {
        close_again();
    }
}

/// Nothing is there, or on the way there is something that is no folder.
pub fn is_absent(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::NAMETOOLONG))
}

/// The folder that a path is in, and its last name.
pub fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(at) => (&path[..at], &path[at + 1..]),
        None => (b"", path),
    }
}

pub fn join(folder: &[u8], name: &[u8]) -> Vec<u8> {
    match folder.is_empty() {
        true => name.to_owned(),
        false => [folder, b"/", name].concat(),
    }
}

/// Every folder that `path` is in, the innermost first, without the root.
pub fn ancestors(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::successors(Some(path), |path| Some(split(path).0)).skip(1).take_while(|path| !path.is_empty())
}
