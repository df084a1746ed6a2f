//! Paths that programs of the host act on by themselves: shown apart, and taken only when named.
//!
//! Paths are relative to the workspace, of any bytes, with `/` between names and without `..`. Names are matched at any
//! depth: a workspace holds projects in projects. Nothing here looks at a disk, so a rule holds for what is not there
//! yet.
//!
//! How to ask, for each change:
//! - a file or a link that is added, changed or removed: [`protection`], then [`is_around`], since a link can stand in
//!   for a whole folder;
//! - a folder that is added where nothing was: [`protection_of_new_folder`];
//! - a folder that is removed, or that something else replaces: [`protection`], then [`is_around`], and what was in it,
//!   path by path. `src` is around nothing by its name, but may have held a `.vscode`.
//!
//! What a path can't tell is not seen: a folder of hooks that `core.hooksPath` names, or a changed `config` in a bare
//! repository that was in the project before. A new bare repository is: git needs its `HEAD`.

mod git;
mod names;
mod table;

use std::borrow::Cow;

use git::Inside;
use table::INDEX;

/// What a host program would do with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Protection {
    /// The path that is protected itself: the one that was asked for, or the folder above it that matched.
    pub root: Vec<u8>,
    pub reason: &'static str,
}

/// Why this path is protected, if it is.
///
/// `.git` is: as a file or a link it says where git finds its configuration. For a plain folder of that name, see
/// [`protection_of_new_folder`].
pub fn protection(path: &[u8]) -> Option<Protection> {
    match look(path) {
        Found::Protected { end, reason } | Found::Mixed { end, reason } => {
            Some(Protection { root: path[..end].to_vec(), reason })
        }
        Found::Around(_) | Found::Ordinary => None,
    }
}

/// The same for a plain folder where nothing was before.
///
/// A new `.git` is not protected as a folder, nor are `.git/info`, `.git/modules` and `.git/worktrees`: empty they do
/// nothing, and what is put into them is judged path by path. So `git init` by an agent leaves a repository that can be
/// taken, but for its `config` and `hooks`, unless they are named.
pub fn protection_of_new_folder(path: &[u8]) -> Option<Protection> {
    match look(path) {
        Found::Protected { end, reason } => Some(Protection { root: path[..end].to_vec(), reason }),
        Found::Mixed { .. } | Found::Around(_) | Found::Ordinary => None,
    }
}

/// Why this path must not be removed, replaced or made a link as a whole without being named: something protected lies,
/// or could lie, below it, as `.git/hooks` below `.git`. What is protected itself is such a path, too.
pub fn is_around(path: &[u8]) -> Option<&'static str> {
    match look(path) {
        Found::Protected { reason, .. } | Found::Mixed { reason, .. } | Found::Around(reason) => Some(reason),
        Found::Ordinary => None,
    }
}

/// One of `named` names the protected thing itself: its root, or what lies between that and the path. A folder above
/// the root, such as `.git` for a hook, does not: who names it need not know what is in it.
///
/// Names count as they are written. A twin of a name is another path.
pub fn is_named(path: &[u8], protection: &Protection, named: &[Vec<u8>]) -> bool {
    named.iter().any(|name| {
        let name = name.strip_suffix(b"/").unwrap_or(name);
        is_at_or_below(name, &protection.root) && is_at_or_below(path, name)
    })
}

/// Its last name is git's own, or a twin of it.
pub fn is_repository(path: &[u8]) -> bool {
    let (names, _) = split(path);
    names.last().is_some_and(|name| **name == *b".git")
}

fn is_at_or_below(path: &[u8], folder: &[u8]) -> bool {
    !folder.is_empty() && path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
}

enum Found {
    /// Up to byte `end` of the path.
    Protected {
        end: usize,
        reason: &'static str,
    },
    /// Protected, except as a plain folder.
    Mixed {
        end: usize,
        reason: &'static str,
    },
    Around(&'static str),
    Ordinary,
}

const OBEYED: &str = "git obeys it";
const RUN: &str = "git runs it";
const MAKES_A_REPOSITORY: &str = "git takes the folder that holds it for a repository";

/// The first match from the left decides: it is the one that the others lie in.
fn look(path: &[u8]) -> Found {
    let (names, ends) = split(path);
    let mut around = None;
    for (place, name) in names.iter().enumerate() {
        if **name == *b".git" {
            return in_git(&names[place + 1..], &ends[place..]);
        }
        match at(&names, place) {
            Match::Protected { length, reason } => return Found::Protected { end: ends[place + length - 1], reason },
            Match::Around(reason) => around = around.or(Some(reason)),
            Match::No => {}
        }
    }
    match (names.last(), ends.last()) {
        // A bare repository in the midst of a project: with its own `config`, git runs what that says.
        (Some(name), Some(end)) if **name == *b"head" => Found::Mixed { end: *end, reason: MAKES_A_REPOSITORY },
        _ => around.map_or(Found::Ordinary, Found::Around),
    }
}

/// The plain names of a path, and where in it each ends.
fn split(path: &[u8]) -> (Vec<Cow<'_, [u8]>>, Vec<usize>) {
    let (mut names, mut ends) = (Vec::new(), Vec::new());
    let mut end = 0;
    for name in path.split(|byte| *byte == b'/') {
        end += name.len();
        if !name.is_empty() && name != b"." {
            names.push(names::plain(name));
            ends.push(end);
        }
        end += 1;
    }
    (names, ends)
}

/// `ends` begins with the end of `.git`, `names` with what follows it.
fn in_git(names: &[Cow<'_, [u8]>], ends: &[usize]) -> Found {
    match git::inside(names) {
        Inside::Data => Found::Ordinary,
        Inside::Around => Found::Around(OBEYED),
        Inside::Mixed => Found::Mixed { end: ends[names.len()], reason: OBEYED },
        Inside::Obeyed(length) => {
            let reason = if *names[length - 1] == *b"hooks" { RUN } else { OBEYED };
            Found::Protected { end: ends[length], reason }
        }
    }
}

enum Match {
    /// By so many names.
    Protected {
        length: usize,
        reason: &'static str,
    },
    /// The path ends where a pattern goes on.
    Around(&'static str),
    No,
}

/// What the table says of the names from `place` on.
fn at(names: &[Cow<'_, [u8]>], place: usize) -> Match {
    let name: &[u8] = &names[place];
    let following = &names[place + 1..];
    let mut around = Match::No;
    for pattern in INDEX.exact.get(name).into_iter().flatten() {
        if !pattern.rest.iter().zip(following).all(|(glob, name)| glob.matches(name)) {
            continue;
        }
        if pattern.rest.len() <= following.len() {
            return Match::Protected { length: 1 + pattern.rest.len(), reason: pattern.reason };
        }
        around = Match::Around(pattern.reason);
    }
    if let Some((_, reason)) = INDEX.starred.iter().find(|(glob, _)| glob.matches(name)) {
        return Match::Protected { length: 1, reason };
    }
    match INDEX.below.get(name) {
        Some((above, reason)) if names[..place].iter().any(|name| **name == **above) => {
            Match::Protected { length: 1, reason }
        }
        _ => around,
    }
}
