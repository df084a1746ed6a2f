//! What a path was on the host when the sandbox first changed it: with this, an edit that somebody made meanwhile is
//! never taken for an old state of ours.
//!
//! Nobody watches while the sandbox works, so this is found out afterwards, from times that only the kernel sets: what
//! has not changed since the run began is what the sandbox saw.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use crate::blobs::{Blobs, Hash};
use crate::error::{Result, cannot};
use crate::files::{Folder, Seen, ancestors, join, split};
use crate::layer::{Node, View};

/// Paths that exist below, or did. A path that is changed and not here was not there before.
pub type Bases = BTreeMap<Vec<u8>, Base>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Base {
    /// It did not change while the sandbox first worked on it: so this is what the sandbox saw.
    pub known: bool,
    pub kind: Kind,
    pub mode: u32,
    pub size: u64,
    pub modified: i64,
    pub changed: i64,
    pub inode: u64,
    /// Of its contents, or of a link's target.
    pub hash: Option<Hash>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    File,
    Folder,
    Link,
    Special,
}

impl Kind {
    pub fn of(seen: &Seen) -> Kind {
        match seen.kind {
            kind if kind.is_file() => Kind::File,
            kind if kind.is_dir() => Kind::Folder,
            kind if kind.is_symlink() => Kind::Link,
            _ => Kind::Special,
        }
    }
}

impl Base {
    pub fn of(seen: &Seen) -> Base {
        Base {
            known: true,
            kind: Kind::of(seen),
            mode: seen.mode,
            size: seen.size,
            modified: seen.modified,
            changed: seen.changed,
            inode: seen.inode,
            hash: None,
        }
    }

    /// Nothing has happened to it since.
    pub fn is_still(&self, seen: &Seen) -> bool {
        self.known
            && Kind::of(seen) == self.kind
            && match self.kind {
                // What is in it is looked at entry by entry.
                Kind::Folder => seen.mode == self.mode,
                _ => {
                    let now = (seen.inode, seen.changed, seen.modified, seen.size, seen.mode);
                    now == (self.inode, self.changed, self.modified, self.size, self.mode)
                }
            }
    }
}

/// Contents above this are told apart by the kernel's times alone.
const LARGEST_HASHED: u64 = 64 << 20;
/// Contents up to this are kept, for merging.
pub const LARGEST_KEPT: u64 = 4 << 20;

/// Finds the base of everything that the view changes and that has none yet. `moment`: what has this time or an
/// earlier one was so before the command started.
pub fn capture(
    view: &View,
    known: &Bases,
    host: &Folder,
    layers: &[(&Path, &Folder)],
    moment: i64,
    blobs: &Blobs,
) -> Result<Bases> {
    let mut capture = Capture { view, known, host, moment, blobs, found: Bases::new(), moved: Vec::new() };
    for (path, entry) in view {
        let trouble = || cannot("look at", shown(path));
        let layer = layers.get(entry.layer).map(|(_, layer)| layer);
        let seen = match host.look(path) {
            // A filesystem is mounted there, which the sandbox did not see; or it is closed to both of us.
            Err(error) if matches!(error.kind(), io::ErrorKind::CrossesDevices | io::ErrorKind::PermissionDenied) => {
                None
            }
            seen => seen.map_err(trouble())?,
        };
        if let (Node::Folder { .. }, Some(layer), Some(true)) = (entry.node, layer, seen.map(|seen| seen.is_folder()))
            && !capture.is_the_same_folder(path, layer).map_err(trouble())?
        {
            capture.moved.push(path.clone());
        }
        let Some(seen) = seen else { continue };
        let replaced = !matches!(entry.node, Node::Folder { opaque: false });
        match seen.is_folder() && replaced {
            true => capture.tree(path, seen)?,
            false => capture.one(path, seen)?,
        }
    }
    Ok(capture.found)
}

struct Capture<'a> {
    view: &'a View,
    known: &'a Bases,
    host: &'a Folder,
    moment: i64,
    blobs: &'a Blobs,
    found: Bases,
    /// Folders of the host that are not those which the sandbox saw at their paths.
    moved: Vec<Vec<u8>>,
}

impl Capture<'_> {
    /// A folder that is gone for the sandbox, and everything in it.
    fn tree(&mut self, path: &[u8], seen: Seen) -> Result<()> {
        self.settle(path, seen);
        self.one(path, seen)?;
        let mut waiting = vec![path.to_owned()];
        while let Some(path) = waiting.pop() {
            let trouble = || cannot("look into", shown(&path));
            let folder = match self.host.below(&path) {
                Ok(folder) => folder,
                // A filesystem is mounted there, which the sandbox did not see.
                Err(error)
                    if matches!(error.kind(), io::ErrorKind::CrossesDevices | io::ErrorKind::PermissionDenied) =>
                {
                    continue;
                }
                Err(error) => return Err(trouble()(error)),
            };
            for name in folder.names().map_err(trouble())? {
                let Some(seen) = folder.look_at(shown(&name)).map_err(trouble())? else { continue };
                let path = join(&path, &name);
                if seen.is_folder() {
                    self.settle(&path, seen);
                    waiting.push(path.clone());
                }
                self.one(&path, seen)?;
            }
        }
        Ok(())
    }

    /// Of a folder that is gone for the sandbox nobody noted which one it was.
    fn settle(&mut self, path: &[u8], seen: Seen) {
        if !is_before(seen.changed, self.moment) {
            self.moved.push(path.to_owned());
        }
    }

    fn one(&mut self, path: &[u8], seen: Seen) -> Result<()> {
        if self.known.contains_key(path) || self.found.contains_key(path) {
            return Ok(());
        }
        let mut base = Base::of(&seen);
        let moved = || ancestors(path).any(|folder| self.moved.iter().any(|moved| moved == folder));
        // A folder's time changes with every file in it: only its being the same one counts.
        let settled = seen.is_folder() || is_before(seen.changed, self.moment);
        base.known = settled && !moved();
        // What stays a file is worth keeping: somebody may change it meanwhile, and both can be merged.
        let keep = self.view.get(path).is_some_and(|entry| entry.node == Node::Thing && entry.seen.is_file());
        if base.known {
            base.hash = match base.kind {
                Kind::File if keep => match self.blobs.keep_file(self.host, path, LARGEST_KEPT, LARGEST_HASHED) {
                    // Closed to ourselves: then its times must tell.
                    Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(None),
                    kept => kept,
                },
                Kind::Link => self.host.link(path).map(|target| Some(Hash::of(&target))),
                _ => Ok(None),
            }
            .map_err(cannot("read", shown(path)))?;
            // It may have changed while it was read.
            let after = self.host.look(path).map_err(cannot("look at", shown(path)))?;
            base.known = after.is_some_and(|after| base.is_still(&after));
        }
        self.found.insert(path.to_owned(), base);
        Ok(())
    }

    /// The host's folder is the one whose files the sandbox saw there. Somebody may have put another in its place, full
    /// of files that are older than the run.
    fn is_the_same_folder(&self, path: &[u8], layer: &Folder) -> io::Result<bool> {
        let origin = layer.below(path)?.attribute(c"user.overlay.origin")?;
        let folder = self.host.below(path)?;
        match (origin.as_deref().and_then(handle_of), sys::handles::handle(folder.fd())) {
            (Some((kind, bytes)), Ok(handle)) => Ok(handle.kind == kind && handle.bytes == bytes),
            // Where nobody can tell, a folder that nothing has happened to is the same.
            _ => Ok(is_before(folder.seen()?.changed, self.moment)),
        }
    }
}

/// The handle in an overlay's note of where a copy came from.
fn handle_of(origin: &[u8]) -> Option<(i32, &[u8])> {
    // Version 0, a magic number, the length of all, flags, kind, 16 bytes of the filesystem's number, the handle.
    const HEAD: usize = 21;
    (origin.len() > HEAD && origin[0] == 0 && origin[1] == 0xfb).then(|| (i32::from(origin[4]), &origin[HEAD..]))
}

/// Surely before, also where a filesystem's clock has a coarse hand.
pub fn is_before(time: i64, moment: i64) -> bool {
    const SECOND: i64 = 1_000_000_000;
    let mut hand = 1;
    while hand < SECOND && time % (hand * 10) == 0 {
        hand *= 10;
    }
    // The coarsest there are tell every other second.
    let hand = if hand == SECOND { 2 * SECOND } else { hand };
    time.saturating_add(hand) <= moment
}

/// Bases of paths that the view does not change.
pub fn stale(view: &View, mut bases: Bases) -> Bases {
    bases.retain(|path, _| crate::layer::at(view, path) == crate::layer::At::Untouched);
    bases
}

fn shown(path: &[u8]) -> &std::ffi::OsStr {
    std::os::unix::ffi::OsStrExt::from_bytes(if path.is_empty() { split(path).1 } else { path })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_without_a_fraction_is_only_before_what_is_seconds_later() {
        let second = 1_000_000_000;
        assert!(is_before(5 * second + 1, 5 * second + 2));
        assert!(!is_before(5 * second + 2, 5 * second + 2));
        assert!(!is_before(5 * second, 6 * second + 1));
        assert!(!is_before(5 * second + 10_000_000, 5 * second + 19_999_999));
        assert!(is_before(5 * second + 10_000_000, 5 * second + 20_000_000));
        assert!(is_before(5 * second, 7 * second));
    }

    #[test]
    fn an_origin_of_another_kind_is_no_handle() {
        assert_eq!(handle_of(b""), None);
        assert_eq!(handle_of(&[0; 30]), None);
        let mut origin = [0u8; 29];
        origin[1] = 0xfb;
        origin[4] = 1;
        assert_eq!(handle_of(&origin), Some((1, [0u8; 8].as_slice())));
    }
}
