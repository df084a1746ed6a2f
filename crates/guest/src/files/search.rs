//! Lines that have something in them, in files that are text.

use std::ffi::CStr;
use std::os::fd::{AsFd, OwnedFd};

use regex::bytes::{Regex, RegexBuilder};

use super::carry::{DEEPEST, Sum, below, names, read_some, say};
use super::walk::{self, End, Result, about, failed, join};
use super::{Frame, Kind, Operation, Why};

/// Files that are larger are data.
const LARGEST_FILE: u64 = 8 << 20;
/// Where a zero byte says that it is no text.
const LOOKED_AT: usize = 8 << 10;
/// Of a line that is shown.
const LONGEST_LINE: usize = 400;
/// What a pattern may take to be understood.
const LARGEST_PATTERN: usize = 1 << 20;
/// Files and bytes that are looked at.
const MOST_FILES: u64 = 100_000;
const MOST_BYTES: u64 = 2 << 30;

struct Searching<'a> {
    pattern: Regex,
    operation: &'a Operation,
    files: u64,
    sum: Sum,
}

pub fn search(operation: &Operation) -> Result<Sum> {
    let path = operation.path.as_slice();
    let bad = || failed(Why::BadPattern, &operation.other);
    let text = std::str::from_utf8(&operation.other).map_err(|_| bad())?;
    let text = if operation.boldly { text.to_owned() } else { regex::escape(text) };
    let pattern = RegexBuilder::new(&text)
        .case_insensitive(operation.caseless)
        .size_limit(LARGEST_PATTERN)
        .dfa_size_limit(LARGEST_PATTERN)
        .build()
        .map_err(|_| bad())?;
    let mut searching = Searching { pattern, operation, files: 0, sum: Sum::default() };
    match walk::to(path, true)? {
        End::Name(folder, name) if walk::entry(folder.as_fd(), &name, path)?.kind == Kind::File => {
            searching.file(&folder, &name, path)?;
        }
        _ => searching.folder(&walk::folder(path)?, b"", DEEPEST)?,
    }
    Ok(searching.sum)
}

impl Searching<'_> {
    fn folder(&mut self, folder: &OwnedFd, path: &[u8], depth: usize) -> Result<()> {
        for name in names(folder, path)? {
            let name = name?;
            let path = join(path, name.to_bytes());
            let Ok(entry) = walk::entry(folder.as_fd(), &name, &path) else { continue };
            match entry.kind {
                _ if path.len() > super::LONGEST_PATH => self.sum.skipped += 1,
                Kind::File if self.is_meant(name.to_bytes()) => self.file(folder, &name, &path)?,
                Kind::Folder => match below(folder, &name) {
                    Some(below) if depth > 1 => self.folder(&below, &path, depth - 1)?,
                    _ => self.sum.skipped += 1,
                },
                Kind::File | Kind::Link | Kind::Special => {}
            }
            if self.sum.cut {
                return Ok(());
            }
        }
        Ok(())
    }

    fn is_meant(&self, name: &[u8]) -> bool {
        self.operation.names.is_empty() || is_like(name, &self.operation.names)
    }

    fn file(&mut self, folder: &OwnedFd, name: &CStr, path: &[u8]) -> Result<()> {
        if self.files >= MOST_FILES || self.sum.bytes >= MOST_BYTES {
            self.sum.cut = true;
            return Ok(());
        }
        self.files += 1;
        let opened = walk::file(folder.as_fd(), name, path);
        let Some((file, stat)) = opened.ok().filter(|(_, stat)| stat.st_size as u64 <= LARGEST_FILE) else {
            self.sum.skipped += 1;
            return Ok(());
        };
        let mut text = vec![0; usize::try_from(stat.st_size).unwrap_or_default()];
        let mut filled = 0;
        while filled < text.len() {
            match read_some(file.as_fd(), &mut text[filled..]).map_err(about(path))? {
                0 => break,
                read => filled += read,
            }
        }
        text.truncate(filled);
        self.sum.bytes += filled as u64;
        if text[..filled.min(LOOKED_AT)].contains(&0) {
            self.sum.skipped += 1;
            return Ok(());
        }
        for (number, line) in (1..).zip(text.split(|byte| *byte == b'\n')) {
            let Some(found) = self.pattern.find(line) else { continue };
            if self.sum.count >= self.operation.most {
                self.sum.cut = true;
                return Ok(());
            }
            self.sum.count += 1;
            let text = line[..line.len().min(LONGEST_LINE)].to_vec();
            let (path, column) = (path.to_vec(), found.start() as u64 + 1);
            say(&Frame::Match { path, line: number, column, text })?;
        }
        Ok(())
    }
}

/// `*` stands for any letters, `?` for one. Takes as long as both are long together, whatever they are.
fn is_like(name: &[u8], like: &[u8]) -> bool {
    let (mut at, mut of, mut star) = (0, 0, None);
    while at < name.len() {
        match like.get(of) {
            Some(b'*') => {
                star = Some((of, at));
                of += 1;
            }
            Some(letter) if *letter == b'?' || *letter == name[at] => {
                at += 1;
                of += 1;
            }
            _ => match star {
                Some((before, from)) => {
                    star = Some((before, from + 1));
                    of = before + 1;
                    at = from + 1;
                }
                None => return false,
            },
        }
    }
    like[of.min(like.len())..].iter().all(|letter| *letter == b'*')
}

#[cfg(test)]
mod tests {
    use super::is_like;

    #[test]
    fn names_are_like_what_stands_for_them() {
        for (name, like) in [("a.py", "*.py"), ("a.py", "?.py"), ("abcab", "*ab"), ("", "*"), ("x", "**x*")] {
            assert!(is_like(name.as_bytes(), like.as_bytes()), "{name} {like}");
        }
        for (name, like) in [("a.pyc", "*.py"), ("a", ""), ("", "?"), ("ab", "a"), ("a", "ab")] {
            assert!(!is_like(name.as_bytes(), like.as_bytes()), "{name} {like}");
        }
    }
}
