//! Does one operation and ends: the process has nothing but its three streams, and the sandbox's own walls around it.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use super::walk::{self, End, Failed, Result, about, failed, join};
use super::{Deed, Frame, Kind, LARGEST_FRAME, Operation, Why, archive, search, watching};

/// How deep folders are in each other, at most: each that is open takes a descriptor.
pub const DEEPEST: usize = 100;
/// What is read at once.
pub const PIECE: usize = 64 << 10;

/// What a deed comes to, besides what it told on the way.
#[derive(Default)]
pub struct Sum {
    pub count: u64,
    pub bytes: u64,
    pub skipped: u64,
    pub cut: bool,
    pub digest: Option<[u8; 32]>,
}

/// Tells how it went on standard output; the number is for whoever waits for the process.
pub fn carry_out(operation: &Operation) -> i32 {
    let last = match done(operation) {
        Ok(Sum { count, bytes, skipped, cut, digest }) => Frame::Done { count, bytes, skipped, cut, digest },
        Err(Failed { why, errno, about }) => Frame::Failed { why, errno: errno.clamp(0, 4095), about },
    };
    i32::from(say(&last).is_err())
}

fn done(operation: &Operation) -> Result<Sum> {
    let path = operation.path.as_slice();
    rustix::process::chdir(operation.directory.as_slice()).map_err(about(&operation.directory))?;
    match operation.deed {
        Deed::Read => read(operation),
        Deed::Write => write(operation),
        Deed::List => list(operation),
        Deed::Stat => {
            let entry = match walk::to(path, operation.boldly)? {
                End::Name(folder, name) => walk::entry(folder.as_fd(), &name, path)?,
                End::Folder(folder) => walk::entry_of(&rustix::fs::fstat(&folder).map_err(about(path))?, path),
            };
            say(&Frame::Entry(entry))?;
            Ok(Sum { count: 1, ..Sum::default() })
        }
        Deed::MakeFolder => make_folder(operation),
        Deed::Move => rename(operation),
        Deed::Remove => remove(operation),
        Deed::Search => search::search(operation),
        Deed::Pack => archive::pack(operation),
        Deed::Unpack => archive::unpack(operation),
        Deed::Watch => watching::watch(operation),
    }
}

/// Whoever does not listen any more is nobody to do it for.
pub fn say(frame: &Frame) -> Result<()> {
    write_all(rustix::stdio::stdout(), &frame.encode()).map_err(about(b""))
}

pub fn write_all(to: BorrowedFd<'_>, mut bytes: &[u8]) -> rustix::io::Result<()> {
    while !bytes.is_empty() {
        match rustix::io::write(to, bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

pub fn read_some(from: BorrowedFd<'_>, piece: &mut [u8]) -> rustix::io::Result<usize> {
    loop {
        match rustix::io::read(from, &mut *piece) {
            Err(Errno::INTR) => {}
            read => return read,
        }
    }
}

fn named(path: &[u8], follow: bool) -> Result<(OwnedFd, CString)> {
    match walk::to(path, follow)? {
        End::Name(folder, name) => Ok((folder, name)),
        End::Folder(_) => Err(failed(Why::WrongKind, path)),
    }
}

fn read(operation: &Operation) -> Result<Sum> {
    let path = operation.path.as_slice();
    let (folder, name) = named(path, true)?;
    let (file, stat) = walk::file(folder.as_fd(), &name, path)?;
    let entry = walk::entry_of(&stat, path);
    let whole = operation.from == 0 && operation.length.is_none();
    if whole && entry.size > operation.most_bytes {
        return Err(failed(Why::TooLarge, path));
    }
    say(&Frame::Entry(entry))?;
    let mut hasher = blake3::Hasher::new();
    let most = operation.length.unwrap_or(u64::MAX);
    let mut sum = Sum::default();
    let mut piece = vec![0; PIECE];
    while sum.bytes < most {
        let wanted = usize::try_from(most - sum.bytes).unwrap_or(PIECE).min(PIECE);
        let at = operation.from.checked_add(sum.bytes).ok_or_else(|| failed(Why::TooLarge, path))?;
        let read = match rustix::io::pread(&file, &mut piece[..wanted], at) {
            Ok(0) => break,
            Ok(read) => &piece[..read],
            Err(Errno::INTR) => continue,
            Err(errno) => return Err(about(path)(errno)),
        };
        sum.bytes += read.len() as u64;
        if sum.bytes > operation.most_bytes {
            return Err(failed(Why::TooLarge, path));
        }
        hasher.update(read);
        say(&Frame::Content(read.to_vec()))?;
    }
    sum.digest = whole.then(|| *hasher.finalize().as_bytes());
    Ok(sum)
}

/// Of what stands at a name now; nothing if nothing does.
fn digest_at(folder: BorrowedFd<'_>, name: &CStr, path: &[u8]) -> Result<Option<[u8; 32]>> {
    let (file, _) = match walk::file(folder, name, path) {
        Err(Failed { errno, .. }) if errno == Errno::NOENT.raw_os_error() => return Ok(None),
        file => file?,
    };
    let mut hasher = blake3::Hasher::new();
    let mut piece = vec![0; PIECE];
    loop {
        match read_some(file.as_fd(), &mut piece).map_err(about(path))? {
            0 => return Ok(Some(*hasher.finalize().as_bytes())),
            read => hasher.update(&piece[..read]),
        };
    }
}

/// Beside what is there, and then in its place: whoever reads it meanwhile has all of the old or all of the new. A link is
/// replaced, never written through.
fn write(operation: &Operation) -> Result<Sum> {
    let path = operation.path.as_slice();
    if operation.boldly {
        let around = path.iter().rposition(|byte| *byte == b'/').map(|at| &path[..at]);
        make_all(around.unwrap_or_default())?;
    }
    let (folder, name) = named(path, false)?;
    walk::not_the_kernels(&folder, path)?;
    let before = rustix::fs::statat(&folder, &*name, AtFlags::SYMLINK_NOFOLLOW);
    if let Ok(stat) = &before
        && !matches!(FileType::from_raw_mode(stat.st_mode), FileType::RegularFile | FileType::Symlink)
    {
        return Err(failed(Why::WrongKind, path));
    }
    if operation.only_new && before.is_ok() {
        return Err(about(path)(Errno::EXIST));
    }
    let (beside, new) = new_beside(folder.as_fd(), path)?;
    let written = fill(&new, operation).and_then(|sum| {
        let mode = operation.mode.or(before.ok().map(|stat| stat.st_mode & 0o777));
        if let Some(mode) = mode {
            rustix::fs::fchmod(&new, Mode::from_raw_mode(mode & 0o777)).map_err(about(path))?;
        }
        if operation.digest.is_some() && digest_at(folder.as_fd(), &name, path)? != operation.digest {
            return Err(failed(Why::Differs, path));
        }
        let how = if operation.only_new { RenameFlags::NOREPLACE } else { RenameFlags::empty() };
        rustix::fs::renameat_with(&folder, &*beside, &folder, &*name, how).map_err(about(path))?;
        Ok(sum)
    });
    if written.is_err() {
        // Why it failed is what whoever asked must hear.
        match rustix::fs::unlinkat(&folder, &*beside, AtFlags::empty()) {
            Ok(()) | Err(_) => {}
        }
    }
    written
}

/// A new file that has no name that anybody chose.
fn new_beside(folder: BorrowedFd<'_>, path: &[u8]) -> Result<(CString, OwnedFd)> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    for _ in 0..8 {
        let mut random = [0; 8];
        rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty()).map_err(about(path))?;
        let name = CString::new(format!(".belljar-{:016x}", u64::from_le_bytes(random)));
        let name = name.map_err(|_| failed(Why::BadPath, path))?;
        match rustix::fs::openat(folder, &*name, flags, Mode::from_raw_mode(0o666)) {
            Err(Errno::EXIST) => {}
            file => return Ok((name, file.map_err(about(path))?)),
        }
    }
    Err(about(path)(Errno::EXIST))
}

fn fill(new: &OwnedFd, operation: &Operation) -> Result<Sum> {
    let path = operation.path.as_slice();
    let mut hasher = blake3::Hasher::new();
    let mut sum = Sum { count: 1, ..Sum::default() };
    let mut piece = vec![0; PIECE];
    loop {
        let read = match read_some(rustix::stdio::stdin(), &mut piece).map_err(about(path))? {
            0 => break,
            read => &piece[..read],
        };
        sum.bytes += read.len() as u64;
        if sum.bytes > operation.most_bytes {
            return Err(failed(Why::TooLarge, path));
        }
        hasher.update(read);
        write_all(new.as_fd(), read).map_err(about(path))?;
    }
    // Cut off on the way is not all of it: whoever sends says how much it is.
    if operation.length.is_some_and(|length| length != sum.bytes) {
        return Err(about(path)(Errno::IO));
    }
    sum.digest = Some(*hasher.finalize().as_bytes());
    Ok(sum)
}

/// Names of a folder, but for the two that every one has.
pub fn names(folder: &OwnedFd, path: &[u8]) -> Result<impl Iterator<Item = Result<CString>>> {
    let path = path.to_vec();
    let listed = Dir::read_from(folder).map_err(about(&path))?;
    Ok(listed.filter_map(move |entry| match entry {
        Ok(entry) if [c".", c".."].contains(&entry.file_name()) => None,
        Ok(entry) => Some(Ok(entry.file_name().to_owned())),
        Err(errno) => Some(Err(about(&path)(errno))),
    }))
}

/// A folder below another, if it is one and no link to one.
pub fn below(folder: &OwnedFd, name: &CStr) -> Option<OwnedFd> {
    let opened = rustix::fs::openat(folder, name, walk::FOLDER, Mode::empty()).ok()?;
    // The kernel's own are listed by name and not gone into.
    walk::not_the_kernels(&opened, b"").ok().map(|()| opened)
}

fn list(operation: &Operation) -> Result<Sum> {
    let path = operation.path.as_slice();
    let depth = usize::try_from(operation.depth).unwrap_or(DEEPEST).clamp(1, DEEPEST);
    let mut sum = Sum::default();
    list_in(&walk::folder(path)?, b"", depth, operation.most, &mut sum)?;
    Ok(sum)
}

fn list_in(folder: &OwnedFd, path: &[u8], depth: usize, most: u64, sum: &mut Sum) -> Result<()> {
    for name in names(folder, path)? {
        let name = name?;
        let path = join(path, name.to_bytes());
        // It may be gone by now.
        let Ok(entry) = walk::entry(folder.as_fd(), &name, &path) else { continue };
        if sum.count >= most || path.len() > super::LONGEST_PATH {
            sum.cut = true;
            return Ok(());
        }
        sum.count += 1;
        let deeper = entry.kind == Kind::Folder && depth > 1;
        say(&Frame::Entry(entry))?;
        if deeper && let Some(folder) = below(folder, &name) {
            list_in(&folder, &path, depth - 1, most, sum)?;
            if sum.cut {
                return Ok(());
            }
        }
    }
    Ok(())
}

fn make_folder(operation: &Operation) -> Result<Sum> {
    let path = operation.path.as_slice();
    if operation.boldly {
        make_all(path)?;
    } else {
        let trimmed = path.strip_suffix(b"/").unwrap_or(path);
        let (folder, name) = named(trimmed, false)?;
        rustix::fs::mkdirat(&folder, &*name, Mode::from_raw_mode(0o777)).map_err(about(path))?;
    }
    Ok(Sum { count: 1, ..Sum::default() })
}

/// The folder, and those that lead to it.
fn make_all(path: &[u8]) -> Result<()> {
    if path.is_empty() || walk::folder(path).is_ok() {
        return Ok(());
    }
    let ends = (1..=path.len()).filter(|end| path.get(*end).is_none_or(|byte| *byte == b'/'));
    if ends.clone().count() > DEEPEST {
        return Err(failed(Why::TooDeep, path));
    }
    for end in ends {
        let (folder, name) = match walk::to(&path[..end], true)? {
            End::Name(folder, name) => (folder, name),
            End::Folder(_) => continue,
        };
        match rustix::fs::mkdirat(&folder, &*name, Mode::from_raw_mode(0o777)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(about(&path[..end])(errno)),
        }
    }
    walk::folder(path).map(drop)
}

fn rename(operation: &Operation) -> Result<Sum> {
    let (path, other) = (operation.path.as_slice(), operation.other.as_slice());
    let ((from, old), (to, new)) = (named(path, false)?, named(other, false)?);
    // Of the two, the first is what is missing when something is.
    rustix::fs::statat(&from, &*old, AtFlags::SYMLINK_NOFOLLOW).map_err(about(path))?;
    let how = if operation.boldly { RenameFlags::empty() } else { RenameFlags::NOREPLACE };
    rustix::fs::renameat_with(&from, &*old, &to, &*new, how).map_err(about(other))?;
    Ok(Sum { count: 1, ..Sum::default() })
}

fn remove(operation: &Operation) -> Result<Sum> {
    let path = operation.path.as_slice();
    let (folder, name) = named(path.strip_suffix(b"/").unwrap_or(path), false)?;
    walk::not_the_kernels(&folder, path)?;
    let mut sum = Sum::default();
    let stat = rustix::fs::statat(&folder, &*name, AtFlags::SYMLINK_NOFOLLOW).map_err(about(path))?;
    let is_folder = FileType::from_raw_mode(stat.st_mode).is_dir();
    if is_folder && operation.boldly {
        remove_in(&folder, &name, path, DEEPEST, operation.most, &mut sum)?;
    } else {
        let how = if is_folder { AtFlags::REMOVEDIR } else { AtFlags::empty() };
        rustix::fs::unlinkat(&folder, &*name, how).map_err(about(path))?;
        sum.count = 1;
    }
    Ok(sum)
}

fn remove_in(at: &OwnedFd, name: &CStr, path: &[u8], depth: usize, most: u64, sum: &mut Sum) -> Result<()> {
    if depth == 0 {
        return Err(failed(Why::TooDeep, path));
    }
    let folder = rustix::fs::openat(at, name, walk::FOLDER, Mode::empty()).map_err(about(path))?;
    walk::not_the_kernels(&folder, path)?;
    for inner in names(&folder, path)? {
        let inner = inner?;
        let path = join(path, inner.to_bytes());
        if sum.count >= most {
            return Err(failed(Why::TooMany, &path));
        }
        match rustix::fs::unlinkat(&folder, &*inner, AtFlags::empty()) {
            Ok(()) => sum.count += 1,
            Err(Errno::NOENT) => {}
            Err(Errno::ISDIR | Errno::PERM) => remove_in(&folder, &inner, &path, depth - 1, most, sum)?,
            Err(errno) => return Err(about(&path)(errno)),
        }
    }
    rustix::fs::unlinkat(at, name, AtFlags::REMOVEDIR).map_err(about(path))?;
    sum.count += 1;
    Ok(())
}

const _: () = assert!(PIECE <= LARGEST_FRAME);
