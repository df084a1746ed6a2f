//! Layers over real files: what a sandbox changed, looked at, taken or thrown away.
//!
//! A **layer** is a folder that holds what a sandbox changed and nothing else; layers over each other, and all over the
//! real files, are what the sandbox sees. A snapshot is a layer that nobody writes to any more; a fork is two sandboxes
//! over one. `session` makes layers for a run and looks at them afterwards, `layer` and `base` say what is different
//! from what was before, `changes` puts it into words, `gate` decides what may be taken, `commit` takes it,
//! `artifacts` collects files that a run was asked to hand over.

mod apply;
pub mod artifacts;
mod asked;
mod base;
mod beside;
mod blobs;
mod changes;
mod commit;
mod copied;
mod error;
mod files;
mod gate;
mod guard;
mod keep;
mod layer;
mod manifest;
pub mod patch;
pub mod protected;
mod record;
pub mod remove;
mod renames;
mod session;
mod sight;
mod state;
mod store;
pub mod text;
mod visitors;
mod workspaces;

/// What judges other people's bytes. Not for use: for those who try it with all kinds of bytes.
#[doc(hidden)]
pub mod hostile {
    use crate::files::Seen;
    use crate::layer::{At, Entry, Node, View, add_folder, add_thing, at};
    pub use crate::{patch, protected, text};

    /// What a layer has at a path.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Found {
        Whiteout,
        Folder { opaque: bool },
        Thing,
    }

    /// What the sandbox has at a path.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Sees {
        Folder,
        /// Of this layer.
        Thing(usize),
        Nothing,
        TheHosts,
    }

    /// Layers folded as they are read from disk: each a list of paths with folders before what is in them.
    pub struct Folded(View);

    pub fn fold(layers: &[Vec<(Vec<u8>, Found)>]) -> Folded {
        let mut view = View::new();
        for (layer, entries) in layers.iter().enumerate() {
            for (path, found) in entries {
                let entry = |node| Entry { node, seen: Seen::nothing(), layer };
                match found {
                    Found::Whiteout => add_thing(&mut view, path.clone(), entry(Node::Removed)),
                    Found::Thing => add_thing(&mut view, path.clone(), entry(Node::Thing)),
                    Found::Folder { opaque } => add_folder(&mut view, path, entry(Node::Folder { opaque: *opaque })),
                }
            }
        }
        Folded(view)
    }

    impl Folded {
        pub fn at(&self, path: &[u8]) -> Sees {
            match at(&self.0, path) {
                At::Gone => Sees::Nothing,
                At::Untouched => Sees::TheHosts,
                At::Here(Entry { node: Node::Thing, layer, .. }) => Sees::Thing(*layer),
                At::Here(_) => Sees::Folder,
            }
        }
    }
}

pub use error::{Error, Result};
pub use sight::{KeptView, Sight};
pub use store::new_id;
pub use workspaces::{Means, Run, Workspaces, given_state, state_folder, state_lies_in};
