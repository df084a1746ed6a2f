//! Contents on their way into the store: written and looked at before they have a name that anybody reads.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};

use rustix::fs::{AtFlags, Mode, OFlags};

use crate::blobs::Hash;
use crate::files::Folder;

/// Gone when it is dropped. What a killed belljar leaves is removed by `belljar gc`.
pub struct Draft<'a> {
    /// The folder of blobs, held.
    folder: &'a Folder,
    name: OsString,
    /// Closed when it is written: there may be more drafts than one may have files open.
    file: Option<File>,
    written: Option<Hash>,
}

const END: &str = ".draft";

pub fn is_draft(name: &str) -> bool {
    name.strip_suffix(END).is_some_and(crate::store::is_id)
}

impl<'a> Draft<'a> {
    /// `id` is one that nobody else has.
    pub fn new(folder: &'a Folder, id: &str) -> io::Result<Draft<'a>> {
        let name = OsString::from(format!("{id}{END}"));
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(folder.fd(), &name, flags, Mode::from_raw_mode(0o600))?;
        Ok(Draft { folder, name, file: Some(file.into()), written: None })
    }

    /// Takes over what `from` has: exactly `size` bytes. Nothing if it turns out to have fewer or more; never more than
    /// that is written, whatever it says that it has.
    pub fn fill(&mut self, from: impl Read, size: u64) -> io::Result<Option<Hash>> {
        let Some(mut file) = self.file.take() else { return Err(io::ErrorKind::InvalidInput.into()) };
        let mut from = from.take(size.saturating_add(1));
        let mut hasher = blake3::Hasher::new();
        let mut buffer = vec![0u8; 1 << 16];
        let mut length = 0u64;
        loop {
            let read = match from.read(&mut buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                read => read?,
            };
            if read == 0 {
                break;
            }
            length += read as u64;
            if length > size {
                return Ok(None);
            }
            file.write_all(&buffer[..read])?;
            hasher.update(&buffer[..read]);
        }
        if length != size {
            return Ok(None);
        }
        let hash = Hash(*hasher.finalize().as_bytes());
        self.written = Some(hash);
        Ok(Some(hash))
    }

    /// To be read from the beginning, and by no means written to: whoever examines it may be anybody.
    pub fn contents(&self) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(rustix::fs::openat(self.folder.fd(), &self.name, flags, Mode::empty())?.into())
    }

    /// Not to be kept: it is known to be gone after this.
    pub fn discard(self) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(self.folder.fd(), &self.name, AtFlags::empty())?)
    }

    /// On the disk, then under its hash: whoever finds that name finds all of it.
    pub fn keep(self) -> io::Result<()> {
        let Some(hash) = self.written else { return Err(io::ErrorKind::InvalidInput.into()) };
        self.contents()?.sync_data()?;
        let hash = hash.to_string();
        Ok(rustix::fs::renameat(self.folder.fd(), &self.name, self.folder.fd(), OsStr::new(&hash))?)
    }
}

impl Drop for Draft<'_> {
    fn drop(&mut self) {
        // Under this name it is there only if it was not kept. What stays for want of rights, `gc` tries again.
        match rustix::fs::unlinkat(self.folder.fd(), &self.name, AtFlags::empty()) {
            Ok(()) | Err(_) => {}
        }
    }
}
