//! Layers over real files: what a sandbox changed, looked at, taken or thrown away.
//!
//! A **layer** is a folder that holds what a sandbox changed and nothing else; layers over each other, and all over the
//! real files, are what the sandbox sees. A snapshot is a layer that nobody writes to any more; a fork is two sandboxes
//! over one. `session` makes layers for a run and looks at them afterwards, `layer` and `base` say what is different
//! from what was before, `changes` puts it into words, `gate` decides what may be taken, `commit` takes it.

mod apply;
mod base;
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
pub mod patch;
pub mod protected;
mod record;
pub mod remove;
mod renames;
mod session;
mod state;
mod store;
pub mod text;
mod workspaces;

pub use error::{Error, Result};
pub use workspaces::{Means, Run, Workspaces};
