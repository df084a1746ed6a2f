//! What a kept sandbox would find at a path: a version of its own, what the host has, or nothing.

use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use model::Trouble;

use crate::error::{Result, cannot};
use crate::layer::{self, At};
use crate::record::Record;
use crate::session::{open_layers, view_of};
use crate::store::Store;

#[derive(Debug)]
pub enum Sight {
    /// A file of its own.
    File(File),
    /// The host's, whatever that is.
    Hosts,
    Gone,
    /// Something of its own that is no file.
    Other,
}

/// A kept sandbox, looked up once to look at many paths.
pub struct KeptView {
    store: Store,
    record: Record,
}

impl KeptView {
    pub(crate) fn new(store: Store, record: Record) -> KeptView {
        KeptView { store, record }
    }

    /// Links are not followed: what one leads to is only known inside.
    pub fn sight(&self, path: &Path) -> std::result::Result<Sight, Trouble> {
        Ok(at(&self.store, &self.record, path)?)
    }
}

fn at(store: &Store, record: &Record, path: &Path) -> Result<Sight> {
    for (number, workspace) in record.workspaces.iter().enumerate() {
        let Ok(below) = path.strip_prefix(workspace.path()) else { continue };
        let below = below.as_os_str().as_bytes();
        let layers = open_layers(store, record, number)?;
        let view = view_of(store, record, number, &layers)?;
        return Ok(match layer::at(&view, below) {
            At::Untouched => Sight::Hosts,
            At::Gone => Sight::Gone,
            At::Here(entry) if !entry.seen.is_file() => Sight::Other,
            At::Here(entry) => match layers.get(entry.layer) {
                None => Sight::Other,
                Some((folder, layer)) => {
                    Sight::File(layer.open_file(below).map(File::from).map_err(cannot("open", folder))?)
                }
            },
        });
    }
    Ok(Sight::Hosts)
}
