//! Where to look: a summary of every block of entries. Made from the segment alone, and whoever verifies does not trust it.

use std::fs::File;
use std::os::unix::fs::FileExt;

use crate::error::{Result, cannot};
use crate::head::Block;
use crate::line::Line;
use crate::place::{Place, options};
use crate::segments::each_line;

/// Entries in one block.
pub const BLOCK: u64 = 512;
const SIZE: usize = 256;
const BITS: usize = 128;
const TIME: usize = 32;

/// What is in one block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    pub offset: u64,
    pub length: u64,
    pub entries: u64,
    pub denied: u64,
    /// The earliest and the latest, as text.
    pub earliest: [u8; TIME],
    pub latest: [u8; TIME],
    /// The highest number in it.
    pub last: u64,
    /// Which kinds may be in it: a bit for each, and for each one's first word.
    kinds: u64,
    /// Which runs, users and agents may be in it.
    names: [u8; BITS],
}

impl Summary {
    fn begin(offset: u64) -> Summary {
        Summary {
            offset,
            length: 0,
            entries: 0,
            denied: 0,
            earliest: [255; TIME],
            latest: [0; TIME],
            last: 0,
            kinds: 0,
            names: [0; BITS],
        }
    }

    /// A line of this length, and what it says.
    fn add(&mut self, length: usize, line: Option<&Line<'_>>) {
        self.length += length as u64 + 1;
        self.entries += 1;
        // What can't be read may be anything, so it is never passed over.
        let Some((line, fields)) = line.and_then(|line| Some((line, line.fields()?))) else {
            (self.kinds, self.names, self.denied) = (u64::MAX, [255; BITS], self.denied + 1);
            (self.earliest, self.latest, self.last) = ([0; TIME], [255; TIME], u64::MAX);
            return;
        };
        self.last = self.last.max(line.number);
        self.denied += u64::from(fields.denied);
        let mut at = [0; TIME];
        at[..fields.at.len()].copy_from_slice(fields.at);
        self.earliest = self.earliest.min(at);
        self.latest = self.latest.max(at);
        self.kinds |= kind_bits(fields.kind);
        for (what, value) in [(b'r', fields.run), (b'u', fields.user), (b'a', fields.agent)] {
            for bit in value.map(|value| name_bits(what, value)).into_iter().flatten() {
                self.names[bit / 8] |= 1 << (bit % 8);
            }
        }
    }

    /// Whether an entry of such a kind may be in it: a whole one or its first words.
    pub fn may_have_kind(&self, kind: &str) -> bool {
        self.kinds & kind_bit(first_word(kind.as_bytes())) != 0
    }

    /// `what`: `r`un, `u`ser or `a`gent. `value`: as it stands in an entry.
    pub fn may_have_name(&self, what: u8, value: &[u8]) -> bool {
        name_bits(what, value).iter().all(|bit| self.names[bit / 8] & (1 << (bit % 8)) != 0)
    }

    fn write(&self) -> [u8; SIZE] {
        let Summary { offset, length, entries, denied, earliest, latest, last, kinds, names } = self;
        let mut bytes = Vec::with_capacity(SIZE);
        for number in [offset, length, entries, denied, kinds, last] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        bytes.extend_from_slice(earliest);
        bytes.extend_from_slice(latest);
        bytes.extend_from_slice(names);
        let mut record = [0; SIZE];
        record[..bytes.len()].copy_from_slice(&bytes);
        let sum = blake3::hash(&record[..SIZE - 8]);
        record[SIZE - 8..].copy_from_slice(&sum.as_bytes()[..8]);
        record
    }

    /// Nothing, if it is not whole.
    fn read(record: &[u8]) -> Option<Summary> {
        if record.len() != SIZE || blake3::hash(&record[..SIZE - 8]).as_bytes()[..8] != record[SIZE - 8..] {
            return None;
        }
        let number = |place: usize| Some(u64::from_le_bytes(record[place * 8..place * 8 + 8].try_into().ok()?));
        Some(Summary {
            offset: number(0)?,
            length: number(1)?,
            entries: number(2)?,
            denied: number(3)?,
            kinds: number(4)?,
            last: number(5)?,
            earliest: record[48..80].try_into().ok()?,
            latest: record[80..112].try_into().ok()?,
            names: record[112..112 + BITS].try_into().ok()?,
        })
    }
}

fn first_word(kind: &[u8]) -> &[u8] {
    kind.split(|byte| *byte == b'.').next().unwrap_or_default()
}

fn kind_bit(word: &[u8]) -> u64 {
    1 << (number(word) % 64)
}

fn kind_bits(kind: &[u8]) -> u64 {
    kind_bit(first_word(kind))
}

fn name_bits(what: u8, value: &[u8]) -> [usize; 2] {
    let number = number(value) ^ u64::from(what).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = number.wrapping_mul(0xff51_afd7_ed55_8ccd);
    let bit = |bits: u64| usize::try_from(bits % (BITS as u64 * 8)).unwrap_or_default();
    [bit(mixed >> 8), bit(mixed >> 32)]
}

/// FNV-1a: good enough to spread names, and the same on every machine.
fn number(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Summaries of all whole blocks of a segment, made while it is read.
pub struct Blocks {
    pub whole: Vec<Summary>,
    begun: Summary,
}

impl Blocks {
    pub fn from(offset: u64) -> Blocks {
        Blocks { whole: Vec::new(), begun: Summary::begin(offset) }
    }

    /// A line of this length at this place, and what it says.
    pub fn add(&mut self, offset: u64, length: usize, line: Option<&Line<'_>>) {
        self.begun.add(length, line);
        if self.begun.entries == BLOCK {
            let next = Summary::begin(offset + length as u64 + 1);
            self.whole.push(std::mem::replace(&mut self.begun, next));
        }
    }
}

/// Adds every whole block that the index does not have; where the next begins.
pub fn extend(place: &Place, segment: u64, log: &File, block: Block, length: u64) -> Result<Block> {
    let path = place.index(segment);
    let mut blocks = Blocks::from(block.offset);
    each_line(log, &place.segment(segment), block.offset, length, |piece| {
        blocks.add(piece.offset, piece.line.len(), Line::read(piece.line).as_ref());
        true
    })?;
    if !blocks.whole.is_empty() {
        let records: Vec<u8> = blocks.whole.iter().flat_map(Summary::write).collect();
        let file = options().append(true).create(true).open(&path).map_err(cannot("open", &path))?;
        std::io::Write::write_all(&mut &file, &records).map_err(cannot("write", &path))?;
    }
    Ok(Block { offset: blocks.begun.offset, entries: blocks.begun.entries })
}

/// Makes it anew from the segment.
pub fn rebuild(place: &Place, segment: u64, log: &File, length: u64) -> Result<Block> {
    let path = place.index(segment);
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(cannot("remove", &path)(error)),
        _ => {}
    }
    extend(place, segment, log, Block { offset: 0, entries: 0 }, length)
}

/// As far as it is whole and joins: whoever reads looks at the rest of the segment itself.
pub fn read(place: &Place, segment: u64) -> Vec<Summary> {
    let Ok(file) = options().open(place.index(segment)) else { return Vec::new() };
    let Ok(length) = file.metadata().map(|metadata| metadata.len()) else { return Vec::new() };
    let mut bytes = vec![0; usize::try_from(length.min(64 << 20)).unwrap_or_default()];
    if file.read_exact_at(&mut bytes, 0).is_err() {
        return Vec::new();
    }
    let mut next = 0;
    let joined = bytes.chunks_exact(SIZE).map_while(|record| {
        let summary = Summary::read(record).filter(|summary| summary.offset == next)?;
        next += summary.length;
        Some(summary)
    });
    joined.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_is_read_as_written_and_no_other() {
        let mut summary = Summary::begin(77);
        summary.add(20, None);
        let record = summary.write();
        assert_eq!(Summary::read(&record), Some(summary));
        for place in 0..SIZE {
            let mut copy = record;
            copy[place] ^= 4;
            assert_eq!(Summary::read(&copy), None, "{place}");
        }
    }
}
