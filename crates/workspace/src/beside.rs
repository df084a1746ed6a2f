//! A copy of the layer that somebody writes to this very moment: for forks of a sandbox that stays open.
//!
//! Whoever is inside may change anything meanwhile. What is gone when we come to it was not there; nothing is read beyond the size that
//! it had when it was looked at, and holes stay holes, so a copy takes no more room than what it is a copy of.

use std::ffi::{CStr, OsStr};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, SeekFrom, Timespec, Timestamps, Uid, XattrFlags};
use rustix::io::Errno;

use crate::changes::shown;
use crate::error::{Result, cannot};
use crate::files::{Folder, LONGEST_PATH, Seen, is_absent, join};

/// What an overlay remembers of a folder: that nothing below shows through, and which folder it was.
const NOTES: [&CStr; 2] = [c"user.overlay.opaque", c"user.overlay.origin"];

/// Everything in `from`, and what `from` itself is like, into `to`, which is empty.
pub fn copy(from: &Path, to: &Path) -> Result<()> {
    let open = |path: &Path| Folder::open_layer(path).map_err(cannot("open", path));
    let (source, target) = (open(from)?, open(to)?);
    // Folders are closed only after what is in them is there.
    let mut folders = vec![Vec::new()];
    let mut done = 0;
    while let Some(path) = folders.get(done).cloned() {
        done += 1;
        let trouble = || cannot("copy", from.join(shown(&path)));
        let names = match source.below(&path).and_then(|folder| folder.names()) {
            Err(error) if is_absent(&error) => continue,
            names => names.map_err(trouble())?,
        };
        for name in names {
            let path = join(&path, &name);
            if path.len() > LONGEST_PATH {
                continue;
            }
            match one(&source, &target, &path) {
                Ok(true) => folders.push(path),
                Ok(false) => {}
                Err(error) if is_absent(&error) => {}
                Err(error) => return Err(cannot("copy", from.join(shown(&path)))(error)),
            }
        }
    }
    for path in folders.iter().rev() {
        let close = || -> io::Result<()> {
            let (was, is) = (source.below(path)?, target.below(path)?);
            for note in NOTES {
                if let Some(value) = was.attribute(note)? {
                    rustix::fs::fsetxattr(is.fd(), note, &value, XattrFlags::empty())?;
                }
            }
            become_like(is.fd(), &was.seen()?)
        };
        match close() {
            Err(error) if is_absent(&error) => {}
            closed => closed.map_err(cannot("copy", from.join(shown(path))))?,
        }
    }
    Ok(())
}

/// Whether it is a folder, in which there may be more.
fn one(from: &Folder, to: &Folder, path: &[u8]) -> io::Result<bool> {
    // Held, so that what is copied is what was looked at.
    let (seen, file) = from.open_only_a_file(path)?;
    let (parent, name) = to.parent_of(path)?;
    let private = Mode::from_raw_mode(0o700);
    match (seen.kind, file) {
        (FileType::Directory, _) => {
            rustix::fs::mkdirat(parent.fd(), name, private)?;
            return Ok(true);
        }
        (FileType::RegularFile, Some(file)) => {
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let copy = rustix::fs::openat(parent.fd(), name, flags, private)?;
            contents(file.as_fd(), copy.as_fd(), seen.size)?;
            become_like(copy.as_fd(), &seen)?;
        }
        (FileType::Symlink, _) => {
            let target = from.link(path)?;
            rustix::fs::symlinkat(OsStr::new(shown(&target)), parent.fd(), name)?;
            owned(parent.fd(), name, &seen)?;
        }
        // How an overlay says that something is gone: this one anybody may make.
        _ if seen.is_whiteout() => {
            rustix::fs::mknodat(parent.fd(), name, FileType::CharacterDevice, Mode::empty(), 0)?;
        }
        (FileType::Fifo, _) => {
            let mode = Mode::from_raw_mode(seen.mode & 0o777);
            rustix::fs::mknodat(parent.fd(), name, FileType::Fifo, mode, 0)?;
            owned(parent.fd(), name, &seen)?;
        }
        // A socket is nothing without whoever listens at it.
        _ => {}
    }
    Ok(false)
}

/// The blocks themselves where the filesystem can share them; else what is between holes.
fn contents(from: BorrowedFd<'_>, to: BorrowedFd<'_>, size: u64) -> io::Result<()> {
    if rustix::fs::ioctl_ficlone(to, from).is_ok() {
        return Ok(());
    }
    rustix::fs::ftruncate(to, size)?;
    let mut at = 0;
    while at < size {
        at = match rustix::fs::seek(from, SeekFrom::Data(at)) {
            Ok(data) => data,
            Err(Errno::NXIO) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let end = rustix::fs::seek(from, SeekFrom::Hole(at))?.min(size);
        let mut place = at;
        while at < end {
            let most = usize::try_from(end - at).unwrap_or(usize::MAX);
            if rustix::fs::copy_file_range(from, Some(&mut at), to, Some(&mut place), most)? == 0 {
                // It has become shorter.
                return Ok(());
            }
        }
    }
    Ok(())
}

fn become_like(copy: BorrowedFd<'_>, seen: &Seen) -> io::Result<()> {
    if rustix::process::geteuid().is_root() {
        rustix::fs::fchown(copy, Some(Uid::from_raw(seen.owner.0)), Some(Gid::from_raw(seen.owner.1)))?;
    }
    rustix::fs::fchmod(copy, Mode::from_raw_mode(seen.mode & 0o777))?;
    let (tv_sec, tv_nsec) = (seen.modified.div_euclid(1_000_000_000), seen.modified.rem_euclid(1_000_000_000));
    let time = Timespec { tv_sec, tv_nsec };
    Ok(rustix::fs::futimens(copy, &Timestamps { last_access: time, last_modification: time })?)
}

fn owned(parent: BorrowedFd<'_>, name: &OsStr, seen: &Seen) -> io::Result<()> {
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    let (user, group) = (Uid::from_raw(seen.owner.0), Gid::from_raw(seen.owner.1));
    Ok(rustix::fs::chownat(parent, name, Some(user), Some(group), AtFlags::SYMLINK_NOFOLLOW)?)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn a_copy_is_the_same_and_no_larger() -> std::result::Result<(), Box<dyn std::error::Error>> {
        let place = std::env::temp_dir().join(format!("belljar-beside-{}", std::process::id()));
        let (from, to) = (place.join("from"), place.join("to"));
        std::fs::create_dir_all(from.join("folder/closed"))?;
        std::fs::create_dir_all(&to)?;
        std::fs::write(from.join("folder/file"), "words")?;
        std::fs::write(from.join("folder/closed/inner"), "hidden")?;
        std::fs::set_permissions(from.join("folder/closed"), PermissionsExt::from_mode(0o000))?;
        std::os::unix::fs::symlink("/etc/passwd", from.join("link"))?;
        let sparse = std::fs::File::create(from.join("sparse"))?;
        sparse.set_len(1 << 40)?;
        std::os::unix::fs::FileExt::write_at(&sparse, b"end", (1 << 40) - 3)?;
        let open = Folder::open(&from)?;
        rustix::fs::mknodat(open.fd(), "gone", FileType::CharacterDevice, Mode::empty(), 0)?;
        rustix::fs::mknodat(open.fd(), "pipe", FileType::Fifo, Mode::from_raw_mode(0o600), 0)?;
        let _socket = UnixListener::bind(from.join("socket"))?;
        let folder = Folder::open(&from.join("folder"))?;
        rustix::fs::fsetxattr(folder.fd(), NOTES[0], b"y", XattrFlags::empty())?;
        copy(&from, &to)?;
        assert_eq!(std::fs::read_to_string(to.join("folder/file"))?, "words");
        assert_eq!(std::fs::read_link(to.join("link"))?, Path::new("/etc/passwd"));
        let closed = std::fs::metadata(to.join("folder/closed"))?;
        assert_eq!(closed.permissions().mode() & 0o777, 0);
        std::fs::set_permissions(to.join("folder/closed"), PermissionsExt::from_mode(0o700))?;
        assert_eq!(std::fs::read_to_string(to.join("folder/closed/inner"))?, "hidden");
        let sparse = std::fs::metadata(to.join("sparse"))?;
        assert!(sparse.len() == 1 << 40 && sparse.blocks() < 1000, "{} blocks", sparse.blocks());
        let kind = |name: &str| std::fs::symlink_metadata(to.join(name)).map(|found| found.file_type());
        assert!(kind("gone")?.is_char_device() && kind("pipe")?.is_fifo() && kind("socket").is_err());
        let copied = Folder::open(&to.join("folder"))?;
        assert_eq!(copied.attribute(NOTES[0])?.as_deref(), Some(b"y".as_slice()));
        std::fs::set_permissions(from.join("folder/closed"), PermissionsExt::from_mode(0o700))?;
        std::fs::remove_dir_all(&place)?;
        Ok(())
    }
}
