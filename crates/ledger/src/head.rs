//! Where the record ends: a note for the next writer, who checks it against the segment before it believes it.

use crate::line::{Hash, NO_HASH, hex, unhex};

/// As large as the file is, always: it is written in one call.
pub const SIZE: usize = 384;
const NAME: &str = "belljar-ledger-head-1";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// Whose record it is; nothing, if there is none yet.
    pub installation: String,
    pub segment: u64,
    /// Of that segment, in bytes.
    pub length: u64,
    /// The number of the last entry.
    pub number: u64,
    pub hash: Hash,
    /// Entries since the last checkpoint.
    pub unsigned: u64,
    /// Where the block begins that the index does not have yet.
    pub block: Block,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    pub offset: u64,
    pub entries: u64,
}

impl Head {
    /// Of a record that has no entry.
    pub const NONE: Head = Head {
        installation: String::new(),
        segment: 0,
        length: 0,
        number: 0,
        hash: NO_HASH,
        unsigned: 0,
        block: Block { offset: 0, entries: 0 },
    };

    pub fn write(&self) -> [u8; SIZE] {
        let Head { installation, segment, length, number, hash, unsigned, block } = self;
        let Block { offset, entries } = block;
        let said =
            format!("{NAME} {installation} {segment} {length} {number} {} {unsigned} {offset} {entries} ", hex(hash));
        let mut bytes = [b' '; SIZE];
        let line = said.clone() + &check(&said) + "\n";
        // Seven numbers of at most twenty digits and two hashes' worth of letters always fit.
        for (byte, letter) in bytes.iter_mut().zip(line.bytes()) {
            *byte = letter;
        }
        bytes
    }

    /// Nothing, if it is not whole.
    pub fn read(bytes: &[u8]) -> Option<Head> {
        let text = std::str::from_utf8(bytes).ok()?;
        let line = &text[..text.find('\n')?];
        let (said, sum) = line.split_at(line.rfind(' ')? + 1);
        if check(said) != sum {
            return None;
        }
        let mut words = said.split_ascii_whitespace();
        if words.next()? != NAME {
            return None;
        }
        let installation = words.next()?.to_owned();
        let mut number = || words.next()?.parse::<u64>().ok();
        let (segment, length, last) = (number()?, number()?, number()?);
        let hash = unhex(words.next()?.as_bytes())?;
        let mut number = || words.next()?.parse::<u64>().ok();
        let (unsigned, offset, entries) = (number()?, number()?, number()?);
        Some(Head { installation, segment, length, number: last, hash, unsigned, block: Block { offset, entries } })
    }
}

fn check(said: &str) -> String {
    hex(blake3::hash(said.as_bytes()).as_bytes())[..16].to_owned()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_is_read_as_written() {
        let most = u64::MAX;
        let block = Block { offset: most, entries: most };
        let installation = "a".repeat(32);
        let head =
            Head { installation, segment: most, length: most, number: most, hash: [255; 32], unsigned: most, block };
        assert_eq!(Head::read(&head.write()), Some(head));
    }

    #[test]
    fn a_changed_byte_makes_it_nothing() {
        let head = Head { installation: "a".to_owned(), segment: 1, length: 2, number: 3, hash: [4; 32], ..Head::NONE };
        let bytes = head.write();
        let end = bytes.iter().position(|byte| *byte == b'\n').unwrap();
        for place in 0..=end {
            let mut copy = bytes;
            copy[place] ^= 1;
            assert_eq!(Head::read(&copy), None, "{place}");
        }
        assert_eq!(Head::read(&bytes[..20]), None);
        assert_eq!(Head::read(&[]), None);
    }
}
