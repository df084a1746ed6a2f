//! Modules as they were compiled before, in belljar's own folder for state, which no sandbox is ever granted.
//!
//! Loading compiled code runs it, so only what we wrote ourselves may be loaded. A jar of its own compiled it, from bytes
//! whose digest we took ourselves, and before anything of the module had run; so a module that takes over its compiler
//! makes code for nobody but itself. We then seal it with a key that nobody else has, and look at the seal before each use.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustix::rand::{GetRandomFlags, getrandom};

/// More than this is not kept: what was made first goes first.
const ROOM: u64 = 2 << 30;

pub struct Cache {
    folder: PathBuf,
}

impl Cache {
    pub fn at(folder: PathBuf) -> Cache {
        Cache { folder }
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Where the code of that name is, or would be.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.code"))
    }

    fn seal_of(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.seal"))
    }

    /// The code of that name, if it is there and as we wrote it. What is not is as good as not there.
    pub fn find(&self, name: &str) -> Option<PathBuf> {
        let key = self.key().ok()?;
        let sealed = fs::read(self.seal_of(name)).ok()?;
        let file = self.file(name);
        let sealed = blake3::Hash::from_bytes(sealed.try_into().ok()?);
        // Compared without telling how much of it was right.
        (seal(&key, name, &fs::read(&file).ok()?) == sealed).then_some(file)
    }

    /// Keeps code under a name. The file is made anew and then put in place: one that is in use is never written to.
    pub fn keep(&self, name: &str, code: &[u8]) -> io::Result<PathBuf> {
        let key = self.key_or_new()?;
        self.make_room(code.len() as u64)?;
        self.put(&self.file(name), code)?;
        self.put(&self.seal_of(name), seal(&key, name, code).as_bytes())?;
        Ok(self.file(name))
    }

    /// For a jar of ours to read: gone when it is dropped.
    pub fn lend(&self, bytes: &[u8]) -> io::Result<Lent> {
        self.make()?;
        let path = self.folder.join(format!("{}.module", hex(&random::<16>()?)));
        write_new(&path, bytes)?;
        Ok(Lent { path })
    }

    fn make(&self) -> io::Result<()> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)
    }

    fn put(&self, at: &Path, bytes: &[u8]) -> io::Result<()> {
        let beside = self.folder.join(format!("{}.new", hex(&random::<16>()?)));
        write_new(&beside, bytes)?;
        fs::rename(&beside, at)
    }

    fn key(&self) -> io::Result<[u8; 32]> {
        let key = fs::read(self.folder.join("key"))?;
        key.try_into().map_err(|_| io::ErrorKind::InvalidData.into())
    }

    fn key_or_new(&self) -> io::Result<[u8; 32]> {
        self.make()?;
        match self.key() {
            // One that is half a key seals nothing that could ever be found again.
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::InvalidData) => {
                self.put(&self.folder.join("key"), &random::<32>()?)?;
                // Whoever else made one at the same time: the last one counts, for both.
                self.key()
            }
            other => other,
        }
    }

    /// Removes what was made first, and what a killed belljar left, until there is room.
    fn make_room(&self, wanted: u64) -> io::Result<()> {
        let mut kept: Vec<(SystemTime, u64, PathBuf)> = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let path = entry?.path();
            let Ok(stat) = fs::symlink_metadata(&path) else { continue };
            let made = stat.modified()?;
            match path.extension().and_then(|extension| extension.to_str()) {
                Some("code") => kept.push((made, stat.len(), path)),
                Some("module" | "new") if made.elapsed().is_ok_and(|age| age.as_secs() > 3600) => remove(&path)?,
                _ => {}
            }
        }
        kept.sort();
        let mut used: u64 = kept.iter().map(|(_, size, _)| size).sum();
        for (_, size, path) in kept {
            if used.saturating_add(wanted) <= ROOM {
                return Ok(());
            }
            remove(&path.with_extension("seal"))?;
            remove(&path)?;
            used -= size;
        }
        Ok(())
    }
}

/// A file that is there for as long as this is.
pub struct Lent {
    pub path: PathBuf,
}

impl Drop for Lent {
    fn drop(&mut self) {
        // One that stays is removed with the next that is kept.
        fs::remove_file(&self.path).unwrap_or_default();
    }
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(bytes)
}

/// Of a name as well as of its code: code that is put under another name is as good as none.
fn seal(key: &[u8; 32], name: &str, code: &[u8]) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new_keyed(key);
    hasher.update(&(name.len() as u64).to_le_bytes());
    hasher.update(name.as_bytes());
    hasher.update(code);
    hasher.finalize()
}

fn random<const COUNT: usize>() -> io::Result<[u8; COUNT]> {
    let mut bytes = [0; COUNT];
    let mut rest = bytes.as_mut_slice();
    while !rest.is_empty() {
        let count = getrandom(&mut *rest, GetRandomFlags::empty())?;
        rest = &mut rest[count..];
    }
    Ok(bytes)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The digest of a file.
pub fn digest(path: &Path) -> io::Result<String> {
    let mut hasher = blake3::Hasher::new();
    let mut file = File::open(path)?;
    let mut part = vec![0; 1 << 20];
    loop {
        match file.read(&mut part)? {
            0 => return Ok(hasher.finalize().to_hex().to_string()),
            count => hasher.update(&part[..count]),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache(name: &str) -> Cache {
        let folder = std::env::temp_dir().join(format!("belljar-wasm-cache-{}-{name}", std::process::id()));
        drop(fs::remove_dir_all(&folder));
        Cache::at(folder)
    }

    #[test]
    fn what_is_kept_is_found_again_and_only_under_its_own_name() {
        let cache = cache("own-name");
        assert_eq!(cache.find("a"), None);
        let file = cache.keep("a", b"code").expect("it can be done");
        assert_eq!(cache.find("a"), Some(file));
        fs::copy(cache.file("a"), cache.file("b")).expect("it can be done");
        fs::copy(cache.seal_of("a"), cache.seal_of("b")).expect("it can be done");
        assert_eq!(cache.find("b"), None, "code for one module was taken for another's");
        fs::remove_dir_all(cache.folder()).expect("it can be done");
    }

    #[test]
    fn code_or_seals_that_we_did_not_write_are_not_found() {
        let cache = cache("forged");
        cache.keep("a", b"code").expect("it can be done");
        fs::write(cache.file("a"), b"evil").expect("it can be done");
        assert_eq!(cache.find("a"), None);
        cache.keep("a", b"code").expect("it can be done");
        fs::write(cache.seal_of("a"), blake3::hash(b"code").as_bytes()).expect("it can be done");
        assert_eq!(cache.find("a"), None);
        cache.keep("a", b"code").expect("it can be done");
        fs::write(cache.folder().join("key"), [0; 32]).expect("it can be done");
        assert_eq!(cache.find("a"), None);
        fs::remove_dir_all(cache.folder()).expect("it can be done");
    }

    #[test]
    fn nobody_else_may_look_into_the_folder() {
        use std::os::unix::fs::PermissionsExt;
        let cache = cache("mode");
        let file = cache.keep("a", b"code").expect("it can be done");
        let mode = |path: &Path| fs::metadata(path).expect("it can be done").permissions().mode() & 0o777;
        assert_eq!((mode(cache.folder()), mode(&file), mode(&cache.folder().join("key"))), (0o700, 0o600, 0o600));
        fs::remove_dir_all(cache.folder()).expect("it can be done");
    }

    #[test]
    fn what_was_lent_is_gone_afterwards() {
        let cache = cache("lent");
        let lent = cache.lend(b"module").expect("it can be done");
        let path = lent.path.clone();
        assert!(path.exists());
        drop(lent);
        assert!(!path.exists());
        fs::remove_dir_all(cache.folder()).expect("it can be done");
    }
}
