//! The commit gate: for each change, what it was, what it is on the host now, and what the sandbox made of it decide
//! whether it is taken.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::ffi::OsStrExt;

use model::{Apart, Favor, Gatekeeper};

use crate::base::{Base, Kind};
use crate::changes::{Difference, LARGEST_SHOWN, Part, Version, same_contents, shown};
use crate::error::{Result, cannot};
use crate::files::{Seen, ancestors, split};
use crate::{guard, protected, text};

/// One change, with what is to become of it.
pub struct Judged<'a> {
    pub difference: Difference<'a>,
    pub decision: Decision,
    /// What is on the host at this moment; whatever is found there later must be this.
    pub host: Option<Seen>,
    /// Why a person must agree, if it is taken.
    pub asks: Option<String>,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Decision {
    Take,
    /// Both sides' changes together.
    Merge {
        contents: Vec<u8>,
        mode: u32,
    },
    /// It is so already.
    Nothing,
    /// The host's version stays, because somebody said so.
    KeepHost,
    Conflict(String),
    HoldBack(String),
    Refuse(String),
}

/// `named`: paths that somebody wrote out, below the workspace.
pub fn judge<'a>(
    part: &'a Part,
    differences: Vec<Difference<'a>>,
    named: &[Vec<u8>],
    favor: Option<Favor>,
    keeper: &dyn Gatekeeper,
) -> Result<Vec<Judged<'a>>> {
    // Folders that will be there, and what is in the way to each that was asked about: those in one have one answer.
    let mut folders: BTreeSet<&[u8]> = BTreeSet::new();
    let mut in_the_way: BTreeMap<&[u8], Option<String>> = BTreeMap::new();
    let mut judged = Vec::with_capacity(differences.len());
    for difference in differences {
        let look = || cannot("look at", part.place.join(shown(difference.path)));
        let folder = difference.is.is_none_or(|is| is.kind() == Kind::Folder);
        let crossing = keeper.at(&part.place.join(shown(difference.path)), folder);
        let (decision, host) = if let Some(reason) = guard::refusal(&difference) {
            (Decision::Refuse(reason.to_owned()), None)
        } else if let Some(reason) = &crossing.never {
            (Decision::Refuse(reason.clone()), None)
        } else if let Some(apart) = &crossing.named
            && !names(part, difference.path, apart, named)
        {
            (Decision::HoldBack(apart.reason.clone()), None)
        } else if let Some(reason) = held_back(part, &difference, named) {
            (Decision::HoldBack(reason), None)
        } else {
            match part.host.look(difference.path) {
                Err(error) if error.kind() == std::io::ErrorKind::CrossesDevices => {
                    (Decision::Conflict("another filesystem is mounted on the way to it".to_owned()), None)
                }
                Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                    (Decision::Conflict("a folder on the way to it is closed to you".to_owned()), None)
                }
                Err(error) => return Err(look()(error)),
                Ok(host) => {
                    let parent = split(difference.path).0;
                    let why = match in_the_way.get(parent) {
                        Some(known) => known.clone(),
                        None => blocked(part, difference.path, &folders).map_err(look())?,
                    };
                    in_the_way.insert(parent, why.clone());
                    let decision = match why {
                        Some(why) if difference.is.is_some() => Decision::Conflict(why),
                        _ => decide(part, &difference, host, favor).map_err(look())?,
                    };
                    (decision, host)
                }
            }
        };
        // Outer ones come before what is in them.
        let is_folder = difference.is.is_some_and(|is| is.kind() == Kind::Folder);
        if is_folder && matches!(decision, Decision::Take | Decision::Nothing) {
            folders.insert(difference.path);
        }
        let asks = crossing.asked.filter(|_| matches!(decision, Decision::Take | Decision::Merge { .. }));
        judged.push(Judged { difference, decision, host, asks });
    }
    Ok(judged)
}

/// Somebody wrote out what is kept apart, or something in it. Where that is the whole workspace, each path is in it, and
/// whoever writes any means it.
fn names(part: &Part, path: &[u8], apart: &Apart, named: &[Vec<u8>]) -> bool {
    match apart.root.strip_prefix(&part.place) {
        Ok(below) if !below.as_os_str().is_empty() => {
            let root = below.as_os_str().as_bytes().to_owned();
            protected::is_named(path, &protected::Protection { root, reason: "" }, named)
        }
        _ => !named.is_empty(),
    }
}

fn held_back(part: &Part, difference: &Difference<'_>, named: &[Vec<u8>]) -> Option<String> {
    let protection = guard::protection(part, difference)?;
    let by_root = protected::Protection { root: protection.root, reason: "" };
    (!protected::is_named(difference.path, &by_root, named)).then_some(protection.reason)
}

/// Something on the way to it is no folder on the host, and will not be one.
fn blocked(part: &Part, path: &[u8], folders: &BTreeSet<&[u8]>) -> std::io::Result<Option<String>> {
    for folder in ancestors(path) {
        match part.host.look(folder)? {
            Some(seen) if seen.is_folder() => return Ok(None),
            Some(_) if !folders.contains(folder) => {
                return Ok(Some(format!("`{}` is no folder on the host any more", shown(folder).display())));
            }
            _ => {}
        }
    }
    Ok(None)
}

fn decide(
    part: &Part,
    difference: &Difference<'_>,
    host: Option<Seen>,
    favor: Option<Favor>,
) -> std::io::Result<Decision> {
    let Difference { path, was, is } = difference;
    let base = match was {
        Some(Version::Before(_, base)) => Some(*base),
        _ => None,
    };
    let clash = |why: &str| match favor {
        Some(Favor::Theirs) => Decision::Take,
        Some(Favor::Ours) => Decision::KeepHost,
        None => Decision::Conflict(why.to_owned()),
    };
    let there = host.map(|seen| Version::In(&part.host, seen));
    Ok(match (base, is, there) {
        (_, None, None) => Decision::Nothing,
        (_, Some(is), Some(there)) if is_same(path, *is, there)? => Decision::Nothing,
        (None, _, None) => Decision::Take,
        (None, _, Some(_)) => clash("the host has something else there, made meanwhile"),
        (Some(_), Some(_), None) => clash("it was deleted on the host, and changed in the sandbox"),
        (Some(base), is, Some(there)) => {
            if is_untouched(path, base, there)? {
                Decision::Take
            } else if let (Some(is), Some(Version::In(_, seen))) = (is, Some(there)) {
                match merged(part, path, base, *is, there)? {
                    Some(contents) => {
                        let mode = if is.mode() == base.mode & 0o777 { seen.mode & 0o777 } else { is.mode() };
                        let already = mode == seen.mode & 0o777
                            && there.contents(path, LARGEST_SHOWN)?.is_some_and(|there| there == contents);
                        if already { Decision::Nothing } else { Decision::Merge { contents, mode } }
                    }
                    None if !base.known => clash("it changed on the host while the sandbox worked on it"),
                    None => clash("both changed it, and the changes can't be put together"),
                }
            } else {
                clash("it changed on the host, and was deleted in the sandbox")
            }
        }
    })
}

fn is_same(path: &[u8], is: Version<'_>, there: Version<'_>) -> std::io::Result<bool> {
    let modes = is.kind() == Kind::Link || is.mode() == there.mode();
    Ok(is.kind() == there.kind() && modes && same_contents(path, is, there)?)
}

/// Nobody has changed what the sandbox saw; or somebody has, and changed it back.
fn is_untouched(path: &[u8], base: &Base, there: Version<'_>) -> std::io::Result<bool> {
    let Version::In(_, seen) = there else { return Ok(false) };
    if base.is_still(&seen) {
        return Ok(true);
    }
    let same_thing = base.known && base.kind == Kind::of(&seen) && base.size == seen.size;
    if !same_thing || base.mode != seen.mode {
        return Ok(false);
    }
    Ok(match base.hash {
        Some(hash) => crate::changes::hash_of(path, there)? == Some(hash),
        None => false,
    })
}

fn merged(
    part: &Part,
    path: &[u8],
    base: &Base,
    is: Version<'_>,
    there: Version<'_>,
) -> std::io::Result<Option<Vec<u8>>> {
    let of_git = ancestors(path).any(|folder| folder == b".git" || folder.ends_with(b"/.git"));
    let files = [base.kind, is.kind(), there.kind()].iter().all(|kind| *kind == Kind::File);
    // Lines of git's own files are no text to be mixed.
    if !base.known || of_git || !files {
        return Ok(None);
    }
    let Some(before) = base.hash.and_then(|hash| part.blobs.read(hash)) else { return Ok(None) };
    let (Some(sandbox), Some(host)) = (is.contents(path, LARGEST_SHOWN)?, there.contents(path, LARGEST_SHOWN)?) else {
        return Ok(None);
    };
    Ok(text::merge(&before, &host, &sandbox))
}
