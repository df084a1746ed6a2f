//! What is in the layers of one workspace, folded into one: the view that the sandbox has, as far as it differs from
//! the files below.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::Path;

use crate::error::{Result, cannot};
use crate::files::{Folder, LONGEST_PATH, Seen, ancestors, join};

/// Paths from the workspace on; those that are not here are the host's.
pub type View = BTreeMap<Vec<u8>, Entry>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub node: Node,
    pub seen: Seen,
    /// Which layer it is read from: for a folder, the earliest that has it.
    pub layer: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Node {
    Removed,
    /// Opaque: nothing of what is below it is seen.
    Folder {
        opaque: bool,
    },
    /// A file, a link, or something that is neither.
    Thing,
}

/// What the sandbox has at a path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum At<'a> {
    Here(&'a Entry),
    Gone,
    /// What the host has.
    Untouched,
}

pub fn at<'a>(view: &'a View, path: &[u8]) -> At<'a> {
    match view.get(path) {
        Some(Entry { node: Node::Removed, .. }) => return At::Gone,
        Some(entry) => return At::Here(entry),
        None => {}
    }
    let hides = |node| !matches!(node, Node::Folder { opaque: false });
    match ancestors(path).filter_map(|folder| view.get(folder)).any(|entry| hides(entry.node)) {
        true => At::Gone,
        false => At::Untouched,
    }
}

/// Everything at and below `path`.
pub fn within<'a, T>(map: &'a BTreeMap<Vec<u8>, T>, path: &[u8]) -> impl Iterator<Item = (&'a Vec<u8>, &'a T)> {
    let below = below(path);
    map.get_key_value(path).into_iter().chain(map.range(below))
}

/// All keys below `path`: those that begin with it and a slash, and a slash is followed by `0`.
fn below(path: &[u8]) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
    if path.is_empty() {
        return (Bound::Unbounded, Bound::Unbounded);
    }
    (Bound::Excluded([path, b"/"].concat()), Bound::Excluded([path, b"0"].concat()))
}

/// Folds layers into one view, the earliest first.
pub fn view(layers: &[(&Path, &Folder)]) -> Result<View> {
    let mut view = View::new();
    for (number, (path, layer)) in layers.iter().enumerate() {
        fold(&mut view, number, path, layer)?;
    }
    Ok(view)
}

fn fold(view: &mut View, number: usize, shown: &Path, layer: &Folder) -> Result<()> {
    let mut waiting = vec![Vec::new()];
    while let Some(path) = waiting.pop() {
        let look = || cannot("look into", shown.join(display(&path)));
        let folder = layer.below(&path).map_err(look())?;
        for name in folder.names().map_err(look())? {
            let path = join(&path, &name);
            let Some(seen) = folder.look_at(display(&name)).map_err(look())? else { continue };
            if seen.is_folder() {
                let opaque = layer
                    .below(&path)
                    .and_then(|folder| folder.attribute(c"user.overlay.opaque"))
                    .map_err(look())?
                    .is_some_and(|value| value == b"y");
                add_folder(view, &path, Entry { node: Node::Folder { opaque }, seen, layer: number });
                if path.len() <= LONGEST_PATH {
                    waiting.push(path);
                }
            } else {
                let node = if seen.is_whiteout() { Node::Removed } else { Node::Thing };
                add_thing(view, path, Entry { node, seen, layer: number });
            }
        }
    }
    Ok(())
}

pub(crate) fn add_thing(view: &mut View, path: Vec<u8>, entry: Entry) {
    clear_below(view, &path);
    view.insert(path, entry);
}

pub(crate) fn add_folder(view: &mut View, path: &[u8], mut entry: Entry) {
    match view.get(path).map(|earlier| (earlier.node, earlier.layer)) {
        Some((Node::Folder { opaque }, layer)) if entry.node == (Node::Folder { opaque: false }) => {
            entry.node = Node::Folder { opaque };
            entry.layer = layer;
        }
        // Over something that is no folder, and so nothing of what is below that can be seen.
        Some(_) => {
            clear_below(view, path);
            entry.node = Node::Folder { opaque: true };
        }
        None => {}
    }
    view.insert(path.to_owned(), entry);
}

fn clear_below(view: &mut View, path: &[u8]) {
    let gone: Vec<Vec<u8>> = view.range(below(path)).map(|(path, _)| path.clone()).collect();
    for path in gone {
        view.remove(&path);
    }
}

fn display(path: &[u8]) -> &std::ffi::OsStr {
    std::os::unix::ffi::OsStrExt::from_bytes(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(node: Node) -> Entry {
        let folder = Folder::open(Path::new("/")).expect("a root");
        Entry { node, seen: folder.seen().expect("it is there"), layer: 0 }
    }

    #[test]
    fn below_a_path_is_not_beside_it() {
        let view: View = ["a", "a-b", "a/b", "a/b/c", "a0", "ab"]
            .into_iter()
            .map(|path| (path.as_bytes().to_vec(), entry(Node::Thing)))
            .collect();
        let found: Vec<&[u8]> = within(&view, b"a").map(|(path, _)| path.as_slice()).collect();
        assert_eq!(found, [b"a".as_slice(), b"a/b", b"a/b/c"]);
    }

    #[test]
    fn what_lies_in_an_opaque_folder_is_gone_and_in_another_is_the_hosts() {
        let mut view = View::new();
        view.insert(b"o".to_vec(), entry(Node::Folder { opaque: true }));
        view.insert(b"o/new".to_vec(), entry(Node::Folder { opaque: false }));
        view.insert(b"f".to_vec(), entry(Node::Folder { opaque: false }));
        view.insert(b"gone".to_vec(), entry(Node::Removed));
        assert_eq!(at(&view, b"o/old"), At::Gone);
        assert_eq!(at(&view, b"o/new/old"), At::Gone);
        assert_eq!(at(&view, b"f/old"), At::Untouched);
        assert_eq!(at(&view, b"gone"), At::Gone);
        assert_eq!(at(&view, b"gone/below"), At::Gone);
        assert_eq!(at(&view, b"other"), At::Untouched);
    }
}
