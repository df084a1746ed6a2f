//! What a change must not do unseen: everything that is shown apart, and everything that never leaves a sandbox.

use std::io;
use std::path::Path;

use crate::base::Kind;
use crate::changes::{Difference, Part, Version};
use crate::files::{Folder, LONGEST_PATH, ancestors, is_absent, join, split};
use crate::layer::{At, Node, at};
use crate::protected;

/// Why a change is only taken when it is named, and which path it is that must be named.
pub struct Protection {
    pub root: Vec<u8>,
    pub reason: String,
}

/// Paths of this very workspace that a program of the host acts on, though their names do not say so.
pub type Linked = Vec<(Vec<u8>, String)>;

/// Folders of the system's, which nobody but its owner writes to.
const SYSTEM: &[&[u8]] = &[b"/usr/", b"/bin/", b"/sbin/", b"/lib/", b"/lib64/", b"/nix/store/", b"/gnu/store/"];

pub fn protection(part: &Part, difference: &Difference<'_>) -> Option<Protection> {
    let path = difference.path;
    let is_folder = |version: Option<Version<'_>>| version.is_some_and(|version| version.kind() == Kind::Folder);
    let by_name = match (is_folder(difference.was), is_folder(difference.is)) {
        // A new mode of a folder hurts nobody.
        (true, true) => None,
        (false, true) if difference.was.is_none() => told(protected::protection_of_new_folder(path)),
        _ => told(protected::protection(path)).or_else(|| {
            protected::is_around(path).map(|reason| Protection { root: path.to_owned(), reason: reason.to_owned() })
        }),
    };
    whole_repository(part, difference)
        .or(by_name)
        .or_else(|| by_link(part, path))
        .or_else(|| bare_repository(part, path))
        .or_else(|| leads_out(part, difference).map(|reason| Protection { root: path.to_owned(), reason }))
}

/// A `.git` that is gone as a whole takes everything with it that was ever committed: data that git itself may remove
/// bit by bit is then no mere data.
fn whole_repository(part: &Part, difference: &Difference<'_>) -> Option<Protection> {
    if difference.is.is_some() {
        return None;
    }
    let is_gone = |folder: &[u8]| match at(&part.view, folder) {
        At::Gone => true,
        At::Here(entry) => !matches!(entry.node, Node::Folder { opaque: false }),
        At::Untouched => false,
    };
    let root =
        ancestors(difference.path).filter(|folder| protected::is_repository(folder)).find(|root| is_gone(root))?;
    Some(Protection { root: root.to_owned(), reason: "all of the repository is removed with it".to_owned() })
}

fn told(found: Option<protected::Protection>) -> Option<Protection> {
    found.map(|found| Protection { root: found.root, reason: found.reason.to_owned() })
}

/// Holes that a file may have, before it is rather a trap than a file.
const MOST_OF_NOTHING: u64 = 4 << 30;

/// Why it is never taken.
pub fn refusal(difference: &Difference<'_>) -> Option<&'static str> {
    let Version::In(_, seen) = difference.is? else { return None };
    match seen.kind {
        kind if kind.is_fifo() => Some("a pipe never leaves a sandbox"),
        kind if kind.is_socket() => Some("a socket never leaves a sandbox"),
        kind if kind.is_char_device() || kind.is_block_device() => Some("a device never leaves a sandbox"),
        kind if kind.is_file() && seen.size.saturating_sub(seen.bytes) > MOST_OF_NOTHING => {
            Some("it says to be far larger than what is in it: it would fill the disk with nothing")
        }
        _ if difference.path.len() > LONGEST_PATH => Some("its path is longer than programs can use"),
        _ => None,
    }
}

/// What the host's own files say is acted on: links at protected names, git's folder for hooks, and what its settings
/// include.
///
/// An error if it can't be told: what is not known to be harmless is not taken for it.
pub fn linked(host: &Folder, place: &Path) -> io::Result<Linked> {
    let mut found = Linked::new();
    let mut note = |folder: &[u8], name: &[u8]| -> io::Result<()> {
        let path = join(folder, name);
        if host.look(&path)?.is_some_and(|seen| seen.is_link())
            && let Some(root) = inside(place, folder, &host.link(&path)?)
        {
            found.push((root, format!("`{}` leads to it", String::from_utf8_lossy(&path))));
        }
        Ok(())
    };
    let names = |folder: &[u8]| -> io::Result<Vec<Vec<u8>>> {
        Ok(unless_none(host.below(folder).and_then(|folder| folder.names()))?.unwrap_or_default())
    };
    for name in names(b"")? {
        if protected::protection(&name).is_some() {
            note(b"", &name)?;
        }
        // `.github/workflows` and its like; `.git/hooks`.
        if protected::is_around(&name).is_some() {
            names(&name)?.iter().try_for_each(|below| note(&name, below))?;
        }
    }
    // One by one, they are often links to scripts of the project.
    names(b".git/hooks")?.iter().try_for_each(|hook| note(b".git/hooks", hook))?;
    const LARGEST_CONFIG: u64 = 16 << 20;
    let config = match unless_none(host.read(b".git/config", LARGEST_CONFIG))? {
        Some(Some(config)) => config,
        Some(None) => return Err(io::Error::other("`.git/config` is no file of a usual size")),
        None => Vec::new(),
    };
    for line in config.split(|byte| *byte == b'\n') {
        // A section may begin in the same line.
        let start = line.iter().position(|byte| *byte == b']').map_or(0, |at| at + 1);
        let line = line[start..].trim_ascii();
        let Some(at) = line.iter().position(|byte| *byte == b'=') else { continue };
        let (name, value) = (line[..at].trim_ascii(), line[at + 1..].trim_ascii());
        let value = value.strip_prefix(b"\"").and_then(|value| value.strip_suffix(b"\"")).unwrap_or(value);
        if name.eq_ignore_ascii_case(b"hookspath") {
            found.extend(inside(place, b"", value).map(|path| (path, "git runs it as a hook".to_owned())));
        }
        if name.eq_ignore_ascii_case(b"path") {
            found.extend(inside(place, b".git", value).map(|path| (path, "git obeys it: it is included".to_owned())));
        }
    }
    Ok(found)
}

/// Nothing where nothing is, and where whoever applies may not look: then their programs may not either.
fn unless_none<T>(read: io::Result<T>) -> io::Result<Option<T>> {
    match read {
        Ok(found) => Ok(Some(found)),
        Err(error) if is_absent(&error) || error.kind() == io::ErrorKind::PermissionDenied => Ok(None),
        Err(error) => Err(error),
    }
}

/// Where a target leads from a folder of the workspace, if it stays in it.
fn inside(place: &Path, folder: &[u8], target: &[u8]) -> Option<Vec<u8>> {
    let place = std::os::unix::ffi::OsStrExt::as_bytes(place.as_os_str());
    match target.strip_prefix(place) {
        Some([]) => Some(Vec::new()),
        Some(rest) if rest[0] == b'/' => beneath(b"", &rest[1..]),
        _ => beneath(folder, target),
    }
}

fn by_link(part: &Part, path: &[u8]) -> Option<Protection> {
    let around = |root: &[u8]| path == root || ancestors(path).any(|folder| folder == root);
    let (root, reason) = part.linked.iter().find(|(root, _)| around(root))?;
    Some(Protection { root: root.clone(), reason: reason.clone() })
}

/// A folder with `HEAD` and `objects` in it is a repository to git, whatever it is called, and its settings and hooks
/// are run by whoever calls git in it.
fn bare_repository(part: &Part, path: &[u8]) -> Option<Protection> {
    let (parent, name) = split(path);
    let repository = match name {
        b"config" | b"config.worktree" | b"commondir" => parent,
        b"HEAD" => parent,
        _ => ancestors(path).find(|folder| split(folder).1 == b"hooks").map(|folder| split(folder).0)?,
    };
    if ancestors(path).chain([path]).any(|folder| split(folder).1 == b".git") {
        return None;
    }
    let has = |name: &[u8]| {
        let path = join(repository, name);
        match at(&part.view, &path) {
            At::Here(_) => true,
            At::Gone => false,
            // What can't be looked at may be there.
            At::Untouched => !matches!(part.host.look(&path), Ok(None)),
        }
    };
    let is_one = has(b"HEAD") && (has(b"objects") || has(b"commondir")) && (has(b"refs") || has(b"commondir"));
    is_one.then(|| Protection {
        root: path.to_owned(),
        reason: "its folder is a repository to git, which runs what it says".to_owned(),
    })
}

/// A link to somewhere else: whoever writes through it later writes there.
fn leads_out(part: &Part, difference: &Difference<'_>) -> Option<String> {
    let is = difference.is?;
    if is.kind() != Kind::Link {
        return None;
    }
    let Ok(Some(target)) = is.contents(difference.path, u64::MAX) else {
        return Some("nobody can tell where this link leads".to_owned());
    };
    let stays = inside(&part.place, split(difference.path).0, &target).is_some();
    let of_the_system = || {
        SYSTEM.iter().any(|root| target.starts_with(root))
            && !target.split(|byte| *byte == b'/').any(|part| part == b"..")
            || target == b"/dev/null"
    };
    if stays || of_the_system() {
        return None;
    }
    Some(format!("it leads out of the workspace, to `{}`", String::from_utf8_lossy(&target)))
}

/// Where a relative target leads from a folder of the workspace; nothing if it leaves it, or could by a detour: up
/// again from something that may itself be a link.
fn beneath(folder: &[u8], target: &[u8]) -> Option<Vec<u8>> {
    if target.starts_with(b"/") {
        return None;
    }
    let mut path: Vec<&[u8]> = folder.split(|byte| *byte == b'/').filter(|part| !part.is_empty()).collect();
    let mut down = false;
    for part in target.split(|byte| *byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." if down => return None,
            b".." => {
                path.pop()?;
            }
            name => {
                down = true;
                path.push(name);
            }
        }
    }
    Some(path.join(&b'/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_stays_beneath_or_is_refused() {
        let cases: &[(&str, &str, Option<&str>)] = &[
            ("", "a", Some("a")),
            ("x/y", "../a", Some("x/a")),
            ("x/y", "../../a", Some("a")),
            ("x/y", "../..", Some("")),
            ("x/y", "../../..", None),
            ("", "..", None),
            ("", "../a", None),
            ("x", "a/../b", None),
            ("x", "./a//b/.", Some("x/a/b")),
            ("", "/etc", None),
        ];
        for (folder, target, path) in cases {
            let found = beneath(folder.as_bytes(), target.as_bytes());
            assert_eq!(found.as_deref(), path.map(str::as_bytes), "{folder} {target}");
        }
    }
}
