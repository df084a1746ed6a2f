//! What in a `.git` folder git only reads as data. All else there it obeys, so all else is protected: a list of the
//! dangerous would miss what the next version of git learns to obey.

use std::borrow::Cow;

/// What a path is to git, below the `.git` folder that its names are counted from.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Inside {
    /// It and all below it are data.
    Data,
    /// Data, with something in its midst that git obeys.
    Around,
    /// A folder of both. As a file or a link it decides what git obeys.
    Mixed,
    /// Git obeys what the first so many names lead to.
    Obeyed(usize),
}

/// Files, each also with `.lock` behind it.
const FILES: &[&[u8]] = &[
    b"head", b"orig_head", b"fetch_head", b"merge_head", b"merge_msg", b"merge_mode", b"cherry_pick_head",
    b"revert_head", b"rebase_head", b"auto_merge", b"index", b"packed-refs", b"commit_editmsg", b"tag_editmsg",
    b"squash_msg", b"shallow", b"description", b"gc.log", b"gc.pid",
];
const FOLDERS: &[&[u8]] = &[b"objects", b"refs", b"logs"];
/// Of one work tree among several: its other files say where the repository is.
const WORKTREE_FILES: &[&[u8]] = &[b"head", b"orig_head", b"index", b"locked"];
const WORKTREE_FOLDERS: &[&[u8]] = &[b"refs", b"logs"];
/// Where the name of a submodule ends, besides at data.
const OBEYED: &[&[u8]] = &[
    b"hooks", b"config", b"config.worktree", b"info", b"modules", b"worktrees", b"branches", b"remotes", b"commondir",
    b"gitdir", b"rebase-merge", b"rebase-apply", b"sequencer", b"lfs",
];
/// What git itself makes below `refs`.
const KINDS_OF_REFS: &[&[u8]] =
    &[b"heads", b"tags", b"remotes", b"notes", b"stash", b"bisect", b"original", b"replace", b"worktree", b"rewritten"];

/// `names` are those after `.git`, in their plain spelling.
pub(super) fn inside(names: &[Cow<'_, [u8]>]) -> Inside {
    let mut start = 0;
    let mut is_submodule = false;
    loop {
        let here = &names[start..];
        match here.first().map(AsRef::as_ref) {
            Some(b"modules") => {
                // A submodule's name may have slashes: the first entry of a repository ends it.
                let Some(end) = (2..here.len()).find(|place| is_entry(&here[*place])) else { return Inside::Mixed };
                start += end;
                is_submodule = true;
            }
            _ => match repository(here, is_submodule) {
                Inside::Obeyed(length) => return Inside::Obeyed(start + length),
                // No object, ref or log has this name: it is a repository put where nobody looks.
                Inside::Data if let Some(place) = here.iter().position(|name| **name == *b".git") => {
                    start += place + 1;
                    is_submodule = false;
                }
                found => return found,
            },
        }
    }
}

/// The same for names that lead to no submodule.
fn repository(names: &[Cow<'_, [u8]>], is_submodule: bool) -> Inside {
    let mut rest = names.iter().map(AsRef::as_ref);
    let Some(first) = rest.next() else { return Inside::Mixed };
    let (second, third) = (rest.next(), rest.next());
    match first {
        b"objects" => objects(names, is_submodule),
        // A submodule called `vendor/logs` would have its hooks below what looks like the logs of `vendor`.
        b"refs" | b"logs" if is_submodule => match second {
            None => Inside::Around,
            Some(second) if first == b"refs" && KINDS_OF_REFS.contains(&second) => Inside::Data,
            Some(b"head" | b"refs") if first == b"logs" => Inside::Data,
            Some(_) => Inside::Obeyed(2),
        },
        b"refs" | b"logs" => Inside::Data,
        b"info" => match second {
            None => Inside::Mixed,
            Some(second) if names.len() == 2 && is_file(second, &[b"exclude", b"refs"]) => Inside::Data,
            Some(_) => Inside::Obeyed(2),
        },
        b"worktrees" => match third {
            None => Inside::Mixed,
            Some(third) if WORKTREE_FOLDERS.contains(&third) => Inside::Data,
            Some(third) if names.len() == 3 && is_file(third, WORKTREE_FILES) => Inside::Data,
            Some(_) => Inside::Obeyed(3),
        },
        _ if names.len() == 1 && (is_file(first, FILES) || first.starts_with(b"bisect_")) => Inside::Data,
        _ => Inside::Obeyed(1),
    }
}

fn objects(names: &[Cow<'_, [u8]>], is_submodule: bool) -> Inside {
    match names.get(1).map(AsRef::as_ref) {
        None => Inside::Around,
        Some(b"info") => match names.get(2).map(AsRef::as_ref) {
            None => Inside::Around,
            // Other folders of objects, which are read with the rights of whoever runs git.
            Some(third) if is_file(third, &[b"alternates", b"http-alternates"]) => Inside::Obeyed(3),
            Some(_) => Inside::Data,
        },
        // As with `refs`: a submodule may be called `vendor/objects`.
        Some(second) if is_submodule => {
            let is_fan = second.len() == 2 && second.iter().all(u8::is_ascii_hexdigit);
            let is_known =
                is_fan || second == b"pack" || second.starts_with(b"tmp_") || second.starts_with(b"incoming-");
            if is_known && names.len() <= 3 { Inside::Data } else { Inside::Obeyed(2) }
        }
        Some(_) => Inside::Data,
    }
}

fn is_entry(name: &[u8]) -> bool {
    OBEYED.contains(&name) || FOLDERS.contains(&name) || is_file(name, FILES) || name.starts_with(b"bisect_")
}

fn is_file(name: &[u8], files: &[&[u8]]) -> bool {
    files.contains(&name.strip_suffix(b".lock").unwrap_or(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(path: &str) -> Inside {
        let names: Vec<Cow<'_, [u8]>> =
            path.split('/').filter(|name| !name.is_empty()).map(|name| name.as_bytes().into()).collect();
        inside(&names)
    }

    #[test]
    fn what_git_reads_as_data_is_data() {
        for path in [
            "head", "head.lock", "index", "index.lock", "packed-refs", "bisect_log", "refs/heads/config",
            "refs/heads/hooks/x", "logs/refs/heads/main", "objects/ab/cdef", "objects/pack/pack-1.idx",
            "objects/info/packs", "objects/info/commit-graphs/chain", "info/exclude", "info/refs", "worktrees/x/head",
            "worktrees/x/logs/head", "worktrees/x/locked",
        ] {
            assert_eq!(of(path), Inside::Data, "{path}");
        }
    }

    #[test]
    fn all_else_is_obeyed_from_the_name_on_that_makes_it_so() {
        for (path, length) in [
            ("hooks", 1),
            ("hooks/pre-commit", 1),
            ("config", 1),
            ("config.lock", 1),
            ("config.worktree", 1),
            ("commondir", 1),
            ("head/x", 1),
            ("what-git-learns-next/year", 1),
            ("rebase-merge/git-rebase-todo", 1),
            ("rebase-apply/patch", 1),
            ("sequencer/todo", 1),
            ("info/attributes", 2),
            ("info/exclude/x", 2),
            ("objects/info/alternates", 3),
            ("worktrees/x/gitdir", 3),
            ("worktrees/x/config.worktree", 3),
            ("worktrees/x/head/y", 3),
        ] {
            assert_eq!(of(path), Inside::Obeyed(length), "{path}");
        }
    }

    #[test]
    fn a_submodule_is_a_repository_whatever_its_name() {
        for (path, expected) in [
            ("modules", Inside::Mixed),
            ("modules/a", Inside::Mixed),
            ("modules/a/b", Inside::Mixed),
            ("modules/a/head", Inside::Data),
            ("modules/a/refs/heads/config", Inside::Data),
            ("modules/a/b/c/objects/ab/cdef", Inside::Data),
            ("modules/a/config", Inside::Obeyed(3)),
            ("modules/a/b/hooks/post-checkout", Inside::Obeyed(4)),
            ("modules/a/modules/b/hooks/x", Inside::Obeyed(5)),
            ("modules/a/modules/b/index", Inside::Data),
            ("modules/a/info/attributes", Inside::Obeyed(4)),
            ("modules/a/objects/info/alternates", Inside::Obeyed(5)),
        ] {
            assert_eq!(of(path), expected, "{path}");
        }
    }

    #[test]
    fn a_submodule_that_is_called_like_data_hides_no_hook() {
        for name in ["objects", "refs", "logs", "index", "worktrees", "modules", "info", "objects/thing", "logs/x"] {
            for file in ["hooks/post-checkout", "config"] {
                let path = format!("modules/vendor/{name}/{file}");
                assert!(matches!(of(&path), Inside::Obeyed(_) | Inside::Mixed), "{path} is {:?}", of(&path));
            }
        }
    }

    #[test]
    fn a_repository_among_the_data_is_a_repository() {
        assert_eq!(of("objects/x/.git/hooks/y"), Inside::Obeyed(4));
        assert_eq!(of("refs/.git"), Inside::Mixed);
        assert_eq!(of("refs/.git/head"), Inside::Data);
    }

    #[test]
    fn folders_around_what_is_obeyed_are_known() {
        for path in ["objects", "objects/info", "modules/a/refs", "modules/a/logs"] {
            assert_eq!(of(path), Inside::Around, "{path}");
        }
        for path in ["", "info", "modules", "worktrees", "worktrees/x"] {
            assert_eq!(of(path), Inside::Mixed, "{path}");
        }
    }
}
