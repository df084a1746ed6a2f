//! The program that runs modules: beside belljar, or where such programs are installed, and nowhere else. Not by a
//! variable: whoever set it could have another program stand between a module and the walls.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use model::{Access, Origin, Place};

use crate::failure::Failure;

pub const NAME: &str = "belljar-wasm";
/// From the folder of belljar itself.
const INSTALLED: &str = "../libexec/belljar";

#[derive(Clone, Debug)]
pub struct Worker {
    pub place: Place,
    /// Tells one build from another.
    pub identity: String,
}

impl Worker {
    pub fn find() -> Result<Worker, Failure> {
        let folders = folders();
        let found = folders.iter().find_map(|folder| Worker::at(&folder.join(NAME)));
        found.ok_or_else(|| {
            let folders: Vec<String> = folders.iter().map(|folder| format!("`{}`", folder.display())).collect();
            Failure::setup(
                format!("the program that runs modules, `{NAME}`, is not in {}", folders.join(" or ")),
                "build it with `cargo xtask release`, or `cargo build --release --package belljar-wasm-worker`, and put it beside belljar",
            )
        })
    }

    fn at(path: &Path) -> Option<Worker> {
        let path = sys::paths::real(path).ok()?;
        let stat = std::fs::metadata(&path).ok().filter(std::fs::Metadata::is_file)?;
        let identity = format!("{}.{}.{}.{}", stat.len(), stat.mtime(), stat.mtime_nsec(), stat.ino());
        Some(Worker { place: seen(path)?, identity })
    }
}

/// Where programs and interpreters of ours can be, the nearest first.
pub fn folders() -> Vec<PathBuf> {
    let Ok(own) = std::env::current_exe() else { return Vec::new() };
    let Some(folder) = own.parent() else { return Vec::new() };
    vec![folder.to_owned(), by_letter(folder)]
}

fn by_letter(folder: &Path) -> PathBuf {
    match INSTALLED.strip_prefix("../") {
        Some(rest) => folder.parent().unwrap_or(folder).join(rest),
        None => folder.join(INSTALLED),
    }
}

/// Something of ours that a sandbox of ours needs to see.
pub fn seen(path: PathBuf) -> Option<Place> {
    let stat = std::fs::symlink_metadata(&path).ok()?;
    let owner = (stat.uid(), stat.gid());
    Some(Place { path, access: Access::Read, folder: stat.is_dir(), origin: Origin::Asked, owner })
}
