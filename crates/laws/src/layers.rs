//! Layers that hostile code wrote: folded, they are what the sandbox sees; and what is in them breaks no merge, no patch
//! and no rule about paths.

use std::collections::BTreeMap;

use arbitrary::Arbitrary;
use workspace::hostile::{Found, Sees, fold, patch, protected, text};

use crate::made_of;

#[derive(Arbitrary, Debug)]
struct Case {
    layers: Vec<Vec<(Vec<u8>, u8)>>,
    path: Vec<u8>,
    base: Vec<u8>,
    host: Vec<u8>,
    sandbox: Vec<u8>,
    modes: (u8, u8),
}

pub fn law(bytes: &[u8]) {
    let Some(Case { layers, path, base, host, sandbox, modes }) = made_of(bytes) else { return };
    views_agree(layers);
    paths_have_an_answer(&path);
    merges_lose_nothing(&base, &host, &sandbox);
    patches_are_written(&path, &base, &host, modes);
}

/// What a layer is to the kernel: a tree. Names are few, so that layers meet.
type Tree = BTreeMap<Vec<u8>, Found>;

fn tree(entries: Vec<(Vec<u8>, u8)>) -> Tree {
    let mut tree = Tree::new();
    for (names, kind) in entries.into_iter().take(12) {
        let names: Vec<&[u8]> = names.iter().take(4).map(|name| NAMES[usize::from(*name) % NAMES.len()]).collect();
        if names.is_empty() {
            continue;
        }
        let path = names.join(&b'/');
        let found = match kind % 4 {
            0 => Found::Whiteout,
            1 => Found::Folder { opaque: false },
            2 => Found::Folder { opaque: true },
            _ => Found::Thing,
        };
        let above = (1..names.len()).map(|length| names[..length].join(&b'/'));
        // On a disk, what has something in it is a folder.
        for folder in above {
            tree.entry(folder)
                .and_modify(|found| {
                    if !matches!(found, Found::Folder { .. }) {
                        *found = Found::Folder { opaque: false };
                    }
                })
                .or_insert(Found::Folder { opaque: false });
        }
        let holds = tree.keys().any(|known| is_below(known, &path));
        if !holds || matches!(found, Found::Folder { .. }) {
            tree.insert(path, found);
        }
    }
    tree
}

/// `a-` and `a0` are beside `a/`, on either side of the slash.
const NAMES: &[&[u8]] = &[b"a", b"a-", b"a0", b"b", b"\xff"];

fn is_below(path: &[u8], folder: &[u8]) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| rest.first() == Some(&b'/'))
}

/// As the kernel looks a path up: name by name, in the topmost layer that has it.
fn looked_up(layers: &[Tree], path: &[u8]) -> Sees {
    let ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at).chain([path.len()]);
    // The lowest layer that still counts; below it, the host.
    let (mut lowest, mut host) = (0, true);
    let mut sees = Sees::TheHosts;
    for end in ends {
        let here = &path[..end];
        if matches!(sees, Sees::Thing(_) | Sees::Nothing) {
            return Sees::Nothing;
        }
        let mut found = None;
        for (number, layer) in layers.iter().enumerate().rev().take(layers.len() - lowest) {
            match (layer.get(here), found) {
                (None, _) => {}
                (Some(Found::Folder { opaque }), _) => {
                    found = Some(Sees::Folder);
                    if *opaque {
                        (lowest, host) = (number, false);
                        break;
                    }
                }
                (Some(Found::Whiteout), None) => {
                    found = Some(Sees::Nothing);
                    break;
                }
                (Some(Found::Thing), None) => {
                    found = Some(Sees::Thing(number));
                    break;
                }
                // Under a folder: it ends what is merged.
                (Some(_), Some(_)) => {
                    (lowest, host) = (number + 1, false);
                    break;
                }
            }
        }
        sees = match found {
            Some(sees) => sees,
            None if host => Sees::TheHosts,
            None => Sees::Nothing,
        };
    }
    sees
}

fn views_agree(layers: Vec<Vec<(Vec<u8>, u8)>>) {
    let trees: Vec<Tree> = layers.into_iter().take(4).map(tree).collect();
    let lists: Vec<Vec<(Vec<u8>, Found)>> =
        trees.iter().map(|tree| tree.iter().map(|(path, found)| (path.clone(), *found)).collect()).collect();
    let view = fold(&lists);
    let known = trees.iter().flat_map(|tree| tree.keys());
    for path in known.flat_map(|path| [path.clone(), [path, &b"/a"[..]].concat(), [path, &b"0"[..]].concat()]) {
        assert_eq!(view.at(&path), looked_up(&trees, &path), "{:?} in {trees:?}", path.escape_ascii().to_string());
    }
}

fn paths_have_an_answer(path: &[u8]) {
    let other_case: Vec<u8> = path
        .iter()
        .map(|byte| if byte.is_ascii_lowercase() { byte.to_ascii_uppercase() } else { byte.to_ascii_lowercase() })
        .collect();
    for ask in [protected::protection, protected::protection_of_new_folder] {
        let (one, twin) = (ask(path), ask(&other_case));
        assert_eq!(one.as_ref().map(|one| one.reason), twin.as_ref().map(|twin| twin.reason), "case decides");
        if let Some(one) = &one {
            assert!(path.starts_with(&one.root) && !one.root.is_empty(), "the root is elsewhere");
            assert!(protected::is_named(path, one, std::slice::from_ref(&one.root)), "its root names it");
            assert!(!protected::is_named(path, one, &[Vec::new()]), "nothing names it");
            assert!(protected::is_around(path).is_some(), "it is around itself");
        }
    }
    assert_eq!(protected::is_around(path), protected::is_around(&other_case), "case decides");
}

fn merges_lose_nothing(base: &[u8], host: &[u8], sandbox: &[u8]) {
    // What one side alone changed is the other's as it is.
    if let Some(merged) = text::merge(base, base, sandbox) {
        assert_eq!(merged, sandbox);
    }
    if let Some(merged) = text::merge(base, host, base) {
        assert_eq!(merged, host);
    }
    assert_eq!(text::merge(base, host, sandbox), text::merge(base, sandbox, host), "sides are alike");
}

fn patches_are_written(path: &[u8], old: &[u8], new: &[u8], modes: (u8, u8)) {
    let mode = |mode: u8| [0o100_644, 0o100_755, 0o120_000][usize::from(mode) % 3];
    let side = |number, content| Some(patch::Side { path, mode: mode(number), content });
    let pairs = [(side(modes.0, old), side(modes.1, new)), (None, side(modes.1, new)), (side(modes.0, old), None)];
    for (old, new) in pairs {
        let mut out = Vec::new();
        patch::write(&patch::Patch { old, new }, &mut out);
        assert!(out.is_empty() || out.starts_with(b"diff --git ") && out.ends_with(b"\n"));
        let head = out.split(|byte| *byte == b'\n').next().unwrap_or_default();
        assert!(head.iter().all(|byte| (b' '..=b'~').contains(byte)), "the name in it commands a terminal");
    }
    let mut out = Vec::new();
    patch::write_unshown(Some(path), None, &mut out);
    assert!(out.iter().all(|byte| *byte == b'\n' || (b' '..=b'~').contains(byte)));
}
