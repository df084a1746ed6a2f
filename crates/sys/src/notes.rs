//! Small facts that take long to find out, kept from one run to the next. Only in folders that are ours alone: what others
//! could have written is as good as not there.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// No note is longer.
const LONGEST: u64 = 1 << 20;

/// What was kept under a name, if it is there, ours, and not older than that.
pub fn read(folder: &Path, name: &str, at_most: Duration) -> Option<Vec<u8>> {
    let own = rustix::process::geteuid().as_raw();
    let ours = |stat: &fs::Metadata| stat.uid() == own && stat.mode() & 0o022 == 0;
    let flags = rustix::fs::OFlags::NOFOLLOW.bits();
    let around = fs::symlink_metadata(folder).ok()?;
    let mut file = File::options().read(true).custom_flags(i32::try_from(flags).ok()?).open(folder.join(name)).ok()?;
    let stat = file.metadata().ok()?;
    let young = SystemTime::now().duration_since(stat.modified().ok()?).is_ok_and(|age| age <= at_most);
    if !(around.is_dir() && ours(&around) && stat.is_file() && ours(&stat) && young && stat.len() <= LONGEST) {
        return None;
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// Keeps it, in place of what was kept before. Made anew and then put in place: nobody reads half of it.
pub fn write(folder: &Path, name: &str, bytes: &[u8]) -> io::Result<PathBuf> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let beside = folder.join(format!("{name}.{}.new", std::process::id()));
    let written = || -> io::Result<()> {
        File::options().write(true).create_new(true).mode(0o600).open(&beside)?.write_all(bytes)
    };
    match written() {
        // Of one that had our number and was ended.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            fs::remove_file(&beside)?;
            written()?;
        }
        other => other?,
    }
    let path = folder.join(name);
    fs::rename(&beside, &path)?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn only_what_is_ours_alone_is_read() -> io::Result<()> {
        let folder = std::env::temp_dir().join(format!("belljar-notes-{}", std::process::id()));
        let hour = Duration::from_secs(3600);
        assert_eq!(read(&folder, "a", hour), None);
        let path = write(&folder, "a", b"one")?;
        write(&folder, "a", b"two")?;
        assert_eq!(read(&folder, "a", hour).as_deref(), Some(&b"two"[..]));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o622))?;
        assert_eq!(read(&folder, "a", hour), None);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o770))?;
        assert_eq!(read(&folder, "a", hour), None);
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o700))?;
        std::os::unix::fs::symlink(&path, folder.join("b"))?;
        assert_eq!(read(&folder, "b", hour), None);
        fs::remove_dir_all(&folder)
    }
}
