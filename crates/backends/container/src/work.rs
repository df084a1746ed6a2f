//! Folders that the kernel works in while it lays changes over files.
//!
//! An engine that is root leaves things of root's in them, which an ordinary user can't remove; the next mount does. So
//! they are kept beside the layers and used again, one for each run at a time.

use std::collections::BTreeSet;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// In the state folder.
const NAME: &str = "engine-work";
const FREE: &str = "free-";
const USED: &str = "used-";

/// Beside the folder of layers that this one is in.
pub fn beside(layer: &Path) -> Option<PathBuf> {
    layer.ancestors().nth(3).map(|state| state.join(NAME))
}

/// Where a run that is called `id` has its own.
pub fn of_run(base: &Path, id: &str) -> PathBuf {
    base.join(format!("{USED}{id}"))
}

/// Takes one that is free, or makes one, with a folder for each of `count` layers.
pub fn take(base: &Path, id: &str, count: usize) -> io::Result<PathBuf> {
    let own = of_run(base, id);
    let make = |path: &Path| match std::fs::DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made,
    };
    make(base)?;
    for entry in std::fs::read_dir(base)? {
        let entry = entry?;
        // Of all who try, one gets it.
        if entry.file_name().as_encoded_bytes().starts_with(FREE.as_bytes())
            && std::fs::rename(entry.path(), &own).is_ok()
        {
            break;
        }
    }
    make(&own)?;
    (0..count).try_for_each(|number| make(&own.join(number.to_string())))?;
    Ok(own)
}

/// For the next run. Nothing of this one is mounted any more.
pub fn give_back(own: &Path) -> io::Result<()> {
    let name = own.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let free = own.with_file_name(format!("{FREE}{}", name.trim_start_matches(USED)));
    match std::fs::rename(own, free) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        renamed => renamed,
    }
}

/// Those of runs that are no more. Only of runs that began some time ago: one has its folder before its container.
pub fn recover(base: &Path, live: &BTreeSet<String>, older_than: Duration) -> io::Result<()> {
    for entry in std::fs::read_dir(base)? {
        let entry = entry?;
        let name = entry.file_name();
        let id = name.to_str().and_then(|name| name.strip_prefix(USED));
        let taken = SystemTime::UNIX_EPOCH + Duration::from_secs(entry.metadata()?.ctime().unsigned_abs());
        let age = SystemTime::now().duration_since(taken).unwrap_or_default();
        if age >= older_than && id.is_some_and(|id| !live.contains(id)) {
            give_back(&entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_run_has_its_own_and_it_is_used_again() -> io::Result<()> {
        let base = std::env::temp_dir().join(format!("belljar-work-{}", std::process::id())).join(NAME);
        std::fs::create_dir_all(&base)?;
        let (one, two) = (take(&base, "a", 2)?, take(&base, "b", 1)?);
        assert_ne!(one, two);
        assert!(one.join("1").is_dir());
        give_back(&one)?;
        assert_eq!(take(&base, "c", 1)?, of_run(&base, "c"));
        assert!(of_run(&base, "c").join("1").is_dir(), "it is the first one again");
        recover(&base, &BTreeSet::from(["b".to_owned()]), Duration::from_secs(3600))?;
        assert!(of_run(&base, "c").exists(), "it may only just have begun");
        recover(&base, &BTreeSet::from(["b".to_owned()]), Duration::ZERO)?;
        assert!(two.is_dir() && !of_run(&base, "c").exists());
        std::fs::remove_dir_all(base.parent().unwrap_or(&base))
    }
}
