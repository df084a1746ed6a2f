//! Where a path leads, and small files, with as few calls as can be: a start asks for dozens of both.

use std::collections::HashSet;
use std::ffi::{CStr, CString, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{Mode, OFlags};

/// As `std::fs::canonicalize`, which has the C library allocate each answer: in musl that is a mapping made, touched
/// and taken away again, dearer than the look itself.
pub fn real(path: &Path) -> io::Result<PathBuf> {
    let name = CString::new(path.as_os_str().as_bytes())?;
    let mut buffer = [0u8; libc::PATH_MAX as usize];
    // SAFETY: `name` is terminated and outlives the call; realpath(3) writes at most PATH_MAX bytes to `buffer`.
    let found = unsafe { libc::realpath(name.as_ptr(), buffer.as_mut_ptr().cast()) };
    if found.is_null() {
        let error = io::Error::last_os_error();
        // A C library may know longer ones than fit here.
        return if error.raw_os_error() == Some(libc::ENAMETOOLONG) { std::fs::canonicalize(path) } else { Err(error) };
    }
    let real = CStr::from_bytes_until_nul(&buffer).map_err(|_| io::ErrorKind::InvalidData)?;
    Ok(PathBuf::from(OsString::from_vec(real.to_bytes().to_vec())))
}

/// Where we are. The kernel tells it without links, so it need only be seen that it leads here: somebody may have put something else
/// there, and we may have been locked out.
pub fn here() -> io::Result<PathBuf> {
    let path = std::env::current_dir()?;
    let place = |path: &Path| rustix::fs::stat(path).map(|stat| (stat.st_dev, stat.st_ino));
    match (place(&path), place(Path::new("."))) {
        (Ok(there), Ok(here)) if there == here && path.is_absolute() => Ok(path),
        _ => real(&path),
    }
}

/// Where paths lead, for somebody who asks for many of one neighbourhood at once: what was no link is not looked at again.
#[derive(Default)]
pub struct Neighbourhood {
    no_links: HashSet<PathBuf>,
}

impl Neighbourhood {
    /// As `real`.
    pub fn real(&mut self, path: &Path) -> io::Result<PathBuf> {
        let plain = path.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
        if !plain || !path.is_absolute() || path.as_os_str().as_bytes().ends_with(b"/") {
            return real(path);
        }
        let mut found = PathBuf::new();
        for part in path.components() {
            found.push(part);
            if part == Component::RootDir || self.no_links.contains(&found) {
                continue;
            }
            match rustix::fs::readlink(&found, Vec::new()) {
                // Links are few: these are followed from the beginning.
                Ok(_) => return real(path),
                Err(rustix::io::Errno::INVAL) => drop(self.no_links.insert(found.clone())),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(found)
    }
}

/// The whole of a file of /proc that is short: such a file says no size, and would be read in ever larger parts.
pub fn read_short(path: &Path) -> io::Result<Vec<u8>> {
    const FIRST: usize = 2048;
    let file = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    let mut bytes = vec![0; FIRST];
    let mut filled = 0;
    loop {
        match rustix::io::read(&file, &mut bytes[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        if filled == bytes.len() {
            bytes.resize(filled * 2, 0);
        }
    }
    bytes.truncate(filled);
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_where_the_standard_library_says() {
        let none = Path::new("/proc/self/there-is-no-such-file");
        for path in ["/", "/proc/self/exe", "/bin/sh", "/usr/../usr/./bin", ".", "Cargo.toml", ""] {
            let path = Path::new(path);
            assert_eq!(real(path).ok(), std::fs::canonicalize(path).ok(), "{}", path.display());
        }
        assert_eq!(real(none).map_err(|error| error.kind()), Err(io::ErrorKind::NotFound));
        assert!(real(Path::new("a\0b")).is_err());
        let long = "x/../".repeat(2000);
        assert_eq!(real(Path::new(&long)).is_ok(), std::fs::canonicalize(&long).is_ok());
    }

    #[test]
    fn we_are_where_the_standard_library_says() -> io::Result<()> {
        assert_eq!(here()?, std::fs::canonicalize(".")?);
        Ok(())
    }

    #[test]
    fn neighbours_lead_where_the_standard_library_says() {
        let mut around = Neighbourhood::default();
        for _ in 0..2 {
            for path in [
                "/", "/proc/self/exe", "/proc/1", "/bin/sh", "/usr/bin", "/usr/bin/env", "/usr/bin/env/", "/usr/bin/",
                "/usr/bin/env/x", "/usr/../usr/./bin", "/usr/share/there-is-no-such-file", ".", "",
            ] {
                let path = Path::new(path);
                let (ours, theirs) = (around.real(path), std::fs::canonicalize(path));
                let kind = |error: io::Error| error.kind();
                assert_eq!(ours.map_err(kind), theirs.map_err(kind), "{}", path.display());
            }
        }
    }

    #[test]
    fn short_files_are_read_whole() -> io::Result<()> {
        for path in ["/proc/self/cgroup", "/proc/self/mountinfo", "/proc/self/maps", "/proc/self/uid_map"] {
            let (ours, theirs) = (read_short(Path::new(path))?, std::fs::read(path)?);
            // The map of our own memory may grow in between.
            assert!(ours == theirs || path.ends_with("maps") && ours.len() > 2048, "{path}");
        }
        assert!(read_short(Path::new("/proc/self/there-is-no-such-file")).is_err());
        Ok(())
    }
}
