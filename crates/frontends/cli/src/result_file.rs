//! Where the result goes. The command may own the folder it goes to: so it is written when the command has ended, as
//! a new file that takes the place of whatever lies there, through a folder that was opened before it began.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode, OFlags};

pub struct ResultFile {
    folder: OwnedFd,
    name: OsString,
}

impl ResultFile {
    /// Finds out in time whether a result could be written.
    pub fn open(path: &Path) -> io::Result<ResultFile> {
        let (folder, name) = folder_of(path)?;
        // As root, a result would take the place of `/dev/full` itself.
        match rustix::fs::statat(&folder, name.as_os_str(), AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) if is_special(FileType::from_raw_mode(stat.st_mode)) => {
                return Err(io::Error::other("there is something that is no file"));
            }
            Ok(_) | Err(rustix::io::Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
        let file = ResultFile { folder, name };
        let draft = file.draft();
        rustix::fs::openat(&file.folder, &draft, NEW, MODE)?;
        rustix::fs::unlinkat(&file.folder, &draft, AtFlags::empty())?;
        Ok(file)
    }

    pub fn write(&self, contents: &[u8]) -> io::Result<()> {
        let draft = self.draft();
        match rustix::fs::unlinkat(&self.folder, &draft, AtFlags::empty()) {
            Ok(()) | Err(rustix::io::Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
        let file = rustix::fs::openat(&self.folder, &draft, NEW, MODE)?;
        let mut rest = contents;
        while !rest.is_empty() {
            rest = &rest[rustix::io::write(&file, rest)?..];
        }
        Ok(rustix::fs::renameat(&self.folder, &draft, &self.folder, self.name.as_os_str())?)
    }

    fn draft(&self) -> OsString {
        let mut draft = OsString::from(format!(".belljar-{}-", std::process::id()));
        draft.push(OsStr::new("result"));
        draft
    }
}

/// What nobody replaces by a file: a device, a folder, a pipe.
fn is_special(kind: FileType) -> bool {
    !matches!(kind, FileType::RegularFile | FileType::Symlink)
}

/// The folder that a path is in, opened, and its name there.
pub fn folder_of(path: &Path) -> io::Result<(OwnedFd, OsString)> {
    let name = path.file_name().ok_or_else(|| io::Error::other("it has no name"))?.to_owned();
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    let here = std::env::current_dir()?;
    let real = std::fs::canonicalize(folder)?;
    // Below the current folder a link may have been planted by whoever ran here before.
    if real != here.join(folder) && folder.is_relative() && !folder.starts_with("..") && folder != Path::new(".") {
        return Err(io::Error::other(format!("it leads over a link to `{}`", real.display())));
    }
    Ok((rustix::fs::open(&real, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?, name))
}

pub const NEW: OFlags =
    OFlags::WRONLY.union(OFlags::CREATE).union(OFlags::EXCL).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const MODE: Mode = Mode::from_raw_mode(0o644);
