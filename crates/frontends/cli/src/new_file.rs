//! A file that gets its name when it is whole. It takes nobody's place unasked, and is never written through a link.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, Mode, RenameFlags};
use rustix::io::Errno;

use crate::result_file::{NEW, folder_of};

/// Gone when it is dropped, unless it got its name.
pub struct NewFile {
    folder: OwnedFd,
    name: OsString,
    draft: OsString,
    file: File,
}

impl NewFile {
    pub fn beside(path: &Path, executable: bool) -> io::Result<NewFile> {
        let (folder, name) = folder_of(path)?;
        let draft = OsString::from(format!(".belljar-{}-artifact", std::process::id()));
        // Whoever runs belljar says by their mask who else may read it.
        let mode = Mode::from_raw_mode(if executable { 0o777 } else { 0o666 });
        let file = rustix::fs::openat(&folder, &draft, NEW, mode)?.into();
        Ok(NewFile { folder, name, draft, file })
    }

    pub fn is_taken(&self) -> bool {
        rustix::fs::statat(&self.folder, &self.name, AtFlags::SYMLINK_NOFOLLOW).is_ok()
    }

    /// `replace`: also where something has that name, which a link is as good as a file.
    pub fn name_it(self, replace: bool) -> io::Result<()> {
        let NewFile { folder, name, draft, file } = &self;
        file.sync_data()?;
        if replace {
            return Ok(rustix::fs::renameat(folder, draft, folder, name)?);
        }
        match rustix::fs::renameat_with(folder, draft, folder, name, RenameFlags::NOREPLACE) {
            // Where the filesystem has no such thing, a second name does the same: there is no linking over a file.
            Err(Errno::INVAL | Errno::NOSYS) => Ok(rustix::fs::linkat(folder, draft, folder, name, AtFlags::empty())?),
            named => Ok(named?),
        }
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        // Under this name there is something only if it has no other. It is our user's own, and harms nobody.
        match rustix::fs::unlinkat(&self.folder, &self.draft, AtFlags::empty()) {
            Ok(()) | Err(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn write(path: &Path, text: &str, executable: bool, replace: bool) -> io::Result<()> {
        let mut file = NewFile::beside(path, executable)?;
        file.write_all(text.as_bytes())?;
        file.name_it(replace)
    }

    #[test]
    fn it_takes_nobodys_place_unasked_and_follows_no_link() {
        let folder = std::env::temp_dir().join(format!("belljar-new-file-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let folder = std::fs::canonicalize(folder).expect("it is there");
        let (path, victim) = (folder.join("a"), folder.join("victim"));
        write(&path, "one", true, false).expect("nothing is there");
        assert_eq!(std::fs::metadata(&path).expect("it is there").permissions().mode() & 0o7100, 0o100);
        let error = write(&path, "two", false, false).expect_err("something is there");
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read_to_string(&path).expect("it is there"), "one");

        std::fs::write(&victim, "victim").expect("a file");
        std::fs::remove_file(&path).expect("it was there");
        symlink(&victim, &path).expect("a link");
        write(&path, "two", false, false).expect_err("a link is something too");
        write(&path, "three", false, true).expect("replaced");
        assert_eq!(std::fs::read_to_string(&victim).expect("it is there"), "victim");
        assert_eq!(std::fs::read_to_string(&path).expect("it is there"), "three");
        let names: Vec<_> =
            std::fs::read_dir(&folder).expect("a folder").flatten().map(|one| one.file_name()).collect();
        assert_eq!(names.len(), 2, "a draft was left: {names:?}");
        std::fs::remove_dir_all(folder).expect("it was there");
    }
}
