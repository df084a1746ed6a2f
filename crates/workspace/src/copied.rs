//! Where the kernel or the filesystem can't lay changes over files: a copy of all of it, with a list of what was copied.
//! It costs time and space once; everything else works the same.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::path::Path;

use model::{Place, Watch};
use rustix::fs::{AtFlags, Gid, Mode, OFlags, Timespec, Timestamps, Uid};
use serde::{Deserialize, Serialize};

use crate::base::{self, Base, Bases, Kind};
use crate::changes::shown;
use crate::error::{Error, Result, cannot};
use crate::files::{Folder, LONGEST_PATH, Seen, ancestors, join};
use crate::layer::{Entry, Node, View, within};
use crate::record::Record;
use crate::session::open_place;
use crate::store::Store;

/// What was copied, and what tells a copy that nobody has touched.
type Manifest = BTreeMap<Vec<u8>, Copied>;

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Copied {
    kind: u8,
    mode: u32,
    size: u64,
    modified: i64,
    changed: i64,
    inode: u64,
    /// Number and time of the copy, if it is still what was copied.
    copy: Option<(u64, i64)>,
}

impl Copied {
    fn base(&self) -> Base {
        let kind = match self.kind {
            0 => Kind::File,
            1 => Kind::Folder,
            2 => Kind::Link,
            _ => Kind::Special,
        };
        let Copied { mode, size, modified, changed, inode, .. } = *self;
        Base { known: true, kind, mode, size, modified, changed, inode, hash: None }
    }
}

/// Copies the workspace, or the layer below where there is one, into `part`.
pub fn make(store: &Store, record: &Record, number: usize, part: &Path, watch: &dyn Watch) -> Result<()> {
    let workspace = &record.workspaces[number];
    let private = Mode::from_raw_mode(0o700);
    rustix::fs::mkdir(part, private).map_err(cannot("make", part))?;
    let tree = part.join("tree");
    rustix::fs::mkdir(&tree, private).map_err(cannot("make", &tree))?;
    let to = Folder::open(&tree).map_err(cannot("open", &tree))?;
    let earlier = record.layers.iter().rev().nth(1).map(|layer| store.layer(layer).join(number.to_string()));
    let (from, known) = match &earlier {
        None => (open_place(record, workspace)?, None),
        Some(earlier) => {
            let path = earlier.join("tree");
            (Folder::open_layer(&path).map_err(cannot("open", &path))?, Some(read_manifest(earlier)?))
        }
    };
    let shown_from = earlier.map_or_else(|| workspace.path(), |earlier| earlier.join("tree"));
    let mut manifest = copy(&from, &to, &shown_from, known.as_ref(), watch)?;
    // What is gone from the layer below is gone from this one, and was there once.
    for (path, copied) in known.into_iter().flatten() {
        manifest.entry(path).or_insert(Copied { copy: None, ..copied });
    }
    let mode = from.seen().map_err(cannot("look at", &shown_from))?;
    let finish = || -> io::Result<()> {
        own(to.fd(), workspace.owner)?;
        rustix::fs::fchmod(to.fd(), Mode::from_raw_mode(mode.mode & 0o777))?;
        let text = serde_json::to_vec(&manifest.into_iter().collect::<Vec<_>>())?;
        std::fs::write(part.join("manifest"), text)
    };
    finish().map_err(cannot("write", part))
}

fn read_manifest(part: &Path) -> Result<Manifest> {
    let path = part.join("manifest");
    let text = std::fs::read(&path).map_err(cannot("read", &path))?;
    let list: Vec<(Vec<u8>, Copied)> =
        serde_json::from_slice(&text).map_err(|error| Error::State { path: path.clone(), why: error.to_string() })?;
    Ok(list.into_iter().collect())
}

fn copy(
    from: &Folder,
    to: &Folder,
    shown_from: &Path,
    known: Option<&Manifest>,
    watch: &dyn Watch,
) -> Result<Manifest> {
    let paths = list(from, shown_from)?;
    let total = paths.len() as u64;
    let mut manifest = Manifest::new();
    for (number, (path, seen)) in paths.iter().enumerate() {
        watch.progress("copying", number as u64, total);
        let written = copy_one(from, to, path, seen).map_err(cannot("copy", shown_from.join(shown(path))))?;
        let Some(written) = written else { continue };
        let copy = Some((written.inode, written.changed));
        let entry = match known {
            None => Some(Copied {
                kind: match Kind::of(seen) {
                    Kind::File => 0,
                    Kind::Folder => 1,
                    Kind::Link => 2,
                    Kind::Special => 3,
                },
                mode: seen.mode,
                size: seen.size,
                modified: seen.modified,
                changed: seen.changed,
                inode: seen.inode,
                copy,
            }),
            Some(known) => known
                .get(path)
                .map(|known| Copied { copy: if is_copy(known, seen) { copy } else { None }, ..known.clone() }),
        };
        manifest.extend(entry.map(|entry| (path.clone(), entry)));
    }
    // Only now: what is put into a folder changes its time.
    for (path, seen) in paths.iter().rev().filter(|(_, seen)| seen.is_folder()) {
        let finish = || -> io::Result<Seen> {
            let folder = to.below(path)?;
            own(folder.fd(), seen.owner)?;
            rustix::fs::fchmod(folder.fd(), Mode::from_raw_mode(seen.mode & 0o777))?;
            rustix::fs::futimens(folder.fd(), &times(seen.modified))?;
            folder.seen()
        };
        let finished = finish().map_err(cannot("copy", shown_from.join(shown(path))))?;
        if let Some(entry) = manifest.get_mut(path).filter(|entry| entry.copy.is_some()) {
            entry.copy = Some((finished.inode, finished.changed));
        }
    }
    Ok(manifest)
}

/// Everything in a tree, folders before what is in them.
fn list(from: &Folder, shown_from: &Path) -> Result<Vec<(Vec<u8>, Seen)>> {
    let mut found = Vec::new();
    let mut waiting = vec![Vec::new()];
    while let Some(path) = waiting.pop() {
        let look = || cannot("look into", shown_from.join(shown(&path)));
        let folder = match from.below(&path) {
            Ok(folder) => folder,
            // Mounted there, and no part of it; or nothing for us to read.
            Err(error) if matches!(error.kind(), io::ErrorKind::CrossesDevices | io::ErrorKind::PermissionDenied) => {
                continue;
            }
            Err(error) => return Err(look()(error)),
        };
        for name in folder.names().map_err(look())? {
            let Some(seen) = folder.look_at(OsStr::new(shown(&name))).map_err(look())? else { continue };
            let path = join(&path, &name);
            if seen.is_folder() && path.len() <= LONGEST_PATH {
                waiting.push(path.clone());
            }
            found.push((path, seen));
        }
    }
    found.sort_by(|left, right| left.0.cmp(&right.0));
    Ok(found)
}

/// Nothing for what is no file, folder or link, or can't be read.
fn copy_one(from: &Folder, to: &Folder, path: &[u8], seen: &Seen) -> io::Result<Option<Seen>> {
    let (parent, name) = to.parent_of(path)?;
    match Kind::of(seen) {
        Kind::Special => return Ok(None),
        Kind::Folder => rustix::fs::mkdirat(parent.fd(), name, Mode::from_raw_mode(0o700))?,
        Kind::Link => {
            let target = from.link(path)?;
            rustix::fs::symlinkat(OsStr::new(shown(&target)), parent.fd(), name)?;
            if rustix::process::geteuid().is_root() {
                let (user, group) = (Uid::from_raw(seen.owner.0), Gid::from_raw(seen.owner.1));
                rustix::fs::chownat(parent.fd(), name, Some(user), Some(group), AtFlags::SYMLINK_NOFOLLOW)?;
            }
        }
        Kind::File => {
            let source = match from.open_file(path) {
                Ok(source) => source,
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Ok(None),
                Err(error) => return Err(error),
            };
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let file = rustix::fs::openat(parent.fd(), name, flags, Mode::from_raw_mode(0o600))?;
            let mut file = std::fs::File::from(file);
            // Shares the blocks where the filesystem can.
            if rustix::fs::ioctl_ficlone(&file, &source).is_err() {
                io::copy(&mut std::fs::File::from(source), &mut file)?;
            }
            own(std::os::fd::AsFd::as_fd(&file), seen.owner)?;
            rustix::fs::fchmod(&file, Mode::from_raw_mode(seen.mode & 0o777))?;
            rustix::fs::futimens(&file, &times(seen.modified))?;
        }
    }
    to.look(path)
}

fn own(file: std::os::fd::BorrowedFd<'_>, (user, group): (u32, u32)) -> io::Result<()> {
    match rustix::process::geteuid().is_root() {
        true => Ok(rustix::fs::fchown(file, Some(Uid::from_raw(user)), Some(Gid::from_raw(group)))?),
        false => Ok(()),
    }
}

fn times(modified: i64) -> Timestamps {
    let time = Timespec { tv_sec: modified.div_euclid(1_000_000_000), tv_nsec: modified.rem_euclid(1_000_000_000) };
    Timestamps { last_access: time, last_modification: time }
}

/// Nobody has touched the copy. The kernel alone sets its time of change.
fn is_copy(copied: &Copied, seen: &Seen) -> bool {
    match copied.kind {
        // What is in it changes its time, and is looked at by itself.
        1 => seen.is_folder() && seen.mode & 0o777 == copied.mode & 0o777,
        _ => copied.copy == Some((seen.inode, seen.changed)),
    }
}

/// What the sandbox sees, where it differs from what was copied.
pub fn view(store: &Store, record: &Record, number: usize, layers: &[(&Path, &Folder)]) -> Result<View> {
    let part = store.layer(record.top()).join(number.to_string());
    let manifest = read_manifest(&part)?;
    let mut view = View::new();
    let Some((path, tree)) = layers.last() else { return Ok(view) };
    let there: BTreeMap<Vec<u8>, Seen> = list(tree, path)?.into_iter().collect();
    for (path, seen) in &there {
        let known = manifest.get(path);
        if known.is_some_and(|known| is_copy(known, seen)) {
            continue;
        }
        let node = match (seen.is_folder(), known.is_some_and(|known| known.kind != 1)) {
            (true, replaced) => Node::Folder { opaque: replaced },
            (false, _) => Node::Thing,
        };
        view.insert(path.clone(), Entry { node, seen: *seen, layer: 0 });
    }
    let root = tree.seen().map_err(cannot("look at", path))?;
    for path in manifest.keys().filter(|path| !there.contains_key(*path)) {
        let in_something_gone = ancestors(path)
            .any(|folder| !there.get(folder).is_some_and(Seen::is_folder) && manifest.contains_key(folder));
        if !in_something_gone {
            view.insert(path.clone(), Entry { node: Node::Removed, seen: root, layer: 0 });
        }
    }
    Ok(view)
}

/// What was copied is what the sandbox saw.
pub fn bases(store: &Store, record: &Record, number: usize, view: &View, known: &Bases) -> Result<Bases> {
    let part = store.layer(record.top()).join(number.to_string());
    let manifest = read_manifest(&part)?;
    let workspace = &record.workspaces[number];
    let host = open_place(record, workspace)?;
    let mut found = Bases::new();
    for (path, entry) in view {
        let all = !matches!(entry.node, Node::Folder { opaque: false });
        for (path, copied) in within(&manifest, path).take(if all { usize::MAX } else { 1 }) {
            if known.contains_key(path) || found.contains_key(path) {
                continue;
            }
            let mut base = copied.base();
            let still = host.look(path).ok().flatten().is_some_and(|seen| base.is_still(&seen));
            if still && base.kind == Kind::File && view.get(path).is_some_and(|entry| entry.node == Node::Thing) {
                let kept = store.blobs().keep_file(&host, path, base::LARGEST_KEPT, u64::MAX);
                base.hash = kept.map_err(cannot("read", workspace.path().join(shown(path))))?;
            }
            found.insert(path.clone(), base);
        }
    }
    Ok(found)
}

/// Why layers can't be laid over files here, as far as can be told without trying.
pub fn needed(store: &Store, places: &[&Place]) -> Option<String> {
    // An ordinary user's namespace knows one user and one group; files of others can't be changed in it.
    let own = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    if let Some(place) = places.iter().find(|place| own.0 != 0 && place.owner != own) {
        let (user, group) = place.owner;
        let path = place.path.display();
        return Some(format!(
            "`{path}` belongs to user {user} and group {group}, and not to yours ({} and {})",
            own.0, own.1
        ));
    }
    // Filesystems on which the kernel lays no changes over files.
    const UNFIT: &[(i64, &str)] = &[
        (0x794c_7630, "an overlay itself"),
        (0x6969, "NFS"),
        (0x6573_5546, "FUSE"),
        (0x0102_1997, "9p"),
        (0xff53_4d42, "SMB"),
        (0xfe53_4d42, "SMB"),
        (0x517b, "SMB"),
        (0x4d44, "FAT"),
        (0x2011_bab0, "exFAT"),
    ];
    // Or where it would be made.
    let filesystem = store.folder().ancestors().find_map(|folder| rustix::fs::statfs(folder).ok())?;
    #[allow(clippy::unnecessary_cast)]
    let kind = filesystem.f_type as i64 & 0xffff_ffff;
    let (_, name) = UNFIT.iter().find(|(unfit, _)| *unfit == kind)?;
    Some(format!("`{}` is on {name}, which the kernel can't keep layers on", store.folder().display()))
}
