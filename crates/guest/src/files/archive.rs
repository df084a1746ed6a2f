//! Many files at once. Out: as frames, of which somebody outside makes an archive. In: an archive (tar), whose every name is taken
//! part by part below one folder, and never through a link.

use std::collections::HashSet;
use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use super::carry::{DEEPEST, PIECE, Sum, below, names, read_some, say, write_all};
use super::walk::{self, End, Result, about, failed, join};
use super::{Frame, Kind, Operation, Why};

pub fn pack(operation: &Operation) -> Result<Sum> {
    let path = operation.path.as_slice();
    let mut packing = Packing { operation, sum: Sum::default(), piece: vec![0; PIECE] };
    match walk::to(path, true)? {
        End::Name(folder, name) if walk::entry(folder.as_fd(), &name, path)?.kind == Kind::File => {
            packing.one(&folder, &name, name.to_bytes(), 1)?;
        }
        _ => packing.folder(&walk::folder(path)?, b"", DEEPEST)?,
    }
    Ok(packing.sum)
}

struct Packing<'a> {
    operation: &'a Operation,
    sum: Sum,
    piece: Vec<u8>,
}

impl Packing<'_> {
    fn folder(&mut self, folder: &OwnedFd, path: &[u8], depth: usize) -> Result<()> {
        for name in names(folder, path)? {
            let name = name?;
            self.one(folder, &name, &join(path, name.to_bytes()), depth)?;
        }
        Ok(())
    }

    fn one(&mut self, folder: &OwnedFd, name: &CStr, path: &[u8], depth: usize) -> Result<()> {
        if path.len() > super::LONGEST_PATH || depth == 0 {
            return Err(failed(Why::TooDeep, path));
        }
        // It may be gone by now.
        let Ok(entry) = walk::entry(folder.as_fd(), name, path) else { return Ok(()) };
        match entry.kind {
            Kind::Special => {
                self.sum.skipped += 1;
                return Ok(());
            }
            Kind::File => return self.file(folder, name, path),
            Kind::Folder | Kind::Link => self.count(path)?,
        }
        let deeper = entry.kind == Kind::Folder;
        say(&Frame::Entry(entry))?;
        match below(folder, name).filter(|_| deeper) {
            Some(below) => self.folder(&below, path, depth - 1),
            None => Ok(()),
        }
    }

    fn count(&mut self, path: &[u8]) -> Result<()> {
        self.sum.count += 1;
        match self.sum.count > self.operation.most {
            true => Err(failed(Why::TooMany, path)),
            false => Ok(()),
        }
    }

    fn file(&mut self, folder: &OwnedFd, name: &CStr, path: &[u8]) -> Result<()> {
        let Ok((file, stat)) = walk::file(folder.as_fd(), name, path) else {
            self.sum.skipped += 1;
            return Ok(());
        };
        self.count(path)?;
        say(&Frame::Entry(walk::entry_of(&stat, path)))?;
        // As it is read now: one that grows for ever is not read for ever.
        let mut left = u64::try_from(stat.st_size).unwrap_or_default();
        while left > 0 {
            let wanted = usize::try_from(left).unwrap_or(PIECE).min(PIECE);
            let read = match read_some(file.as_fd(), &mut self.piece[..wanted]).map_err(about(path))? {
                0 => break,
                read => read,
            };
            left -= read as u64;
            self.sum.bytes += read as u64;
            if self.sum.bytes > self.operation.most_bytes {
                return Err(failed(Why::TooLarge, path));
            }
            say(&Frame::Content(self.piece[..read].to_vec()))?;
        }
        Ok(())
    }
}

const BLOCK: usize = 512;
/// Of what an archive says about one entry besides its contents.
const LARGEST_NOTE: u64 = 64 << 10;

/// What one entry is to be.
struct Wanted {
    kind: u8,
    path: Vec<u8>,
    target: Vec<u8>,
    mode: u32,
    size: u64,
}

/// What comes before an entry and is about it.
#[derive(Default)]
struct Notes {
    path: Option<Vec<u8>>,
    target: Option<Vec<u8>>,
    size: Option<u64>,
}

struct Unpacking<'a> {
    base: OwnedFd,
    operation: &'a Operation,
    sum: Sum,
    /// Folders that this archive made or went through: the others are not looked up again.
    known: HashSet<Vec<u8>>,
}

pub fn unpack(operation: &Operation) -> Result<Sum> {
    let base = walk::folder(&operation.path)?;
    let mut unpacking = Unpacking { base, operation, sum: Sum::default(), known: HashSet::new() };
    let mut notes = Notes::default();
    let mut empty = 0;
    let mut block = [0; BLOCK];
    // Two empty blocks are the end; so is nothing more.
    while empty < 2 && fill(&mut block, operation)? {
        if block == [0; BLOCK] {
            empty += 1;
            continue;
        }
        empty = 0;
        let wanted = header(&block, &mut notes).ok_or_else(|| failed(Why::BadArchive, b""))?;
        unpacking.take(wanted, &mut notes)?;
    }
    // Whoever sends must not wait for somebody who does not read.
    let mut rest = vec![0; PIECE];
    while read_some(rustix::stdio::stdin(), &mut rest).map_err(about(b""))? > 0 {}
    Ok(unpacking.sum)
}

/// False at the end; half a block is an error.
fn fill(block: &mut [u8], operation: &Operation) -> Result<bool> {
    let mut filled = 0;
    while filled < block.len() {
        match read_some(rustix::stdio::stdin(), &mut block[filled..]).map_err(about(&operation.path))? {
            0 if filled == 0 => return Ok(false),
            0 => return Err(failed(Why::BadArchive, b"")),
            read => filled += read,
        }
    }
    Ok(true)
}

fn text(field: &[u8]) -> &[u8] {
    field.split(|byte| *byte == 0).next().unwrap_or_default()
}

/// Octal digits, or (since files became larger than those can say) a number after a set bit.
fn number(field: &[u8]) -> Option<u64> {
    if let Some((first, rest)) = field.split_first()
        && *first == 0x80
    {
        let (zeros, low) = rest.split_at_checked(rest.len().checked_sub(8)?)?;
        let low: [u8; 8] = low.try_into().ok()?;
        return zeros.iter().all(|byte| *byte == 0).then(|| u64::from_be_bytes(low));
    }
    let digits = field.iter().skip_while(|byte| **byte == b' ').take_while(|byte| !matches!(byte, 0 | b' '));
    digits.copied().try_fold(0u64, |sum, digit| match digit {
        b'0'..=b'7' => sum.checked_mul(8)?.checked_add(u64::from(digit - b'0')),
        _ => None,
    })
}

fn header(block: &[u8; BLOCK], notes: &mut Notes) -> Option<Wanted> {
    let said = number(&block[148..156])?;
    let sum = |(at, byte): (usize, &u8)| if (148..156).contains(&at) { u64::from(b' ') } else { u64::from(*byte) };
    if block.iter().enumerate().map(sum).sum::<u64>() != said {
        return None;
    }
    let kind = block[156];
    let mut path = text(&block[..100]).to_vec();
    if &block[257..262] == b"ustar" && block[263..265] == *b"00" && block[345] != 0 {
        path = [text(&block[345..500]), b"/", &path].concat();
    }
    let mut size = number(&block[124..136])?;
    let mut target = text(&block[157..257]).to_vec();
    // Notes are about the next entry that is none itself.
    if !matches!(kind, b'x' | b'g' | b'L' | b'K') {
        let Notes { path: named, target: leads, size: sized } = std::mem::take(notes);
        path = named.unwrap_or(path);
        target = leads.unwrap_or(target);
        size = sized.unwrap_or(size);
    }
    Some(Wanted { kind, path, target, mode: (number(&block[100..108])? & 0o777) as u32, size })
}

impl Unpacking<'_> {
    fn take(&mut self, wanted: Wanted, notes: &mut Notes) -> Result<()> {
        let bad = || failed(Why::BadArchive, &wanted.path);
        match wanted.kind {
            b'x' | b'L' | b'K' if wanted.size <= LARGEST_NOTE => {
                let note = self.note(wanted.size)?;
                match wanted.kind {
                    b'L' => notes.path = Some(text(&note).to_vec()),
                    b'K' => notes.target = Some(text(&note).to_vec()),
                    _ => extended(&note, notes).ok_or_else(bad)?,
                }
                Ok(())
            }
            b'x' | b'L' | b'K' => Err(failed(Why::TooLarge, b"")),
            b'0' | 0 | b'7' if wanted.path.ends_with(b"/") => self.folder(&wanted),
            b'0' | 0 | b'7' => self.file(&wanted),
            b'5' => self.folder(&wanted),
            b'2' => self.link(&wanted),
            // Notes about all that follows, and what is no file: devices, pipes, second names of others.
            kind => {
                self.sum.skipped += u64::from(kind != b'g');
                let size = if matches!(kind, b'1' | b'3' | b'4' | b'6') { 0 } else { wanted.size };
                self.skip(size)
            }
        }
    }

    fn note(&mut self, size: u64) -> Result<Vec<u8>> {
        let length = usize::try_from(size).map_err(|_| failed(Why::TooLarge, b""))?;
        let mut note = vec![0; length.div_ceil(BLOCK) * BLOCK];
        if !note.is_empty() && !fill(&mut note, self.operation)? {
            return Err(failed(Why::BadArchive, b""));
        }
        note.truncate(length);
        Ok(note)
    }

    fn skip(&mut self, size: u64) -> Result<()> {
        let mut block = [0; BLOCK];
        for _ in 0..size.div_ceil(BLOCK as u64) {
            if !fill(&mut block, self.operation)? {
                return Err(failed(Why::BadArchive, b""));
            }
        }
        Ok(())
    }

    fn count(&mut self, path: &[u8]) -> Result<()> {
        self.sum.count += 1;
        match self.sum.count > self.operation.most {
            true => Err(failed(Why::TooMany, path)),
            false => Ok(()),
        }
    }

    /// The folder that it goes into, made if it is not there, and its name there; nothing for the folder itself.
    fn place(&mut self, path: &[u8]) -> Result<Option<(OwnedFd, CString)>> {
        let bad = || failed(Why::BadPath, path);
        if path.starts_with(b"/") || path.len() > super::LONGEST_PATH || path.contains(&0) {
            return Err(bad());
        }
        let parts: Vec<&[u8]> =
            path.split(|byte| *byte == b'/').filter(|part| !part.is_empty() && *part != b".").collect();
        if parts.contains(&b"..".as_slice()) || parts.len() > DEEPEST {
            return Err(bad());
        }
        let Some((name, around)) = parts.split_last() else { return Ok(None) };
        let flags = OFlags::PATH | walk::FOLDER;
        let mut folder = rustix::fs::openat(&self.base, c".", flags, Mode::empty()).map_err(about(path))?;
        let mut walked = Vec::new();
        for part in around {
            let part = CString::new(*part).map_err(|_| bad())?;
            walked = join(&walked, part.to_bytes());
            if self.known.insert(walked.clone()) {
                match rustix::fs::mkdirat(&folder, &*part, Mode::from_raw_mode(0o777)) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(errno) => return Err(about(path)(errno)),
                }
            }
            // Not through a link, whoever made it.
            folder = rustix::fs::openat(&folder, &*part, flags, Mode::empty()).map_err(about(path))?;
            walk::not_the_kernels(&folder, path)?;
        }
        Ok(Some((folder, CString::new(*name).map_err(|_| bad())?)))
    }

    fn folder(&mut self, wanted: &Wanted) -> Result<()> {
        self.count(&wanted.path)?;
        if let Some((folder, name)) = self.place(&wanted.path)? {
            match rustix::fs::mkdirat(&folder, &*name, Mode::from_raw_mode(wanted.mode | 0o700)) {
                Ok(()) => {}
                Err(Errno::EXIST) if below(&folder, &name).is_some() => {}
                Err(errno) => return Err(about(&wanted.path)(errno)),
            }
        }
        Ok(())
    }

    fn link(&mut self, wanted: &Wanted) -> Result<()> {
        self.count(&wanted.path)?;
        let bad = || failed(Why::BadPath, &wanted.path);
        let (folder, name) = self.place(&wanted.path)?.ok_or_else(bad)?;
        let target = CString::new(wanted.target.clone()).map_err(|_| bad())?;
        make_room(&folder, &name, &wanted.path)?;
        rustix::fs::symlinkat(&*target, &folder, &*name).map_err(about(&wanted.path))
    }

    fn file(&mut self, wanted: &Wanted) -> Result<()> {
        let path = wanted.path.as_slice();
        self.count(path)?;
        self.sum.bytes = self.sum.bytes.saturating_add(wanted.size);
        if self.sum.bytes > self.operation.most_bytes {
            return Err(failed(Why::TooLarge, path));
        }
        let (folder, name) = self.place(path)?.ok_or_else(|| failed(Why::BadPath, path))?;
        make_room(&folder, &name, path)?;
        // New, and nothing that is there: neither through a link nor into another name of the same file.
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&folder, &*name, flags, Mode::from_raw_mode(wanted.mode | 0o600));
        let file = file.map_err(about(path))?;
        let mut left = wanted.size;
        let mut piece = vec![0; PIECE];
        while left > 0 {
            // Whole blocks: what stands after the end of the last is nothing.
            let here = usize::try_from(left).unwrap_or(PIECE).min(PIECE);
            let piece = &mut piece[..here.div_ceil(BLOCK) * BLOCK];
            if !fill(piece, self.operation)? {
                return Err(failed(Why::BadArchive, path));
            }
            write_all(file.as_fd(), &piece[..here]).map_err(about(path))?;
            left -= here as u64;
        }
        Ok(())
    }
}

/// What is there goes, if it is no folder.
fn make_room(folder: &OwnedFd, name: &CStr, path: &[u8]) -> Result<()> {
    match rustix::fs::unlinkat(folder, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(about(path)(errno)),
    }
}

/// Lines of a length, a name and a value.
fn extended(mut note: &[u8], notes: &mut Notes) -> Option<()> {
    while !note.is_empty() {
        let space = note.iter().take(20).position(|byte| *byte == b' ')?;
        let length: usize = std::str::from_utf8(&note[..space]).ok()?.parse().ok()?;
        let line = note.get(space + 1..length)?.strip_suffix(b"\n")?;
        note = note.get(length..)?;
        let equals = line.iter().position(|byte| *byte == b'=')?;
        let value = &line[equals + 1..];
        match &line[..equals] {
            b"path" => notes.path = Some(value.to_vec()),
            b"linkpath" => notes.target = Some(value.to_vec()),
            b"size" => notes.size = Some(std::str::from_utf8(value).ok()?.parse().ok()?),
            // A file with holes is told in another way than as what it holds.
            name if name.starts_with(b"GNU.sparse") => return None,
            _ => {}
        }
    }
    Some(())
}

/// For those who try all kinds of bytes: a header and a note, as they are read.
#[doc(hidden)]
pub fn try_to_read(bytes: &[u8]) {
    let mut notes = Notes::default();
    if let Some((block, rest)) = bytes.split_first_chunk::<BLOCK>() {
        header(block, &mut notes);
        extended(rest, &mut notes);
    }
    extended(bytes, &mut notes);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_header_and_no_note_panics(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
            try_to_read(&bytes);
        }

        #[test]
        fn no_note_panics(length in 0u32..40, rest in "[ -~\n]{0,40}") {
            try_to_read(format!("{length} {rest}").as_bytes());
        }
    }

    #[test]
    fn numbers_are_octal_or_long_and_nothing_else() {
        assert_eq!(number(b"0000644\0"), Some(0o644));
        assert_eq!(number(b"   12 \0"), Some(10));
        assert_eq!(number(b"9\0"), None);
        assert_eq!(number(&[0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0]), Some(256));
        assert_eq!(number(&[0x80, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 0]), None);
        assert_eq!(number(&[0xff; 12]), None);
        assert_eq!(number(b"777777777777777777777777"), None);
    }

    #[test]
    fn a_note_names_what_comes_next() {
        let mut notes = Notes::default();
        assert_eq!(extended(b"12 path=a/b\n11 size=12\n", &mut notes), Some(()));
        assert_eq!((notes.path.as_deref(), notes.size), (Some(b"a/b".as_slice()), Some(12)));
        assert_eq!(extended(b"99 path=a\n", &mut notes), None);
        assert_eq!(extended(b"0 \n", &mut notes), None);
    }
}
