//! One workspace while it is written to: what is new lies beside, and each step swaps it with what is old.

use std::ffi::OsStr;
use std::io;
use std::os::fd::AsFd;
use std::path::PathBuf;

use rustix::fs::{AtFlags, Gid, Mode, OFlags, RenameFlags, Timespec, Timestamps, Uid};
use rustix::io::Errno;

use super::{Does, Mark, OPEN, Start, Step, Went};
use crate::base::Kind;
use crate::changes::{Version, shown};
use crate::files::{Folder, Seen, ancestors};
use crate::gate::{Decision, Judged};

/// New files in such a folder get its group.
const SET_GROUP: u32 = 0o2000;

/// One workspace while it is written to.
pub(super) struct Target {
    pub(super) place: PathBuf,
    pub(super) root: Folder,
    pub(super) beside: Folder,
    pub(super) start: Start,
}

fn new_name(number: usize) -> String {
    format!("n{number}")
}

fn old_name(number: usize) -> String {
    format!("o{number}")
}

impl Target {
    pub(super) fn write_beside(&self, number: usize, one: &Judged<'_>) -> io::Result<u64> {
        let Judged { difference, decision, host, asks: _ } = one;
        let Some(Version::In(layer, seen)) = difference.is else { return Err(io::ErrorKind::NotFound.into()) };
        let name = new_name(number);
        let beside = self.beside.fd();
        let owner = self.owner(difference.path, *host, seen)?;
        let us = rustix::process::geteuid().is_root();
        let mode = Mode::from_raw_mode(match decision {
            Decision::Merge { mode, .. } => *mode,
            _ => seen.mode & 0o777,
        });
        match (Kind::of(&seen), decision) {
            (Kind::Folder, _) => {
                rustix::fs::mkdirat(beside, &name, Mode::from_raw_mode(0o700))?;
                let folder = self.beside.below(name.as_bytes())?;
                set_owner(folder.fd(), owner, us)?;
                // A folder in one that hands its group on does so, too.
                let hands_on = Mode::from_raw_mode(self.around(difference.path)?.mode & SET_GROUP);
                rustix::fs::fchmod(folder.fd(), mode | Mode::from_raw_mode(OPEN) | hands_on)?;
            }
            (Kind::Link, _) => {
                let target = layer.link(difference.path)?;
                rustix::fs::symlinkat(OsStr::new(shown(&target)), beside, &name)?;
                if us {
                    let (user, group) = (Uid::from_raw(owner.0), Gid::from_raw(owner.1));
                    rustix::fs::chownat(beside, &name, Some(user), Some(group), AtFlags::SYMLINK_NOFOLLOW)?;
                }
            }
            (Kind::File, _) => {
                let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let file = rustix::fs::openat(beside, &name, flags, Mode::from_raw_mode(0o600))?;
                let mut file = std::fs::File::from(file);
                match decision {
                    Decision::Merge { contents, .. } => io::Write::write_all(&mut file, contents)?,
                    _ => {
                        let from = layer.open_file(difference.path)?;
                        // Looked at again through what is read: it is a file, whatever its name led to before.
                        if !Seen::of(&rustix::fs::fstat(&from)?).is_file() {
                            return Err(io::ErrorKind::InvalidData.into());
                        }
                        io::copy(&mut std::fs::File::from(from), &mut file)?;
                    }
                }
                self.keep_attributes(difference.path, *host, &file)?;
                set_owner(file.as_fd(), owner, us)?;
                rustix::fs::fchmod(&file, mode)?;
                if !matches!(decision, Decision::Merge { .. }) {
                    set_time(file.as_fd(), seen.modified)?;
                }
            }
            (Kind::Special, _) => return Err(io::ErrorKind::InvalidData.into()),
        }
        let written = self.beside.look_at(OsStr::new(&name))?.ok_or(io::ErrorKind::NotFound)?;
        Ok(written.inode)
    }

    /// Whose it is to be: whose it was, or else whose the layer says; with the group of its folder, where that is the
    /// custom.
    fn owner(&self, path: &[u8], host: Option<Seen>, layer: Seen) -> io::Result<(u32, u32)> {
        if let Some(host) = host {
            return Ok(host.owner);
        }
        let around = self.around(path)?;
        Ok(if around.mode & SET_GROUP != 0 { (layer.owner.0, around.owner.1) } else { layer.owner })
    }

    /// The innermost folder around a path that is there.
    fn around(&self, path: &[u8]) -> io::Result<Seen> {
        match ancestors(path).find_map(|folder| self.root.look(folder).ok().flatten()) {
            Some(around) => Ok(around),
            None => self.root.seen(),
        }
    }

    /// Access lists and the like of the file that is replaced stay.
    fn keep_attributes(&self, path: &[u8], host: Option<Seen>, file: &std::fs::File) -> io::Result<()> {
        if !host.is_some_and(|host| host.is_file()) {
            return Ok(());
        }
        let old = match self.root.open_file(path) {
            Ok(old) => old,
            // One may replace what one may not read.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Ok(()),
            Err(error) => return Err(error),
        };
        let mut names = vec![0u8; 1 << 16];
        let length = match rustix::fs::flistxattr(&old, names.as_mut_slice()) {
            Ok(length) => length,
            Err(Errno::OPNOTSUPP | Errno::RANGE) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        for name in names[..length].split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
            if !name.starts_with(b"user.") && name != b"system.posix_acl_access" {
                continue;
            }
            let mut value = vec![0u8; 1 << 16];
            let length = match rustix::fs::fgetxattr(&old, name, value.as_mut_slice()) {
                Ok(length) => length,
                Err(Errno::NODATA) => continue,
                Err(error) => return Err(error.into()),
            };
            rustix::fs::fsetxattr(file, name, &value[..length], rustix::fs::XattrFlags::empty())?;
        }
        Ok(())
    }

    pub(super) fn sync_beside(&self) -> io::Result<()> {
        for name in self.beside.names()? {
            let is_file = self.beside.look_at(OsStr::new(shown(&name)))?.is_some_and(|seen| seen.is_file());
            if is_file {
                rustix::fs::fsync(self.beside.open_file(&name)?)?;
            }
        }
        Ok(rustix::fs::fsync(self.beside.fd())?)
    }

    pub(super) fn take(&self, number: usize, step: &Step) -> io::Result<Went> {
        match step.does {
            Does::Put { inode } => self.put(number, step, inode),
            Does::Remove => self.remove(number, step),
            Does::RemoveFolder { .. } => {
                let Some((parent, name)) = self.parent(&step.path)? else { return Ok(Went::Done) };
                match writable(&parent, || rustix::fs::unlinkat(parent.fd(), name, AtFlags::REMOVEDIR))? {
                    Ok(()) | Err(Errno::NOENT) => Ok(Went::Done),
                    // Somebody has something in it.
                    Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOTDIR | Errno::BUSY) => Ok(Went::Beaten),
                    Err(error) => Err(error.into()),
                }
            }
            Does::SetMode { after, .. } => self.set_mode(&step.path, after).map(|()| Went::Done),
        }
    }

    fn put(&self, number: usize, step: &Step, inode: u64) -> io::Result<Went> {
        let draft = new_name(number);
        let lying = match self.beside.look_at(OsStr::new(&draft))? {
            Some(lying) => lying,
            // Put where nothing was, by whoever was cut off; or somebody took it away, and nobody knows what is where.
            None if self.start == Start::CutOff => return Ok(Went::Done),
            None => return Err(io::ErrorKind::NotFound.into()),
        };
        let (parent, name) = match self.parent(&step.path)? {
            Some(found) => found,
            None => {
                self.make_way(&step.path)?;
                self.parent(&step.path)?.ok_or(io::ErrorKind::NotFound)?
            }
        };
        let rename =
            |flags| writable(&parent, || rustix::fs::renameat_with(self.beside.fd(), &draft, parent.fd(), name, flags));
        let Some(expected) = step.expected else {
            return match rename(RenameFlags::NOREPLACE)? {
                Ok(()) => Ok(Went::Done),
                Err(Errno::EXIST) => Ok(Went::Beaten),
                Err(error) => Err(error.into()),
            };
        };
        // Held, so that no other file gets its number meanwhile.
        let _ours = if lying.inode == inode { Some(self.beside.hold(draft.as_bytes())?) } else { None };
        if lying.inode == inode {
            match rename(RenameFlags::EXCHANGE)? {
                Ok(()) => {}
                Err(Errno::NOENT) => return Ok(Went::Beaten),
                Err(error) => return Err(error.into()),
            }
        }
        // Only now nobody can change it any more by its name: is it still what was looked at?
        if self.is_still(&draft, expected)? {
            return Ok(Went::Done);
        }
        self.give_back(&parent, name, &draft, inode)?;
        Ok(Went::Beaten)
    }

    /// What lies beside under `name` is what was looked at, and nobody writes to it any more.
    fn is_still(&self, name: &str, expected: Mark) -> io::Result<bool> {
        let old = self.beside.look_at(OsStr::new(name))?.ok_or(io::ErrorKind::NotFound)?;
        if old.is_folder() {
            return Ok(Mark::of(&old) == expected && self.beside.below(name.as_bytes())?.is_empty()?);
        }
        // First who could write, then whether somebody did: in the other order, one could in between.
        Ok(!(old.is_file() && self.is_written_to(name)?)
            && self.beside.look_at(OsStr::new(name))?.is_some_and(|old| Mark::of(&old) == expected))
    }

    fn is_written_to(&self, name: &str) -> io::Result<bool> {
        match self.beside.open_file(name.as_bytes()) {
            Ok(file) => sys::leases::has_writers(file.as_fd()),
            // Somebody else's, which we may not read.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Somebody was faster: what they left goes back to its name, where `ours` lies. They may be at it still: whatever
    /// comes out of there and is not what we put in is newer, and goes back in its turn.
    fn give_back(&self, parent: &Folder, name: &OsStr, draft: &str, ours: u64) -> io::Result<()> {
        const PATIENCE: usize = 1000;
        let mut put_in = ours;
        let inode =
            || -> io::Result<u64> { Ok(self.beside.look_at(OsStr::new(draft))?.ok_or(io::ErrorKind::NotFound)?.inode) };
        for _ in 0..PATIENCE {
            let held = inode()?;
            let rename = |flags| {
                writable(parent, || rustix::fs::renameat_with(self.beside.fd(), draft, parent.fd(), name, flags))
            };
            match rename(RenameFlags::EXCHANGE)? {
                Ok(()) if inode()? == put_in => return Ok(()),
                Ok(()) => put_in = held,
                Err(Errno::NOENT) => match rename(RenameFlags::NOREPLACE)? {
                    Ok(()) => return Ok(()),
                    Err(Errno::EXIST) => {}
                    Err(error) => return Err(error.into()),
                },
                Err(error) => return Err(error.into()),
            }
        }
        Err(io::Error::new(io::ErrorKind::ResourceBusy, "somebody keeps replacing it"))
    }

    fn remove(&self, number: usize, step: &Step) -> io::Result<Went> {
        let old = old_name(number);
        let Some((parent, name)) = self.parent(&step.path)? else { return Ok(Went::Done) };
        if self.beside.look_at(OsStr::new(&old))?.is_none() {
            let away = || rustix::fs::renameat_with(parent.fd(), name, self.beside.fd(), &old, RenameFlags::NOREPLACE);
            match writable(&parent, away)? {
                Ok(()) => {}
                Err(Errno::NOENT) => return Ok(Went::Done),
                Err(error) => return Err(error.into()),
            }
        }
        match step.expected {
            Some(expected) if self.is_still(&old, expected)? => Ok(Went::Done),
            _ => self.return_to(&parent, name, &old).map(|()| Went::Beaten),
        }
    }

    /// Puts back what was taken away. Where something new is by now, both are somebody's, and both stay.
    fn return_to(&self, parent: &Folder, name: &OsStr, old: &str) -> io::Result<()> {
        let rename = |name: &OsStr| {
            let back = || rustix::fs::renameat_with(self.beside.fd(), old, parent.fd(), name, RenameFlags::NOREPLACE);
            writable(parent, back)
        };
        match rename(name)? {
            Err(Errno::EXIST) => {
                let mut other = name.to_owned();
                other.push(format!(".belljar-kept-{old}"));
                Ok(rename(&other)??)
            }
            done => Ok(done?),
        }
    }

    pub(super) fn undo(&self, number: usize, step: &Step) -> io::Result<()> {
        let Some((parent, name)) = self.parent(&step.path)? else { return Ok(()) };
        match step.does {
            Does::Put { inode } => {
                let draft = new_name(number);
                let here = parent.look_at(name)?.is_some_and(|seen| seen.inode == inode);
                if !here {
                    return Ok(());
                }
                if step.expected.is_some() {
                    return self.give_back(&parent, name, &draft, inode);
                }
                let away =
                    || rustix::fs::renameat_with(parent.fd(), name, self.beside.fd(), &draft, RenameFlags::NOREPLACE);
                match writable(&parent, away)? {
                    Ok(()) => {}
                    Err(Errno::NOENT) => return Ok(()),
                    Err(error) => return Err(error.into()),
                }
                let is_ours = self.beside.look_at(OsStr::new(&draft))?.is_some_and(|seen| seen.inode == inode);
                if is_ours { Ok(()) } else { self.return_to(&parent, name, &draft) }
            }
            Does::Remove => {
                let old = old_name(number);
                match self.beside.look_at(OsStr::new(&old))? {
                    Some(_) => self.return_to(&parent, name, &old),
                    None => Ok(()),
                }
            }
            Does::RemoveFolder { mode } => {
                match writable(&parent, || rustix::fs::mkdirat(parent.fd(), name, Mode::from_raw_mode(mode)))? {
                    Ok(()) => self.set_mode(&step.path, mode),
                    Err(Errno::EXIST) => Ok(()),
                    Err(error) => Err(error.into()),
                }
            }
            Does::SetMode { before, .. } => self.set_mode(&step.path, before),
        }
    }

    fn set_mode(&self, path: &[u8], mode: u32) -> io::Result<()> {
        // By a descriptor that needs no right to read: it may be closed already.
        let Some((parent, name)) = self.parent(path)? else { return Ok(()) };
        match parent.look_at(name)? {
            Some(seen) if seen.is_folder() => parent.set_mode(name, mode),
            _ => Ok(()),
        }
    }

    fn parent<'a>(&self, path: &'a [u8]) -> io::Result<Option<(Folder, &'a OsStr)>> {
        match self.root.parent_of(path) {
            Ok(found) => Ok(Some(found)),
            Err(error) if crate::files::is_absent(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Folders that somebody has removed meanwhile, and that something new belongs into.
    fn make_way(&self, path: &[u8]) -> io::Result<()> {
        let missing: Vec<&[u8]> = ancestors(path).collect();
        for folder in missing.into_iter().rev() {
            let (parent, name) = self.root.parent_of(folder)?;
            match rustix::fs::mkdirat(parent.fd(), name, Mode::from_raw_mode(0o755)) {
                // Theirs whose the folder around it is, also where root does it.
                Ok(()) if rustix::process::geteuid().is_root() => {
                    set_owner(self.root.below(folder)?.fd(), parent.seen()?.owner, true)?;
                }
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

/// Does something in a folder of ours that is closed to writing, as its owner could, and leaves it closed.
fn writable<T>(folder: &Folder, act: impl Fn() -> rustix::io::Result<T>) -> io::Result<rustix::io::Result<T>> {
    match act() {
        Err(Errno::ACCESS) => {
            let seen = folder.seen()?;
            const WRITE: u32 = 0o300;
            if seen.owner.0 != rustix::process::geteuid().as_raw() || seen.mode & WRITE == WRITE {
                return Ok(Err(Errno::ACCESS));
            }
            folder.set_own_mode(seen.mode | WRITE)?;
            let acted = act();
            folder.set_own_mode(seen.mode)?;
            Ok(acted)
        }
        acted => Ok(acted),
    }
}

fn set_owner(file: std::os::fd::BorrowedFd<'_>, (user, group): (u32, u32), may_give_away: bool) -> io::Result<()> {
    match rustix::fs::fchown(file, may_give_away.then(|| Uid::from_raw(user)), Some(Gid::from_raw(group))) {
        // A group that one is not in: then one's own.
        Err(Errno::PERM) if !may_give_away => Ok(()),
        done => Ok(done?),
    }
}

fn set_time(file: std::os::fd::BorrowedFd<'_>, modified: i64) -> io::Result<()> {
    let time = Timespec { tv_sec: modified.div_euclid(1_000_000_000), tv_nsec: modified.rem_euclid(1_000_000_000) };
    Ok(rustix::fs::futimens(file, &Timestamps { last_access: time, last_modification: time })?)
}
