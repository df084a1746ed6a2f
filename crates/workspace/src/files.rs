//! Files by descriptor: every path is walked beneath an open folder, over no link and no mount. Whoever wrote the
//! tree gains nothing from what it put where.

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
    /// A layer's: files in it that hostile code has closed are opened all the same. Files of the host's are not.
    ours: bool,
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
    /// How many names it has.
    pub names: u64,
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
            names: stat.st_nlink,
        }
    }

    /// A file of no size and no time.
    pub(crate) fn nothing() -> Seen {
        let owner = (0, 0);
        let kind = FileType::RegularFile;
        let (number, bytes, names) = (0, 0, 1);
        Seen { kind, mode: 0, size: 0, modified: 0, changed: 0, inode: 0, device: 0, owner, number, bytes, names }
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
/// What lies deeper than a path of this length can't be opened by any program that does not go there step by step: it
/// is not looked into. Whoever makes such a tree wants us to be busy with it.
pub const LONGEST_PATH: usize = 4095;
/// The longest path that the kernel walks in one call, with room for its end.
const LONGEST: usize = 4000;
/// Links are shorter everywhere.
const LONGEST_LINK: u64 = 1 << 16;

impl Folder {
    /// By an absolute path without links in it.
    pub fn open(path: &Path) -> io::Result<Folder> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        Ok(Folder { fd: rustix::fs::openat2(CWD, path, flags, Mode::empty(), resolve)?, ours: false })
    }

    /// The same for a layer of ours, of which nothing is closed to us.
    pub fn open_layer(path: &Path) -> io::Result<Folder> {
        Ok(Folder { ours: true, ..Folder::open(path)? })
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
        match self.walk(path, flags) {
            Err(error) if self.ours && error.kind() == io::ErrorKind::PermissionDenied => self.insist(path, flags),
            opened => opened,
        }
        .map(|fd| Folder { fd, ours: self.ours })
    }

    /// Opens what is at `path` for something, without waiting for the other end of a pipe.
    pub fn open_file(&self, path: &[u8]) -> io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        match self.walk(path, flags) {
            Err(error) if self.ours && error.kind() == io::ErrorKind::PermissionDenied => self.insist(path, flags),
            opened => opened,
        }
    }

    /// What is at `path`, opened if it is a file. It is held first and opened through that, so nobody can put something
    /// else in its place; and what is no file is never opened, since a device may do something then.
    pub fn open_only_a_file(&self, path: &[u8]) -> io::Result<(Seen, Option<std::fs::File>)> {
        let found = self.handle(path)?;
        let seen = Seen::of(&rustix::fs::fstat(&found)?);
        if !seen.is_file() {
            return Ok((seen, None));
        }
        let own = format!("/proc/self/fd/{}", found.as_raw_fd());
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let open = || rustix::fs::open(&own, flags, Mode::empty());
        let opened = match open() {
            Err(Errno::ACCESS) if self.ours => opened_up(found.as_fd(), open)?,
            opened => opened?,
        };
        Ok((seen, Some(opened.into())))
    }

    /// Keeps what is at `path` from being forgotten, whatever becomes of its name.
    pub fn hold(&self, path: &[u8]) -> io::Result<OwnedFd> {
        self.walk(path, OFlags::PATH)
    }

    /// The folder that `path` is in, and its name there.
    pub fn parent_of<'a>(&self, path: &'a [u8]) -> io::Result<(Folder, &'a OsStr)> {
        let (parent, name) = split(path);
        let fd = self.walk(parent, OFlags::PATH | OFlags::DIRECTORY)?;
        Ok((Folder { fd, ours: self.ours }, OsStr::from_bytes(name)))
    }

    /// What is at `path`; nothing if any part of the way is missing, or is no folder.
    pub fn look(&self, path: &[u8]) -> io::Result<Option<Seen>> {
        if path.is_empty() {
            return self.seen().map(Some);
        }
        match self.handle(path) {
            Ok(found) => Ok(Some(Seen::of(&rustix::fs::fstat(found)?))),
            Err(error) if is_absent(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The target of the link at `path`.
    pub fn link(&self, path: &[u8]) -> io::Result<Vec<u8>> {
        let link = self.handle(path)?;
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
        for entry in self.entries()? {
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
        for entry in self.entries()? {
            let entry = entry?;
            if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// What is called `name` right here.
    pub fn look_at(&self, name: &OsStr) -> io::Result<Option<Seen>> {
        let look = || rustix::fs::statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW);
        let looked = match look() {
            Err(Errno::ACCESS) if self.ours => opened_up(self.fd(), look),
            looked => looked.map_err(io::Error::from),
        };
        match looked {
            Ok(stat) => Ok(Some(Seen::of(&stat))),
            Err(error) if Errno::from_io_error(&error) == Some(Errno::NOENT) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Sets the mode of this folder, also where it was only opened to be walked over.
    pub fn set_own_mode(&self, mode: u32) -> io::Result<()> {
        let own = format!("/proc/self/fd/{}", self.fd.as_raw_fd());
        Ok(rustix::fs::chmod(own, Mode::from_raw_mode(mode))?)
    }

    /// Sets the mode of the folder called `name` right here.
    pub fn set_mode(&self, name: &OsStr, mode: u32) -> io::Result<()> {
        Folder { fd: self.walk(name.as_bytes(), OFlags::PATH | OFlags::DIRECTORY)?, ours: false }.set_own_mode(mode)
    }

    /// An attribute of the folder itself, if it has it and it is not longer than 256 bytes.
    pub fn attribute(&self, name: &CStr) -> io::Result<Option<Vec<u8>>> {
        let read = || {
            let mut value = vec![0u8; 256];
            let length = rustix::fs::fgetxattr(&self.fd, name, value.as_mut_slice())?;
            value.truncate(length);
            Ok(value)
        };
        let read = match read() {
            Err(Errno::ACCESS) if self.ours => opened_up(self.fd(), read),
            read => read.map_err(io::Error::from),
        };
        match read {
            Ok(value) => Ok(Some(value)),
            Err(error) => match Errno::from_io_error(&error) {
                Some(Errno::NODATA | Errno::OPNOTSUPP | Errno::RANGE) => Ok(None),
                _ => Err(error),
            },
        }
    }

    fn handle(&self, path: &[u8]) -> io::Result<OwnedFd> {
        match self.walk(path, OFlags::PATH) {
            Err(error) if self.ours && error.kind() == io::ErrorKind::PermissionDenied => {
                self.insist(path, OFlags::PATH)
            }
            found => found,
        }
    }

    /// What is in this folder, read through our own descriptor: it may be closed to us by its name.
    fn entries(&self) -> io::Result<Dir> {
        let mut entries = Dir::new(self.fd.try_clone()?)?;
        entries.rewind();
        Ok(entries)
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

    /// Opens something of ours that somebody has closed to everyone, or put into something closed, and leaves it so.
    fn insist(&self, path: &[u8], flags: OFlags) -> io::Result<OwnedFd> {
        let handle = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut found = rustix::fs::openat2(self.fd(), c".", handle, Mode::empty(), BENEATH)?;
        for name in path.split(|byte| *byte == b'/').filter(|name| !name.is_empty()) {
            let open = || rustix::fs::openat2(&found, name, handle, Mode::empty(), BENEATH);
            found = match open() {
                Err(Errno::ACCESS) => opened_up(found.as_fd(), open)?,
                opened => opened?,
            };
        }
        if flags.contains(OFlags::PATH) {
            return Ok(found);
        }
        let seen = Seen::of(&rustix::fs::fstat(&found)?);
        if !(seen.is_folder() || seen.is_file()) {
            return Err(Errno::ACCESS.into());
        }
        // Through the descriptor: the name may be a link by now.
        let own = format!("/proc/self/fd/{}", found.as_raw_fd());
        opened_up(found.as_fd(), || rustix::fs::open(&own, flags | OFlags::CLOEXEC, Mode::empty()))
    }
}

/// Does something that needs all rights to a file of ours, and closes it again.
fn opened_up<T>(file: BorrowedFd<'_>, does: impl Fn() -> rustix::io::Result<T>) -> io::Result<T> {
    let seen = Seen::of(&rustix::fs::fstat(file)?);
    if seen.owner.0 != rustix::process::geteuid().as_raw() {
        return Err(Errno::ACCESS.into());
    }
    let own = format!("/proc/self/fd/{}", file.as_raw_fd());
    rustix::fs::chmod(&own, Mode::from_raw_mode(seen.mode | 0o700))?;
    let done = does();
    rustix::fs::chmod(&own, Mode::from_raw_mode(seen.mode))?;
    Ok(done?)
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
