//! The folder in which questions and answers meet: made so that only its owner can put something into it, and used
//! through a descriptor, so that it can't come to be another.

use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use model::Trouble;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, RenameFlags, Stat};
use rustix::io::Errno;

pub struct Folder {
    fd: OwnedFd,
    path: PathBuf,
    owner: u32,
    reach: Reach,
}

/// Who can put something into a folder, besides its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    Nobody,
    /// This group, whose people can take nothing of others away.
    Group(u32),
    /// The same, while it is still being made.
    Made(u32),
}

/// A file that was opened without following a link to it, and what the kernel says of it.
pub struct Opened {
    pub file: std::fs::File,
    pub stat: Stat,
}

impl Folder {
    /// Our own, made if there is none.
    pub fn made(state: Option<&Path>) -> Result<Folder, Trouble> {
        let state = state.ok_or_else(|| Trouble {
            message: "there is no folder for state: neither XDG_STATE_HOME nor HOME is set".to_owned(),
            fix: "set HOME".to_owned(),
        })?;
        let folder = state.join("approvals");
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder.join("session"))
            .map_err(|error| unusable(&folder, format!("it can't be made: {error}")))?;
        let us = rustix::process::geteuid().as_raw();
        Folder::found(Some(state), us)?.ok_or_else(|| unusable(&folder, "it is gone again".to_owned()))
    }

    /// That of `owner`, if there is one.
    pub fn found(state: Option<&Path>, owner: u32) -> Result<Option<Folder>, Trouble> {
        let Some(state) = state else { return Ok(None) };
        // Folders around it may be links; neither it nor the state is, or somebody else says where our answers are.
        let reach = Reach::Nobody;
        let Some(around) = open_folder(rustix::fs::CWD, state, state, owner, reach)? else { return Ok(None) };
        Folder::within(around.as_fd(), &state.join("approvals"), owner, reach)
    }

    /// The last name of this path, in a folder that is open.
    pub fn within(at: BorrowedFd<'_>, path: &Path, owner: u32, reach: Reach) -> Result<Option<Folder>, Trouble> {
        let name = path.file_name().map_or(path, Path::new);
        let fd = open_folder(at, name, path, owner, reach)?;
        Ok(fd.map(|fd| Folder { fd, path: path.to_owned(), owner, reach }))
    }

    /// Of a question in it: where others look for one, the folder keeps those out who should not.
    pub fn question_mode(&self) -> u32 {
        if self.reach == Reach::Nobody { 0o600 } else { 0o644 }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn owner(&self) -> u32 {
        self.owner
    }

    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// The folder with answers that hold for a session; of the same kind.
    pub fn sessions(&self) -> Result<Option<Folder>, Trouble> {
        let path = self.path.join("session");
        Folder::within(self.fd(), &path, self.owner, Reach::Nobody)
    }

    pub fn names(&self) -> Result<Vec<String>, Errno> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.fd)? {
            // What is no text is no name of ours.
            if let Ok(name) = entry?.file_name().to_str()
                && !matches!(name, "." | "..")
            {
                names.push(name.to_owned());
            }
        }
        Ok(names)
    }

    /// Opens a file to read. A pipe would keep us waiting, a link would lead elsewhere.
    pub fn open(&self, name: &str) -> Result<Opened, Errno> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(&self.fd, name, flags, Mode::empty())?;
        let stat = rustix::fs::fstat(&fd)?;
        Ok(Opened { file: fd.into(), stat })
    }

    /// A file under another name, whole and on the disk, that `publish` gives its name.
    pub fn write(&self, temporary: &str, mode: u32, bytes: &[u8]) -> Result<std::fs::File, std::io::Error> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(&self.fd, temporary, flags, Mode::from_raw_mode(0o600))?;
        let mut file = std::fs::File::from(fd);
        file.write_all(bytes)?;
        // Whatever the mask of this process is.
        rustix::fs::fchmod(&file, Mode::from_raw_mode(mode))?;
        file.sync_all()?;
        Ok(file)
    }

    /// Gives it its name, at once and only if nobody has it: of several, one wins.
    pub fn publish(&self, temporary: &str, name: &str) -> Result<(), Errno> {
        let named = rustix::fs::renameat_with(&self.fd, temporary, &self.fd, name, RenameFlags::NOREPLACE);
        if named.is_err() {
            self.remove(temporary);
        }
        named
    }

    /// Takes a file away from its name, into a name that only we use.
    pub fn take(&self, name: &str, into: &Folder, new: &str) -> Result<(), Errno> {
        rustix::fs::renameat(&self.fd, name, &into.fd, new)
    }

    /// Whether it is gone, by us or by whoever was faster. What stays is never taken for an answer all the same.
    pub fn remove(&self, name: &str) -> bool {
        let mut removed = rustix::fs::unlinkat(&self.fd, name, AtFlags::empty());
        if removed == Err(Errno::ISDIR) {
            removed = rustix::fs::unlinkat(&self.fd, name, AtFlags::REMOVEDIR);
        }
        matches!(removed, Ok(()) | Err(Errno::NOENT))
    }

    pub fn stat(&self, name: &str) -> Option<Stat> {
        rustix::fs::statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW).ok()
    }

    pub fn has(&self, name: &str) -> bool {
        self.stat(name).is_some()
    }
}

impl Opened {
    /// What is in it, if it is a plain file that has one name, no more than `most` bytes, and no writer but its owner.
    pub fn read(&mut self, most: u64) -> Result<Vec<u8>, String> {
        if FileType::from_raw_mode(self.stat.st_mode) != FileType::RegularFile {
            return Err("it is no plain file".to_owned());
        }
        if self.stat.st_nlink != 1 {
            return Err(format!("it has {} names", self.stat.st_nlink));
        }
        if self.stat.st_mode & 0o022 != 0 {
            return Err("others may write to it".to_owned());
        }
        let mut bytes = Vec::new();
        let read = (&mut self.file).take(most + 1).read_to_end(&mut bytes);
        read.map_err(|error| format!("it can't be read: {error}"))?;
        if bytes.len() as u64 > most {
            return Err(format!("it has more than {most} bytes"));
        }
        Ok(bytes)
    }
}

/// Something that nobody can guess, as digits.
pub fn random<const BYTES: usize>() -> Result<String, Errno> {
    let mut bytes = [0u8; BYTES];
    let mut filled = 0;
    while filled < BYTES {
        filled += rustix::rand::getrandom(&mut bytes[filled..], rustix::rand::GetRandomFlags::empty())?;
    }
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

pub fn unusable(path: &Path, why: String) -> Trouble {
    Trouble {
        message: format!("the folder for questions, `{}`, can't be used: {why}", path.display()),
        fix: "mend it, or choose another folder with XDG_STATE_HOME".to_owned(),
    }
}

fn open_folder(
    at: BorrowedFd<'_>,
    name: &Path,
    path: &Path,
    owner: u32,
    reach: Reach,
) -> Result<Option<OwnedFd>, Trouble> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let fd = match rustix::fs::openat(at, name, flags, Mode::empty()) {
        Ok(fd) => fd,
        Err(Errno::NOENT) => return Ok(None),
        Err(Errno::NOTDIR | Errno::LOOP) => return Err(unusable(path, "it is a link, or no folder".to_owned())),
        Err(error) => return Err(unusable(path, format!("it can't be opened: {error}"))),
    };
    let stat = rustix::fs::fstat(&fd).map_err(|error| unusable(path, error.to_string()))?;
    if stat.st_uid != owner {
        return Err(unusable(path, format!("it belongs to user {}, and not to user {owner}", stat.st_uid)));
    }
    let open_to_others = match reach {
        Reach::Nobody => stat.st_mode & 0o022 != 0,
        Reach::Group(group) => stat.st_gid != group || stat.st_mode & 0o007 != 0 || stat.st_mode & 0o1000 == 0,
        Reach::Made(group) => stat.st_gid != group || stat.st_mode & 0o007 != 0,
    };
    if open_to_others {
        return Err(unusable(path, "others may write to it".to_owned()));
    }
    Ok(Some(fd))
}
