//! Collects what a run made: finds it, opens each file beneath a descriptor, copies it to where nobody else writes, has
//! it looked into and judged there, and keeps it by its hash, or does not.

mod find;
mod kept;
mod pattern;

use model::{Artifact, Fate, Gathered, ReleaseGate, Shown, UNKNOWN_KIND, Withheld};

use crate::blobs::Draft;
use crate::error::{Result, cannot};
use crate::files::{Folder, Seen};
use crate::session::Session;
use crate::state::Row;
use crate::store::{Store, new_id, now};

use find::{Candidate, Candidates};
pub use find::{Direct, Wanted, Writable};
pub use kept::{copy, find_one, list, outdated, remove};
pub use pattern::{BadPattern, LONGEST_PATTERN, Pattern};

/// What one run may hand over.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Bytes of one file.
    pub largest: u64,
    /// Files that are listed at all.
    pub most: usize,
    /// Bytes of all that are kept.
    pub total: u64,
}

/// What is to be collected.
pub struct Wish<'a> {
    /// The id of the run that made them.
    pub run: &'a str,
    pub wanted: &'a [Wanted],
    /// Where real files change.
    pub direct: &'a [Direct],
    pub bounds: Bounds,
    pub gate: &'a dyn ReleaseGate,
}

/// Of a run that has ended, and whose layers are still there.
pub fn gather(store: &Store, session: Option<&Session>, wish: &Wish<'_>) -> Result<Gathered> {
    let mut candidates = Candidates::new(wish.bounds.most);
    if let Some(session) = session {
        candidates.in_layers(session, wish.wanted)?;
    }
    for direct in wish.direct {
        candidates.in_the_open(direct, wish.wanted)?;
    }
    let Candidates { listed, not_listed, .. } = candidates;
    let run = wish.run.to_owned();
    if listed.is_empty() {
        return Ok(Gathered { run, not_listed, ..Gathered::default() });
    }
    let blobs = store.blobs();
    // Until the state refers to them, nobody may take what we keep for garbage.
    let folder = blobs.hold().map_err(cannot("open", blobs.folder()))?;
    let mut gathering = Gathering { wish, folder: &folder, left: wish.bounds.total, drafts: Vec::new() };
    let sandbox = session.map(|session| session.record().id.clone());
    let mut rows = Vec::with_capacity(listed.len());
    for candidate in &listed {
        let Taken { seen, hash, examined, fate } = gathering.take(candidate)?;
        let artifact = Artifact {
            id: new_id()?,
            run: run.clone(),
            sandbox: sandbox.clone(),
            workspace: Shown(candidate.workspace.clone()),
            path: Shown::of(&candidate.path),
            size: seen.map_or(0, |seen| seen.size),
            executable: seen.is_some_and(|seen| seen.is_file() && seen.mode & 0o100 != 0),
            digest: hash.map(|hash| hash.to_string()),
            kind: examined.kind,
            fate,
            findings: examined.findings,
            created: now() / 1000,
        };
        rows.push(Row { artifact, hash });
    }
    // Only now, when all are written: the first wait for the disk is then the wait of nearly all.
    for draft in gathering.drafts {
        draft.keep().map_err(cannot("write", blobs.folder()))?;
    }
    rustix::fs::fsync(folder.fd()).map_err(cannot("write", blobs.folder()))?;
    store.state()?.save_artifacts(&rows)?;
    Ok(Gathered { run, artifacts: rows.into_iter().map(|row| row.artifact).collect(), not_listed, trouble: None })
}

struct Gathering<'a> {
    wish: &'a Wish<'a>,
    /// Of blobs, held.
    folder: &'a Folder,
    /// Bytes that may still be kept.
    left: u64,
    /// What is released.
    drafts: Vec<Draft<'a>>,
}

/// What became of one candidate.
struct Taken {
    seen: Option<Seen>,
    hash: Option<crate::blobs::Hash>,
    examined: model::Examined,
    fate: Fate,
}

impl Taken {
    /// Of which nothing was read, or not all.
    fn unread(seen: Option<Seen>, rule: &str, reason: impl Into<String>) -> Taken {
        Taken { seen, hash: None, examined: unknown(), fate: Fate::Withheld(Withheld::new(rule, reason)) }
    }
}

fn unknown() -> model::Examined {
    model::Examined { kind: UNKNOWN_KIND.to_owned(), findings: Vec::new() }
}

impl Gathering<'_> {
    /// An error only where our own store fails: whatever is wrong with the file is a reason to withhold it.
    fn take(&mut self, candidate: &Candidate) -> Result<Taken> {
        let Bounds { largest, total, .. } = self.wish.bounds;
        let Candidate { path, folder, within, owner, in_the_way, .. } = candidate;
        let (seen, file) = match folder.open_only_a_file(within) {
            Ok(opened) => opened,
            Err(error) => return Ok(Taken::unread(None, "artifacts.readable", format!("it can't be opened: {error}"))),
        };
        let withheld = |rule, reason: String| Ok(Taken::unread(Some(seen), rule, reason));
        let Some(mut file) = file else {
            return withheld("artifacts.kind", what(&seen).to_owned());
        };
        if *in_the_way {
            return withheld("artifacts.changed", "it became a file while it was looked at".to_owned());
        }
        let us = rustix::process::geteuid().as_raw();
        if let Some(why) = owner.and_then(|owner| find::is_anothers(&seen, owner, us)) {
            return withheld("artifacts.owner", why);
        }
        if seen.size > largest {
            return withheld("artifacts.largest", format!("it has {} bytes; {largest} is the most", seen.size));
        }
        if seen.size > self.left {
            let reason = format!("all artifacts of a run may have {total} bytes, and {} are left", self.left);
            return withheld("artifacts.total", reason);
        }
        let name = String::from_utf8_lossy(path);
        if let Some(Withheld { rule, reason }) = self.wish.gate.at_sight(&name, seen.size) {
            return withheld(&rule, reason);
        }
        let store = || cannot("write", "the store of artifacts");
        let mut draft = Draft::new(self.folder, &new_id()?).map_err(store())?;
        let hash = match draft.fill(&mut file, seen.size) {
            Ok(Some(hash)) => hash,
            Ok(None) => {
                draft.discard().map_err(store())?;
                return withheld("artifacts.changed", "its size changed while it was read".to_owned());
            }
            Err(error) => {
                draft.discard().map_err(store())?;
                return withheld("artifacts.readable", format!("it can't be copied: {error}"));
            }
        };
        let (examined, withheld) = self.wish.gate.within(&name, &draft.contents().map_err(store())?, seen.size);
        let fate = match withheld {
            Some(withheld) => {
                draft.discard().map_err(store())?;
                Fate::Withheld(withheld)
            }
            None => {
                self.drafts.push(draft);
                self.left = self.left.saturating_sub(seen.size);
                Fate::Released
            }
        };
        Ok(Taken { seen: Some(seen), hash: Some(hash), examined, fate })
    }
}

/// In words, of what is no file.
fn what(seen: &Seen) -> &'static str {
    use rustix::fs::FileType;
    match seen.kind {
        FileType::Symlink => "it is a link, and links are not followed",
        FileType::Directory => "it is a folder",
        FileType::Fifo => "it is a pipe",
        FileType::Socket => "it is a socket",
        FileType::CharacterDevice | FileType::BlockDevice => "it is a device",
        _ => "it is no file",
    }
}

#[cfg(test)]
mod tests;
