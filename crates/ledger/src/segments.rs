//! Reading segments line by line, whatever is in them.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::error::{Result, cannot};
use crate::line::LONGEST;

/// Longer ones are no entries of ours; they are read in pieces, and each piece is a line that can't be read.
const LONGEST_LINE: usize = LONGEST + 4096;
const CHUNK: usize = 1 << 20;

/// A line, where it begins, and whether it ends with an end of line.
pub struct Piece<'a> {
    pub offset: u64,
    pub line: &'a [u8],
    pub whole: bool,
}

/// Calls `each` with every line from `from` to `to`, until it says no.
pub fn each_line(file: &File, path: &Path, from: u64, to: u64, mut each: impl FnMut(Piece<'_>) -> bool) -> Result<()> {
    let mut buffer: Vec<u8> = Vec::new();
    // What of the buffer was not given out yet begins here in the file.
    let mut offset = from;
    let mut read = from;
    loop {
        let wanted = usize::try_from(to.saturating_sub(read)).unwrap_or(CHUNK).min(CHUNK);
        let kept = buffer.len();
        buffer.resize(kept + wanted, 0);
        let count = read_at(file, &mut buffer[kept..], read).map_err(cannot("read", path))?;
        buffer.truncate(kept + count);
        read += count as u64;
        let mut start = 0;
        // What was kept has no end of line.
        let mut searched = kept;
        while let Some(end) = memchr::memchr(b'\n', &buffer[searched..]).map(|place| place + searched) {
            if !each(Piece { offset: offset + start as u64, line: &buffer[start..end], whole: true }) {
                return Ok(());
            }
            start = end + 1;
            searched = start;
        }
        if buffer.len() - start > LONGEST_LINE {
            if !each(Piece { offset: offset + start as u64, line: &buffer[start..], whole: true }) {
                return Ok(());
            }
            start = buffer.len();
        }
        offset += start as u64;
        buffer.drain(..start);
        if count == 0 {
            if !buffer.is_empty() {
                each(Piece { offset, line: &buffer, whole: false });
            }
            return Ok(());
        }
    }
}

fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> std::io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read_at(&mut buffer[filled..], offset + filled as u64) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}
