//! Trees as tar streams, for engines: ours, and folders that somebody names. Nothing is ever unpacked here.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

const BLOCK: usize = 512;

/// One thing in an archive.
pub struct Entry {
    /// Below the root, without a slash in front.
    pub name: String,
    pub mode: u32,
    pub owner: (u32, u32),
    pub what: What,
}

pub enum What {
    Folder,
    Link(String),
    Bytes(Vec<u8>),
    /// A part of a file, read when it is its turn.
    File {
        path: PathBuf,
        from: u64,
        length: u64,
    },
}

/// Reads entries as one archive.
pub struct Archive<I: Iterator<Item = io::Result<Entry>>> {
    entries: Option<I>,
    /// Heads, padding, and contents that are kept in memory.
    ready: Vec<u8>,
    at: usize,
    file: Option<(io::Take<File>, u64)>,
}

impl<I: Iterator<Item = io::Result<Entry>>> Archive<I> {
    pub fn new(entries: I) -> Archive<I> {
        Archive { entries: Some(entries), ready: Vec::new(), at: 0, file: None }
    }

    fn next(&mut self) -> io::Result<()> {
        self.ready.clear();
        self.at = 0;
        let Some(entries) = &mut self.entries else { return Ok(()) };
        let Some(entry) = entries.next().transpose()? else {
            self.entries = None;
            self.ready = vec![0; 2 * BLOCK];
            return Ok(());
        };
        let Entry { name, mode, owner, what } = entry;
        let (kind, target, length) = match &what {
            What::Folder => (b'5', "", 0),
            What::Link(target) => (b'2', target.as_str(), 0),
            What::Bytes(bytes) => (b'0', "", bytes.len() as u64),
            What::File { length, .. } => (b'0', "", *length),
        };
        // Long names go before, in entries of their own.
        for (long, kind) in [(name.as_str(), b'L'), (target, b'K')] {
            if long.len() >= 100 {
                self.ready.extend(head("././@LongLink", 0, (0, 0), kind, "", long.len() as u64 + 1));
                self.ready.extend(long.as_bytes());
                self.ready.push(0);
                pad(&mut self.ready);
            }
        }
        self.ready.extend(head(&name, mode, owner, kind, target, length));
        match what {
            What::Folder | What::Link(_) => {}
            What::Bytes(bytes) => {
                self.ready.extend(bytes);
                pad(&mut self.ready);
            }
            What::File { path, from, length } => {
                let mut file = File::open(&path)?;
                file.seek(io::SeekFrom::Start(from))?;
                self.file = Some((file.take(length), length));
            }
        }
        Ok(())
    }
}

impl<I: Iterator<Item = io::Result<Entry>>> Read for Archive<I> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.at < self.ready.len() {
                let count = into.len().min(self.ready.len() - self.at);
                into[..count].copy_from_slice(&self.ready[self.at..self.at + count]);
                self.at += count;
                return Ok(count);
            }
            if let Some((file, length)) = &mut self.file {
                let read = file.read(into)?;
                if read > 0 {
                    return Ok(read);
                }
                // It became shorter meanwhile: its head promises more than there is.
                if file.limit() > 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                let padding = (BLOCK as u64 - *length % BLOCK as u64) % BLOCK as u64;
                self.file = None;
                self.ready = vec![0; padding as usize];
                self.at = 0;
                continue;
            }
            if self.entries.is_none() {
                return Ok(0);
            }
            self.next()?;
        }
    }
}

fn pad(bytes: &mut Vec<u8>) {
    bytes.resize(bytes.len().next_multiple_of(BLOCK), 0);
}

fn head(name: &str, mode: u32, owner: (u32, u32), kind: u8, target: &str, length: u64) -> [u8; BLOCK] {
    let mut head = [0u8; BLOCK];
    let mut put = |at: usize, most: usize, bytes: &[u8]| {
        let count = bytes.len().min(most);
        head[at..at + count].copy_from_slice(&bytes[..count]);
    };
    put(0, 99, name.as_bytes());
    put(100, 8, format!("{:07o}\0", mode & 0o7777).as_bytes());
    put(108, 8, format!("{:07o}\0", owner.0 & 0o7_777_777).as_bytes());
    put(116, 8, format!("{:07o}\0", owner.1 & 0o7_777_777).as_bytes());
    match length < 1 << 33 {
        true => put(124, 12, format!("{length:011o}\0").as_bytes()),
        false => {
            let mut wide = [0u8; 12];
            wide[4..].copy_from_slice(&length.to_be_bytes());
            wide[0] = 0x80;
            put(124, 12, &wide);
        }
    }
    // No time: the same tree gives the same bytes.
    put(136, 12, b"00000000000\0");
    put(148, 8, b"        ");
    put(156, 1, &[kind]);
    put(157, 99, target.as_bytes());
    put(257, 8, b"ustar  \0");
    let sum: u32 = head.iter().map(|byte| u32::from(*byte)).sum();
    head[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    head
}

/// A folder's entries, folders before what is in them. Devices, pipes and sockets are left out.
pub fn tree(root: &Path) -> impl Iterator<Item = io::Result<Entry>> {
    let root = root.to_owned();
    let mut waiting = vec![PathBuf::new()];
    let as_they_are = rustix::process::geteuid().is_root();
    std::iter::from_fn(move || {
        loop {
            let below = waiting.pop()?;
            let path = root.join(&below);
            let stat = match std::fs::symlink_metadata(&path) {
                Ok(stat) => stat,
                Err(error) => return Some(Err(error)),
            };
            let name = match below.to_str() {
                Some(name) => name.to_owned(),
                None => return Some(Err(io::Error::other(format!("`{}` is no text", path.display())))),
            };
            let owner = if as_they_are { (stat.uid(), stat.gid()) } else { (0, 0) };
            let mode = stat.permissions().mode();
            let what = if stat.is_dir() {
                let mut inside = match std::fs::read_dir(&path).and_then(Iterator::collect::<io::Result<Vec<_>>>) {
                    Ok(inside) => inside,
                    Err(error) => return Some(Err(error)),
                };
                inside.sort_by_key(|entry| std::cmp::Reverse(entry.file_name()));
                waiting.extend(inside.iter().map(|entry| below.join(entry.file_name())));
                What::Folder
            } else if stat.is_symlink() {
                match std::fs::read_link(&path).map(|target| target.to_str().map(str::to_owned)) {
                    Ok(Some(target)) => What::Link(target),
                    Ok(None) => return Some(Err(io::Error::other(format!("`{}` leads to no text", path.display())))),
                    Err(error) => return Some(Err(error)),
                }
            } else if stat.is_file() {
                What::File { path, from: 0, length: stat.len() }
            } else {
                continue;
            };
            if name.is_empty() {
                continue;
            }
            return Some(Ok(Entry { name, mode, owner, what }));
        }
    })
}

/// Where things are in an archive that is not compressed. Only heads are read, and no more than `most` of them.
pub fn index(archive: &mut (impl Read + Seek), most: usize) -> io::Result<Vec<(String, u64, u64)>> {
    let mut found = Vec::new();
    let mut at = 0u64;
    let mut long_name: Option<String> = None;
    while found.len() < most {
        archive.seek(io::SeekFrom::Start(at))?;
        let mut head = [0u8; BLOCK];
        match archive.read_exact(&mut head) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => break,
            Err(error) => return Err(error),
        }
        if head.iter().all(|byte| *byte == 0) || &head[257..262] != b"ustar" {
            break;
        }
        let field = |from: usize, to: usize| {
            let bytes = &head[from..to];
            let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
            String::from_utf8_lossy(&bytes[..end]).into_owned()
        };
        let Ok(length) = u64::from_str_radix(field(124, 136).trim(), 8) else { break };
        let name = match (long_name.take(), field(345, 500)) {
            (Some(name), _) => name,
            (None, prefix) if &head[257..263] == b"ustar\0" && !prefix.is_empty() => {
                format!("{prefix}/{}", field(0, 100))
            }
            (None, _) => field(0, 100),
        };
        let body = at + BLOCK as u64;
        match head[156] {
            b'L' if length < 4096 => {
                let mut bytes = vec![0; length as usize];
                archive.read_exact(&mut bytes)?;
                long_name = Some(String::from_utf8_lossy(&bytes).trim_end_matches('\0').to_owned());
            }
            _ => found.push((name.trim_start_matches("./").to_owned(), body, length)),
        }
        at = match body.checked_add(length.next_multiple_of(BLOCK as u64)) {
            Some(next) => next,
            None => break,
        };
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_found_again() -> io::Result<()> {
        let long = format!("{}/x", "d".repeat(150));
        let entry = |name: &str, what| Ok(Entry { name: name.to_owned(), mode: 0o755, owner: (0, 0), what });
        let entries = vec![
            entry("bin", What::Folder),
            entry("bin/a", What::Bytes(b"hello".to_vec())),
            entry("bin/b", What::Link("a".to_owned())),
            entry(&long, What::Bytes(vec![7; 1000])),
        ];
        let mut bytes = Vec::new();
        Archive::new(entries.into_iter()).read_to_end(&mut bytes)?;
        assert_eq!(bytes.len() % BLOCK, 0);
        let found = index(&mut io::Cursor::new(&bytes), 100)?;
        let names: Vec<&str> = found.iter().map(|(name, ..)| name.as_str()).collect();
        assert_eq!(names, ["bin", "bin/a", "bin/b", &long]);
        let (_, from, length) = &found[1];
        assert_eq!(&bytes[*from as usize..(*from + *length) as usize], b"hello");
        Ok(())
    }

    #[test]
    fn no_bytes_make_the_index_fail_or_run_on() -> io::Result<()> {
        for bytes in [vec![], vec![1; 100], vec![0xff; 4096], head("x", 0, (0, 0), b'0', "", u64::MAX).to_vec()] {
            assert!(index(&mut io::Cursor::new(bytes), 100)?.len() <= 1);
        }
        Ok(())
    }
}
