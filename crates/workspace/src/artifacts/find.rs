//! Which files a run wrote and somebody wants: in its layers, or in real folders that it could write to. Found by their
//! names; what each really is, is seen when it is opened.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use rustix::time::{ClockId, clock_gettime};

use crate::artifacts::pattern::{Pattern, Reach};
use crate::base::is_before;
use crate::changes::shown;
use crate::error::{Result, cannot};
use crate::files::{Folder, LONGEST_PATH, Seen, is_absent, join};
use crate::layer::Node;
use crate::session::{self, Session};

/// Patterns of one workspace.
pub struct Wanted {
    pub workspace: PathBuf,
    pub patterns: Vec<Pattern>,
}

/// A real folder that the sandbox can write to without a layer between. Opened before the run, so that what is put in its
/// place meanwhile is not it.
pub struct Direct {
    workspace: PathBuf,
    folder: Rc<Folder>,
    /// From the workspace to the folder.
    below: Vec<u8>,
    /// Only this of what is in it.
    only: Option<Vec<u8>>,
    /// In it, and not for the sandbox to see or to write: from the workspace on.
    except: Vec<Vec<u8>>,
    owner: u32,
    since: i64,
}

/// What a [`Direct`] is made of.
pub struct Writable<'a> {
    pub workspace: &'a Path,
    /// The workspace itself, or something in it.
    pub place: &'a Path,
    pub is_folder: bool,
    pub except: Vec<&'a Path>,
    /// Who owns it.
    pub owner: u32,
}

/// A name that is wanted.
pub struct Candidate {
    pub workspace: PathBuf,
    /// From the workspace on.
    pub path: Vec<u8>,
    pub folder: Rc<Folder>,
    /// From the folder on.
    pub within: Vec<u8>,
    /// Whose folder it is, where the file may be anybody's: not in a layer.
    pub owner: Option<u32>,
    /// Not wanted itself: it stands where a folder was meant to be.
    pub in_the_way: bool,
}

/// At most so many, and how many there were beyond.
pub struct Candidates {
    pub listed: Vec<Candidate>,
    pub not_listed: u64,
    most: usize,
}

/// Of a real folder, so much is looked at and no more: the run may have filled it.
const MOST_LOOKED_AT: u64 = 1_000_000;

impl Candidates {
    pub fn new(most: usize) -> Candidates {
        Candidates { listed: Vec::new(), not_listed: 0, most }
    }

    fn add(&mut self, candidate: impl FnOnce() -> Candidate) {
        match self.listed.len() < self.most {
            true => self.listed.push(candidate()),
            false => self.not_listed += 1,
        }
    }

    /// What the session's run wrote to its layers.
    pub fn in_layers(&mut self, session: &Session, wanted: &[Wanted]) -> Result<()> {
        let Session { store, record, known, .. } = session;
        for (number, workspace) in record.workspaces.iter().enumerate() {
            let place = workspace.path();
            let Some(Wanted { patterns, .. }) = wanted.iter().find(|wanted| wanted.workspace == place) else {
                continue;
            };
            let mut layers = session::open_layers(store, record, number)?;
            let view = session::view_of(store, record, number, &layers)?;
            // What a run writes is in the topmost layer.
            let top = layers.len().saturating_sub(1);
            let Some((_, folder)) = layers.pop() else { continue };
            let folder = Rc::new(folder);
            for (path, entry) in &view {
                // Earlier runs may have written to the same layer. The kernel alone sets the time of a change.
                let is_old = || *known && record.moment.is_some_and(|moment| is_before(entry.seen.changed, moment));
                if entry.node != Node::Thing || entry.layer != top || is_old() {
                    continue;
                }
                if let Some(in_the_way) = is_meant(patterns, &reaches(patterns, path), &entry.seen) {
                    self.add(|| Candidate {
                        workspace: place.clone(),
                        path: path.clone(),
                        folder: folder.clone(),
                        within: path.clone(),
                        owner: None,
                        in_the_way,
                    });
                }
            }
        }
        Ok(())
    }

    /// What was changed in a real folder since it was opened.
    pub fn in_the_open(&mut self, direct: &Direct, wanted: &[Wanted]) -> Result<()> {
        let Direct { workspace, folder, below, only, except, owner, since } = direct;
        let Some(Wanted { patterns, .. }) = wanted.iter().find(|wanted| wanted.workspace == *workspace) else {
            return Ok(());
        };
        let mut looked_at = 0;
        let mut waiting = vec![(Vec::new(), reaches(patterns, below))];
        while let Some((within, reached)) = waiting.pop() {
            let place = || workspace.join(shown(&join_path(below, &within)));
            let opened = match folder.below(&within) {
                Ok(opened) => opened,
                // Gone, no folder any more, mounted over, or closed to us: so nothing of it is ours to give.
                Err(error) if is_elsewhere(&error) => continue,
                Err(error) => return Err(cannot("look into", place())(error)),
            };
            let names = match only {
                Some(only) if within.is_empty() => vec![only.clone()],
                _ => opened.names().map_err(cannot("list", place()))?,
            };
            let mut folders = Vec::new();
            for name in names {
                looked_at += 1;
                if looked_at > MOST_LOOKED_AT {
                    self.not_listed += 1;
                    return Ok(());
                }
                let reached = step(patterns, &reached, &name);
                let within = join(&within, &name);
                let path = join_path(below, &within);
                if reached.iter().all(|reach| reach.is_dead()) || except.contains(&path) {
                    continue;
                }
                let seen = match opened.look_at(OsStr::from_bytes(&name)) {
                    Ok(Some(seen)) => seen,
                    Ok(None) => continue,
                    Err(error) if is_elsewhere(&error) => continue,
                    Err(error) => return Err(cannot("look at", workspace.join(shown(&path)))(error)),
                };
                if seen.is_folder() {
                    if path.len() <= LONGEST_PATH {
                        folders.push((within, reached));
                    }
                } else if !is_before(seen.changed, *since)
                    && let Some(in_the_way) = is_meant(patterns, &reached, &seen)
                {
                    self.add(|| Candidate {
                        workspace: workspace.clone(),
                        path,
                        folder: folder.clone(),
                        within,
                        owner: Some(*owner),
                        in_the_way,
                    });
                }
            }
            waiting.extend(folders.into_iter().rev());
        }
        Ok(())
    }
}

impl Direct {
    pub fn open(writable: &Writable<'_>) -> Result<Direct> {
        let Writable { workspace, place, is_folder, except, owner } = writable;
        let bytes = |path: &Path| path.as_os_str().as_bytes().to_vec();
        let from_workspace = |path: &Path| path.strip_prefix(workspace).map(bytes).unwrap_or_default();
        let (around, only) = match is_folder {
            true => (*place, None),
            false => (place.parent().unwrap_or(place), place.file_name().map(|name| name.as_bytes().to_vec())),
        };
        let folder = Folder::open(around).map_err(cannot("open", around))?;
        Ok(Direct {
            workspace: workspace.to_path_buf(),
            folder: Rc::new(folder),
            below: from_workspace(around),
            only,
            except: except.iter().map(|path| from_workspace(path)).filter(|path| !path.is_empty()).collect(),
            owner: *owner,
            // The clock that files get their times from stands still for milliseconds: never ahead of it.
            since: coarse_now(),
        })
    }
}

/// That the file is somebody's whom the sandbox does not stand for: it was put there by them, or is theirs under a second
/// name, and what they keep is not the run's to give. What belongs to the folder's owner the sandbox could read already.
pub fn is_anothers(seen: &Seen, owner: u32, us: u32) -> Option<String> {
    let user = seen.owner.0;
    if user != owner && user != us {
        return Some(format!("it belongs to user {user}, and the workspace to user {owner}"));
    }
    (user != owner && seen.names > 1)
        .then(|| format!("it has another name somewhere, and belongs to user {user}, the workspace to user {owner}"))
}

fn coarse_now() -> i64 {
    let now = clock_gettime(ClockId::RealtimeCoarse);
    now.tv_sec.saturating_mul(1_000_000_000).saturating_add(now.tv_nsec)
}

fn is_elsewhere(error: &std::io::Error) -> bool {
    let elsewhere = [std::io::ErrorKind::CrossesDevices, std::io::ErrorKind::PermissionDenied];
    is_absent(error) || elsewhere.contains(&error.kind())
}

fn reaches(patterns: &[Pattern], path: &[u8]) -> Vec<Reach> {
    patterns.iter().map(|pattern| pattern.along(path)).collect()
}

fn step(patterns: &[Pattern], from: &[Reach], name: &[u8]) -> Vec<Reach> {
    patterns.iter().zip(from).map(|(pattern, reach)| pattern.step(*reach, name)).collect()
}

/// Whether it is wanted. `Some(true)`: it is not, but stands where a folder was meant to be, such as a link to one; which
/// is better said than passed over.
fn is_meant(patterns: &[Pattern], reached: &[Reach], seen: &Seen) -> Option<bool> {
    let any =
        |does: fn(&Pattern, Reach) -> bool| patterns.iter().zip(reached).any(|(pattern, reach)| does(pattern, *reach));
    match any(Pattern::means) {
        true => Some(false),
        false => (!seen.is_file() && any(Pattern::leads_into)).then_some(true),
    }
}

fn join_path(folder: &[u8], path: &[u8]) -> Vec<u8> {
    if path.is_empty() { folder.to_owned() } else { join(folder, path) }
}
