//! What a sandbox changed, path by path: what was there before, and what is there now.

use std::path::{Path, PathBuf};

use model::{Change, ChangeKind, Shown, Thing, ThingKind};

use crate::base::{Base, Bases, Kind};
use crate::blobs::{Blobs, Hash, hash_file};
use crate::error::{Error, Result, cannot};
use crate::files::{Folder, Seen};
use crate::layer::{At, View, at};
use crate::record::Record;
use crate::state::State;
use crate::store::Store;
use crate::{guard, patch, renames, session, text};

/// One sandbox, with all that is needed to say what it changed.
pub struct Side {
    pub record: Record,
    pub parts: Vec<Part>,
}

/// One workspace of it.
pub struct Part {
    /// Which of the sandbox's workspaces it is.
    pub number: usize,
    pub place: PathBuf,
    pub view: View,
    pub bases: Bases,
    pub layers: Vec<Folder>,
    pub host: Folder,
    pub blobs: Blobs,
    pub linked: guard::Linked,
}

/// A part, and the paths in it that somebody means.
pub type Wanted<'a> = (&'a Part, Vec<Vec<u8>>);

/// A path that is not as it was.
pub struct Difference<'a> {
    pub path: &'a [u8],
    pub was: Option<Version<'a>>,
    pub is: Option<Version<'a>>,
}

/// One state of a path, and where it can be read.
#[derive(Clone, Copy)]
pub enum Version<'a> {
    /// As it is in a folder: a layer's, or the host's.
    In(&'a Folder, Seen),
    /// As it was on the host; what it held is kept by its hash, or is there still.
    Before(&'a Part, &'a Base),
}

/// The most of one side that is looked at line by line.
pub const LARGEST_SHOWN: u64 = 64 << 20;

impl Side {
    pub fn of(store: &Store, state: &State, record: &Record) -> Result<Side> {
        let mut parts = Vec::with_capacity(record.workspaces.len());
        for (number, workspace) in record.workspaces.iter().enumerate() {
            let layers = session::open_layers(store, record, number)?;
            let view = session::view_of(store, record, number, &layers)?;
            let host = session::open_place(record, workspace)?;
            parts.push(Part {
                linked: guard::linked(&host, &workspace.path()).map_err(cannot("look at", workspace.path()))?,
                number,
                place: workspace.path(),
                view,
                bases: state.bases(&record.id, number)?,
                layers: layers.into_iter().map(|(_, folder)| folder).collect(),
                host,
                blobs: store.blobs(),
            });
        }
        Ok(Side { record: record.clone(), parts })
    }

    /// The changes at and below these absolute paths, or all.
    pub fn changes(&self, paths: &[PathBuf]) -> Result<Vec<Change>> {
        let mut changes = Vec::new();
        for (part, wanted) in self.wanted(paths)? {
            let differences = part.differences(&wanted)?;
            changes.extend(described(part, differences)?);
        }
        Ok(changes)
    }

    /// Which parts are meant, and which paths in each; no path for all of it.
    pub fn wanted(&self, paths: &[PathBuf]) -> Result<Vec<Wanted<'_>>> {
        if paths.is_empty() {
            return Ok(self.parts.iter().map(|part| (part, Vec::new())).collect());
        }
        let mut wanted: Vec<Wanted<'_>> = Vec::new();
        for path in paths {
            let outside = || Error::Outside { sandbox: self.record.shown(), path: path.clone() };
            // The innermost, where one is in another.
            let around = self.parts.iter().filter(|part| path.starts_with(&part.place));
            let part = around.max_by_key(|part| part.place.as_os_str().len()).ok_or_else(outside)?;
            let below = path.strip_prefix(&part.place).map_err(|_| outside())?;
            let below = std::os::unix::ffi::OsStrExt::as_bytes(below.as_os_str()).to_vec();
            match wanted.iter_mut().find(|(known, _)| known.number == part.number) {
                Some((_, paths)) => paths.push(below),
                None => wanted.push((part, vec![below])),
            }
        }
        Ok(wanted)
    }

    pub fn patch(&self, paths: &[PathBuf]) -> Result<Vec<u8>> {
        let mut out = Vec::new();
        for (part, wanted) in self.wanted(paths)? {
            write_patch(part, &part.differences(&wanted)?, &mut out)?;
        }
        Ok(out)
    }
}

/// Pairs of parts of the same workspace; an error if they are not over the same.
pub fn pairs<'a>(one: &'a Side, other: &'a Side) -> Result<Vec<(&'a Part, &'a Part)>> {
    let same = one.parts.len() == other.parts.len()
        && one.parts.iter().zip(&other.parts).all(|(one, other)| one.place == other.place);
    match same {
        true => Ok(one.parts.iter().zip(&other.parts).collect()),
        false => Err(Error::Unrelated(one.record.shown(), other.record.shown())),
    }
}

impl Part {
    /// All that differs from what it was before.
    pub fn differences(&self, wanted: &[Vec<u8>]) -> Result<Vec<Difference<'_>>> {
        let mut found = Vec::new();
        for path in union(self.view.keys(), self.bases.keys()) {
            if !is_wanted(path, wanted) {
                continue;
            }
            let was = self.bases.get(path).map(|base| Version::Before(self, base));
            let is = match at(&self.view, path) {
                At::Untouched => continue,
                At::Gone => None,
                At::Here(entry) => self.layers.get(entry.layer).map(|layer| Version::In(layer, entry.seen)),
            };
            if differs(path, was, is).map_err(cannot("compare", shown(path)))? {
                found.push(Difference { path, was, is });
            }
        }
        Ok(found)
    }

    /// How `other`, another sandbox over the same files, differs from this one.
    pub fn against<'a>(&'a self, other: &'a Part, wanted: &[Vec<u8>]) -> Result<Vec<Difference<'a>>> {
        let mut found = Vec::new();
        let mine: std::collections::BTreeSet<&Vec<u8>> = self.view.keys().chain(self.bases.keys()).collect();
        let theirs: std::collections::BTreeSet<&Vec<u8>> = other.view.keys().chain(other.bases.keys()).collect();
        for path in mine.union(&theirs).copied().filter(|path| is_wanted(path, wanted)) {
            let compare = || cannot("compare", shown(path));
            let (was, is) = (self.now(path).map_err(compare())?, other.now(path).map_err(compare())?);
            if differs(path, was, is).map_err(compare())? {
                found.push(Difference { path, was, is });
            }
        }
        Ok(found)
    }

    /// What the sandbox sees at a path.
    fn now(&self, path: &[u8]) -> std::io::Result<Option<Version<'_>>> {
        Ok(match at(&self.view, path) {
            At::Gone => None,
            At::Here(entry) => self.layers.get(entry.layer).map(|layer| Version::In(layer, entry.seen)),
            At::Untouched => self.host.look(path)?.map(|seen| Version::In(&self.host, seen)),
        })
    }
}

impl Version<'_> {
    pub fn kind(&self) -> Kind {
        match self {
            Version::In(_, seen) => Kind::of(seen),
            Version::Before(_, base) => base.kind,
        }
    }

    /// What may be done with it; rights that never leave a sandbox do not count.
    pub fn mode(&self) -> u32 {
        0o777
            & match self {
                Version::In(_, seen) => seen.mode,
                Version::Before(_, base) => base.mode,
            }
    }

    pub fn size(&self) -> u64 {
        match self {
            Version::In(_, seen) => seen.size,
            Version::Before(_, base) => base.size,
        }
    }

    /// What is in the file, or where the link leads to; nothing if nobody knows, or it is more than `most` bytes.
    pub fn contents(&self, path: &[u8], most: u64) -> std::io::Result<Option<Vec<u8>>> {
        match self {
            Version::In(folder, seen) if seen.is_link() => folder.link(path).map(Some),
            Version::In(folder, _) => readable(folder.read(path, most)),
            Version::Before(part, base) => {
                if let Some(kept) = base.hash.and_then(|hash| part.blobs.read(hash)) {
                    return Ok(Some(kept));
                }
                // What nobody knows is shown as it is now.
                match readable(part.host.look(path))? {
                    Some(seen) if base.is_still(&seen) || !base.known => {
                        Version::In(&part.host, seen).contents(path, most)
                    }
                    _ => Ok(None),
                }
            }
        }
    }

    fn hash(&self, path: &[u8]) -> std::io::Result<Option<Hash>> {
        match self {
            Version::Before(_, Base { hash: Some(hash), .. }) => Ok(Some(*hash)),
            Version::Before(part, base) => match readable(part.host.look(path))? {
                Some(seen) if base.is_still(&seen) => Version::In(&part.host, seen).hash(path),
                _ => Ok(None),
            },
            Version::In(folder, seen) if seen.is_link() => Ok(Some(Hash::of(&folder.link(path)?))),
            Version::In(folder, _) => readable(hash_file(folder, path, u64::MAX)),
        }
    }

    pub fn thing(&self, path: &[u8]) -> Thing {
        let kind = match self.kind() {
            Kind::File => ThingKind::File,
            Kind::Folder => ThingKind::Folder,
            Kind::Link => ThingKind::Link,
            Kind::Special => ThingKind::Special,
        };
        let target = if kind == ThingKind::Link { self.contents(path, LARGEST_SHOWN).ok().flatten() } else { None };
        Thing { kind, mode: self.mode(), size: self.size(), target: target.map(|target| Shown::of(&target)) }
    }
}

/// What somebody has closed to us nobody can tell.
pub fn readable<T>(read: std::io::Result<Option<T>>) -> std::io::Result<Option<T>> {
    match read {
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => Ok(None),
        read => read,
    }
}

pub fn hash_of(path: &[u8], version: Version<'_>) -> std::io::Result<Option<Hash>> {
    version.hash(path)
}

/// Both are there and hold the same, whatever may be done with them.
pub fn same_contents(path: &[u8], one: Version<'_>, other: Version<'_>) -> std::io::Result<bool> {
    same_contents_at((path, one), (path, other))
}

/// The same, of two paths.
pub fn same_contents_at(
    (path, one): (&[u8], Version<'_>),
    (other_path, other): (&[u8], Version<'_>),
) -> std::io::Result<bool> {
    match (one.kind(), other.kind()) {
        (Kind::Folder, Kind::Folder) | (Kind::Special, Kind::Special) => Ok(true),
        (Kind::File, Kind::File) | (Kind::Link, Kind::Link) => {
            if one.size() != other.size() {
                return Ok(false);
            }
            let hash = one.hash(path)?;
            Ok(hash.is_some() && hash == other.hash(other_path)?)
        }
        _ => Ok(false),
    }
}

fn differs(path: &[u8], was: Option<Version<'_>>, is: Option<Version<'_>>) -> std::io::Result<bool> {
    match (was, is) {
        (None, None) => Ok(false),
        (Some(was), Some(is)) => {
            let modes = was.kind() != Kind::Link && was.mode() != is.mode();
            Ok(modes || !same_contents(path, was, is)?)
        }
        _ => Ok(true),
    }
}

/// In words that people and programs read.
pub fn described(part: &Part, differences: Vec<Difference<'_>>) -> Result<Vec<Change>> {
    let renamed = renames::pairs(&differences).map_err(cannot("compare", &part.place))?;
    let mut changes = Vec::with_capacity(differences.len());
    for (number, difference) in differences.iter().enumerate() {
        if renamed.iter().any(|(from, _)| *from == number) {
            continue;
        }
        let from = renamed.iter().find(|(_, to)| *to == number).and_then(|(from, _)| differences.get(*from));
        changes.push(describe(part, difference, from)?);
    }
    Ok(changes)
}

fn describe(part: &Part, difference: &Difference<'_>, from: Option<&Difference<'_>>) -> Result<Change> {
    let Difference { path, was, is } = difference;
    let read = || cannot("read", shown(path));
    let (old_path, was) = match from {
        Some(from) => (from.path, from.was),
        None => (*path, *was),
    };
    let kind = match (was, is) {
        _ if from.is_some() => ChangeKind::Renamed,
        (None, _) => ChangeKind::Added,
        (_, None) => ChangeKind::Deleted,
        (Some(was), Some(is)) if was.kind() != is.kind() => ChangeKind::Type,
        (Some(was), Some(is)) if same_contents(path, was, *is).map_err(read())? => ChangeKind::Mode,
        _ => ChangeKind::Modified,
    };
    let is_file = |version: &Version<'_>| version.kind() == Kind::File;
    let mut binary = false;
    let mut lines = None;
    if matches!(kind, ChangeKind::Added | ChangeKind::Deleted | ChangeKind::Modified)
        && was.iter().chain(is).all(is_file)
    {
        let contents = |version: Option<Version<'_>>, path| match version {
            Some(version) => version.contents(path, LARGEST_SHOWN),
            None => Ok(Some(Vec::new())),
        };
        match (contents(was, old_path).map_err(read())?, contents(*is, path).map_err(read())?) {
            (Some(old), Some(new)) if text::is_text(&old) && text::is_text(&new) => {
                lines = Some(text::count(&old, &new))
            }
            _ => binary = true,
        }
    }
    let protected = guard::protection(part, difference);
    let protected = protected.or_else(|| from.and_then(|from| guard::protection(part, from)));
    Ok(Change {
        workspace: Shown(part.place.clone()),
        path: Shown::of(path),
        kind,
        from: from.map(|from| Shown::of(from.path)),
        was: was.map(|was| was.thing(old_path)),
        is: is.map(|is| is.thing(path)),
        binary,
        lines_added: lines.as_ref().map(|lines| lines.added),
        lines_removed: lines.as_ref().map(|lines| lines.removed),
        protected: protected.map(|protection| protection.reason),
        asked: None,
        refused: guard::refusal(difference).map(str::to_owned),
    })
}

/// Differences as one patch: deletions and changes of files and links. Empty folders have no place in a patch.
pub fn write_patch(part: &Part, differences: &[Difference<'_>], out: &mut Vec<u8>) -> Result<()> {
    let renamed = renames::pairs(differences).map_err(cannot("compare", &part.place))?;
    for (number, difference) in differences.iter().enumerate() {
        if renamed.iter().any(|(from, _)| *from == number) {
            continue;
        }
        let from = renamed.iter().find(|(_, to)| *to == number).and_then(|(from, _)| differences.get(*from));
        let (old_path, was) = from.map_or((difference.path, difference.was), |from| (from.path, from.was));
        let old = read_side(was, old_path)?;
        let new = read_side(difference.is, difference.path)?;
        write_sides((old_path, old), (difference.path, new), out);
    }
    Ok(())
}

/// What a patch says of one side; nothing of what has no place in it.
pub fn read_side(version: Option<Version<'_>>, path: &[u8]) -> Result<Read> {
    let Some(version) = version else { return Ok(None) };
    let mode = match version.kind() {
        Kind::File => patch_mode(version.mode()),
        Kind::Link => 0o120_000,
        Kind::Folder | Kind::Special => return Ok(None),
    };
    // More is not read, whatever a file says it has: it is only said to differ.
    let contents = version.contents(path, patch::LARGEST).map_err(cannot("read", shown(path)))?;
    Ok(Some((mode, contents)))
}

/// Of a file, as git writes it.
pub fn patch_mode(mode: u32) -> u32 {
    if mode & 0o100 != 0 { 0o100_755 } else { 0o100_644 }
}

pub fn write_sides((old_path, old): (&[u8], Read), (new_path, new): (&[u8], Read), out: &mut Vec<u8>) {
    if old.iter().chain(&new).any(|(_, contents)| contents.is_none()) {
        patch::write_unshown(old.is_some().then_some(old_path), new.is_some().then_some(new_path), out);
        return;
    }
    let whole = |side: Read| side.and_then(|(mode, contents)| contents.map(|contents| (mode, contents)));
    let (old, new) = (whole(old), whole(new));
    patch::write(&patch::Patch { old: as_side(&old, old_path), new: as_side(&new, new_path) }, out);
}

/// A mode and what was read, if it could be.
pub type Read = Option<(u32, Option<Vec<u8>>)>;

fn as_side<'a>(side: &'a Option<(u32, Vec<u8>)>, path: &'a [u8]) -> Option<patch::Side<'a>> {
    side.as_ref().map(|(mode, content)| patch::Side { path, mode: *mode, content })
}

fn union<'a>(one: impl Iterator<Item = &'a Vec<u8>>, other: impl Iterator<Item = &'a Vec<u8>>) -> Vec<&'a [u8]> {
    let mut paths: Vec<&[u8]> = one.chain(other).map(Vec::as_slice).collect();
    paths.sort_unstable();
    paths.dedup();
    paths
}

pub fn is_wanted(path: &[u8], wanted: &[Vec<u8>]) -> bool {
    let is_at = |wanted: &Vec<u8>| {
        wanted.is_empty() || path.strip_prefix(wanted.as_slice()).is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
    };
    wanted.is_empty() || wanted.iter().any(is_at)
}

pub fn shown(path: &[u8]) -> &Path {
    Path::new(<std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(path))
}
