//! Many words in a text at once. Made in microseconds, since a cold scan pays for it, and most bytes cost one look: a
//! word is only compared where its first two bytes stand.

/// Places for pairs of bytes of which the case is taken away: seven bits of each.
const PAIRS: usize = 1 << 14;
/// Places for three bytes.
const THREES: usize = 1 << 15;

pub(crate) struct Words {
    /// Bits for the first three bytes: most places of a text are none of them.
    threes: Box<[u64]>,
    /// For each pair: the number of its bucket, from 1.
    table: Box<[u16]>,
    buckets: Vec<Bucket>,
    /// Sorted by their first pair, each with its place among those that were given.
    words: Vec<(Vec<u8>, usize)>,
    /// Words of one byte: nobody has many of them.
    single: Vec<(u8, usize)>,
    ignores_case: bool,
}

#[derive(Clone, Copy, Default)]
struct Bucket {
    from: usize,
    to: usize,
}

/// A word that stands in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// Its place among those that were given.
    pub word: usize,
    pub start: usize,
    pub end: usize,
}

impl Words {
    pub fn of(words: impl IntoIterator<Item = Vec<u8>>, ignores_case: bool) -> Words {
        let all = words.into_iter().enumerate().map(|(place, word)| (word, place)).filter(|(word, _)| !word.is_empty());
        let (mut words, single): (Vec<_>, Vec<_>) = all.partition(|(word, _)| word.len() > 1);
        let single = single.into_iter().map(|(word, place)| (word[0], place)).collect();
        words.sort_by_key(|(word, place)| (pair(word[0], word[1]), *place));
        let mut table = vec![0_u16; PAIRS].into_boxed_slice();
        let mut threes = vec![0_u64; THREES / 64].into_boxed_slice();
        let mut buckets: Vec<Bucket> = Vec::new();
        for (at, (word, _)) in words.iter().enumerate() {
            let bucket = &mut table[pair(word[0], word[1])];
            if *bucket == 0 {
                buckets.push(Bucket { from: at, ..Bucket::default() });
                // No more than there are pairs.
                *bucket = buckets.len() as u16;
            }
            if let Some(last) = buckets.last_mut() {
                last.to = at + 1;
            }
            let thirds = word.get(2).map_or(0..32, |third| third & 31..(third & 31) + 1);
            for third in thirds {
                let place = three(word[0], word[1], third);
                threes[place / 64] |= 1 << (place % 64);
            }
        }
        Words { threes, table, buckets, words, single, ignores_case }
    }

    /// All of them, wherever they stand.
    pub fn within<'w>(&'w self, text: &'w [u8]) -> impl Iterator<Item = Found> {
        let single = self.single.iter().flat_map(move |(byte, word)| {
            let (lower, upper) = match self.ignores_case {
                true => (byte.to_ascii_lowercase(), byte.to_ascii_uppercase()),
                false => (*byte, *byte),
            };
            memchr::memchr2_iter(lower, upper, text).map(|start| Found { word: *word, start, end: start + 1 })
        });
        Within { words: self, text, at: 0, rest: 0..0 }.chain(single)
    }
}

fn pair(first: u8, second: u8) -> usize {
    let bits = |byte: u8| usize::from(byte & 0x1f | (byte & 0xc0) >> 1);
    bits(first) << 7 | bits(second)
}

/// Of the third byte five bits count.
fn three(first: u8, second: u8, third: u8) -> usize {
    (pair(first, second).wrapping_mul(0x9e5) ^ usize::from(third & 31).wrapping_mul(0x4f1)) % THREES
}

struct Within<'w> {
    words: &'w Words,
    text: &'w [u8],
    at: usize,
    /// Those of a bucket that are still to be compared with what stands before `at`.
    rest: std::ops::Range<usize>,
}

impl Iterator for Within<'_> {
    type Item = Found;

    fn next(&mut self) -> Option<Found> {
        loop {
            for number in self.rest.by_ref() {
                let (word, place) = &self.words.words[number];
                let start = self.at - 1;
                let Some(stands) = self.text.get(start..start + word.len()) else { continue };
                let is_it = match self.words.ignores_case {
                    true => stands.eq_ignore_ascii_case(word),
                    false => stands == word,
                };
                if is_it {
                    return Some(Found { word: *place, start, end: start + word.len() });
                }
            }
            let text = self.text.get(self.at..)?;
            let may_begin = |three: &[u8; 3]| {
                let place = self::three(three[0], three[1], three[2]);
                self.words.threes[place / 64] & 1 << (place % 64) != 0
            };
            // The last two bytes have no third.
            let passed = match text.array_windows::<3>().position(may_begin) {
                Some(passed) => passed,
                None if text.len() > 1 => text.len() - 2,
                None => return None,
            };
            self.at += passed + 1;
            let bucket = self.words.table[pair(text[passed], text[passed + 1])];
            if let Some(bucket) = usize::from(bucket).checked_sub(1).and_then(|at| self.words.buckets.get(at)) {
                self.rest = bucket.from..bucket.to;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(words: &[&str], text: &str, ignores_case: bool) -> Vec<(usize, usize)> {
        let words = Words::of(words.iter().map(|word| word.as_bytes().to_vec()), ignores_case);
        words.within(text.as_bytes()).map(|found| (found.word, found.start)).collect()
    }

    #[test]
    fn every_word_is_found_wherever_it_stands() {
        assert_eq!(found(&["os", "so", "sos"], "sosos", true), [(1, 0), (2, 0), (0, 1), (1, 2), (2, 2), (0, 3)]);
        assert_eq!(found(&["env", "/environ"], "x/ENVIRON", true), [(1, 1), (0, 2)]);
        assert_eq!(found(&["env"], "ENV", false), []);
        assert_eq!(found(&["ab"], "ab", false), [(0, 0)]);
        assert_eq!(found(&["ab"], "xyab", false), [(0, 2)]);
        assert_eq!(found(&["ab"], "a", false), []);
        assert_eq!(found(&["x", "ab"], "Xab x", true), [(1, 1), (0, 0), (0, 4)]);
        assert_eq!(found(&["\u{202e}"], "a\u{202e}", true), [(0, 1)]);
    }

    #[test]
    fn it_finds_what_a_plain_search_finds() {
        let words = ["[inst]", "{inst", "\\x", "_0x", "nc ", "ncat", "<|", "()\n{", "@a", "`a"];
        let text = "[INST] {inst} \\X41 _0X nc ncat <| ()\n{ @A `a [ { nC";
        for (place, word) in words.iter().enumerate() {
            let plain: Vec<usize> = text.to_lowercase().match_indices(word).map(|(at, _)| at).collect();
            let ours: Vec<usize> =
                found(&words, text, true).into_iter().filter(|(word, _)| *word == place).map(|(_, at)| at).collect();
            assert_eq!(ours, plain, "{word}");
        }
    }
}
