//! Takes changes onto the real files so that a crash at any point leaves something to go on from.
//!
//! First everything new is written beside, in a folder of the workspace's own, and put to disk; nothing real has changed
//! until then. Then the journal says so, and from there each step is one rename: the new thing and the old one change
//! places, so that nothing is ever missing, and what was there can be put back. Whether a step is done is seen from
//! which file lies where; so a taking that was cut off is finished by whoever comes next.

mod target;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;

use model::Watch;
use rustix::fs::Mode;
use serde::{Deserialize, Serialize};

use crate::base::Kind;
use crate::changes::shown;
use crate::error::{Result, cannot};
use crate::files::{Folder, Seen};
use crate::gate::{Decision, Judged};
use crate::record::Workspace;
use crate::remove;
use target::Target;

/// Everything that one taking does, as the journal keeps it.
#[derive(Debug, Serialize, Deserialize)]
pub struct Plan {
    /// Of the journal, and so of the folder beside.
    pub id: String,
    pub sandbox: String,
    pub workspaces: Vec<Workspace>,
    pub steps: Vec<Step>,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Step {
    pub workspace: usize,
    pub path: Vec<u8>,
    pub does: Does,
    /// What is there before; nothing if nothing is.
    pub expected: Option<Mark>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Does {
    /// Puts what was written beside, with this number of its own, in its place.
    Put {
        inode: u64,
    },
    Remove,
    /// If nothing is in it any more.
    RemoveFolder {
        mode: u32,
    },
    SetMode {
        before: u32,
        after: u32,
    },
}

/// What the owner of a folder needs to work in it.
const OPEN: u32 = 0o700;

/// Enough to tell one state of a file from another, and not changed by a rename.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    inode: u64,
    size: u64,
    modified: i64,
    mode: u32,
    folder: bool,
}

impl Mark {
    fn of(seen: &Seen) -> Mark {
        // A folder's size and time change with what is in it, which is looked at by itself.
        let folder = seen.is_folder();
        let (size, modified) = if folder { (0, 0) } else { (seen.size, seen.modified) };
        Mark { inode: seen.inode, size, modified, mode: seen.mode, folder }
    }
}

/// How one step went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Went {
    Done,
    /// Somebody changed the file at the last moment; it is as they left it.
    Beaten,
}

/// From where steps are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    Fresh,
    /// Some were taken before, by somebody who was cut off.
    CutOff,
}

impl Plan {
    /// What is to be done, in an order in which it can be: away with the old, innermost first; then the new, outermost
    /// first; modes of folders last, again from the inside, because a closed one keeps us out.
    pub fn of(id: String, sandbox: &str, workspaces: &[Workspace], judged: &[(usize, &Judged<'_>)]) -> Plan {
        let (mut removed, mut folders, mut put, mut modes) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for (workspace, one) in judged {
            let Judged { difference, decision, host, asks: _ } = one;
            let step = |does| Step {
                workspace: *workspace,
                path: difference.path.to_owned(),
                does,
                expected: host.as_ref().map(Mark::of),
            };
            let is_folder = |seen: &Option<Seen>| seen.is_some_and(|seen| seen.is_folder());
            match (decision, difference.is, host) {
                (Decision::Take, None, Some(seen)) if seen.is_folder() => {
                    folders.push(step(Does::RemoveFolder { mode: seen.mode & 0o777 }));
                }
                (Decision::Take, None, _) => removed.push(step(Does::Remove)),
                (Decision::Take, Some(is), Some(seen)) if is.kind() == Kind::Folder && is_folder(host) => {
                    modes.push(step(Does::SetMode {
                        before: seen.mode & 0o7777,
                        after: is.mode() | seen.mode & 0o7000,
                    }));
                }
                (Decision::Take | Decision::Merge { .. }, Some(is), _) => {
                    put.push(step(Does::Put { inode: 0 }));
                    // Closed only when all is in it.
                    if is.kind() == Kind::Folder && is.mode() & OPEN != OPEN {
                        modes.push(step(Does::SetMode { before: is.mode() | OPEN, after: is.mode() }));
                    }
                }
                _ => {}
            }
        }
        folders.reverse();
        modes.reverse();
        let steps = removed.into_iter().chain(folders).chain(put).chain(modes).collect();
        Plan { id, sandbox: sandbox.to_owned(), workspaces: workspaces.to_vec(), steps }
    }

    fn beside(&self) -> String {
        format!(".belljar-{}", self.id.get(..12).unwrap_or(&self.id))
    }

    /// Writes everything new beside. Nothing real changes.
    pub fn stage(&mut self, judged: &[(usize, &Judged<'_>)], watch: &dyn Watch) -> Result<()> {
        let beside = self.beside();
        for workspace in &self.workspaces {
            let path = workspace.path();
            let make = || -> io::Result<()> {
                let root = Folder::open(&path)?;
                Ok(rustix::fs::mkdirat(root.fd(), &beside, Mode::from_raw_mode(0o700))?)
            };
            make().map_err(cannot("make a folder in", &path))?;
        }
        let targets = self.targets(Start::Fresh)?;
        let targets: Vec<&Target> = targets.iter().flatten().collect();
        let by_path: BTreeMap<(usize, &[u8]), &Judged<'_>> =
            judged.iter().map(|(workspace, one)| ((*workspace, one.difference.path), *one)).collect();
        let total = self.steps.len() as u64;
        let mut files = 0usize;
        for (number, step) in self.steps.iter_mut().enumerate() {
            watch.progress("writing", number as u64, total);
            let Does::Put { inode } = &mut step.does else { continue };
            let found = by_path.get(&(step.workspace, step.path.as_slice()));
            let (Some(one), Some(target)) = (found, targets.get(step.workspace)) else { continue };
            let write = || cannot("write", target.place.join(shown(&step.path)));
            *inode = target.write_beside(number, one).map_err(write())?;
            files += 1;
        }
        // One by one for a few; all of the filesystem for many.
        const FEW: usize = 32;
        for target in &targets {
            let synced = match files > FEW {
                true => rustix::fs::syncfs(target.beside.fd()).map_err(io::Error::from),
                false => target.sync_beside(),
            };
            synced.map_err(cannot("write to disk what is beside", &target.place))?;
        }
        Ok(())
    }

    /// Nothing for a workspace that has nothing beside any more: whoever was cut off had finished with it.
    fn targets(&self, start: Start) -> Result<Vec<Option<Target>>> {
        let beside = self.beside();
        let open = |workspace: &Workspace| {
            let place = workspace.path();
            let open = || -> io::Result<Option<Target>> {
                let root = Folder::open(&place)?;
                let seen = root.seen()?;
                if (seen.device, seen.inode) != (workspace.device, workspace.inode) {
                    return Err(io::Error::other("another folder is in its place"));
                }
                let beside = match Folder::open_layer(&place)?.below(beside.as_bytes()) {
                    Err(error) if start == Start::CutOff && crate::files::is_absent(&error) => return Ok(None),
                    beside => beside?,
                };
                // Whoever owns the workspace can put another in its place, with links in it to what is not theirs.
                let seen = beside.seen()?;
                if seen.owner.0 != rustix::process::geteuid().as_raw() || seen.mode & 0o077 != 0 {
                    return Err(io::Error::other("the folder beside is somebody else's"));
                }
                Ok(Some(Target { place: place.clone(), root, beside, start }))
            };
            open().map_err(cannot("open", &place))
        };
        self.workspaces.iter().map(open).collect()
    }

    /// Takes every step that is not taken yet; says how each went. If one can't be, the others are to be put back.
    pub fn go(&self, start: Start, watch: &dyn Watch) -> Result<Vec<Went>> {
        let targets = self.targets(start)?;
        let mut went = Vec::with_capacity(self.steps.len());
        let total = self.steps.len() as u64;
        for (number, step) in self.steps.iter().enumerate() {
            watch.progress("taking", number as u64, total);
            let Some(Some(target)) = targets.get(step.workspace) else {
                went.push(Went::Done);
                continue;
            };
            let taken = target.take(number, step);
            went.push(taken.map_err(cannot("change", target.place.join(shown(&step.path))))?);
        }
        watch.progress("taking", total, total);
        Ok(went)
    }

    /// Undoes every step that was taken, the last first.
    pub fn back(&self) -> Result<()> {
        let targets = self.targets(Start::CutOff)?;
        for (number, step) in self.steps.iter().enumerate().rev() {
            let Some(Some(target)) = targets.get(step.workspace) else { continue };
            target.undo(number, step).map_err(cannot("put back", target.place.join(shown(&step.path))))?;
        }
        Ok(())
    }

    /// Names are on disk, too.
    pub fn sync(&self) -> Result<()> {
        let targets = self.targets(Start::CutOff)?;
        const FEW: usize = 32;
        for (at, target) in targets.iter().enumerate() {
            let Some(target) = target else { continue };
            let steps = self.steps.iter().filter(|step| step.workspace == at);
            let synced = || -> io::Result<()> {
                if steps.clone().count() > FEW {
                    return Ok(rustix::fs::syncfs(target.root.fd())?);
                }
                let mut folders: Vec<&[u8]> = steps.clone().map(|step| crate::files::split(&step.path).0).collect();
                folders.sort_unstable();
                folders.dedup();
                for folder in folders {
                    match target.root.below(folder) {
                        Ok(folder) => rustix::fs::fsync(folder.fd())?,
                        // It was removed, or is closed to us as it was in the sandbox.
                        Err(error)
                            if crate::files::is_absent(&error) || error.kind() == io::ErrorKind::PermissionDenied => {}
                        Err(error) => return Err(error),
                    }
                }
                Ok(())
            };
            synced().map_err(cannot("write to disk", &target.place))?;
        }
        Ok(())
    }

    /// Removes what is beside: drafts that were never used, or what was replaced.
    pub fn clear(&self) -> Result<()> {
        for workspace in &self.workspaces {
            let path = workspace.path();
            let clear = || -> io::Result<()> {
                let root = match Folder::open(&path) {
                    Err(error) if crate::files::is_absent(&error) => return Ok(()),
                    root => root?,
                };
                remove::tree(root.fd(), OsStr::new(&self.beside()))
            };
            clear().map_err(cannot("clean up", &path))?;
        }
        Ok(())
    }
}
