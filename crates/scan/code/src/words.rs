//! Many words in a text at once. Made in microseconds, since a cold scan pays for it, and most bytes cost one look: each
//! word is in one of 64 groups, and four tables say which groups have a word that could begin here.

/// How many of a word's first bytes are looked at before the word itself is.
const HEAD: usize = 4;
const GROUPS: usize = 64;

pub(crate) struct Words {
    /// For each of the first bytes: the groups that have a word with that byte there.
    heads: Box<[[u64; 256]; HEAD]>,
    /// Sorted, each with its place among those that were given.
    words: Vec<(Vec<u8>, usize)>,
    ignores_case: bool,
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
        let given = words.into_iter().enumerate();
        let mut words: Vec<(Vec<u8>, usize)> =
            given.map(|(place, word)| (word, place)).filter(|(word, _)| !word.is_empty()).collect();
        // What begins alike is in one group.
        words.sort();
        let mut made = Words { heads: Box::new([[0; 256]; HEAD]), words, ignores_case };
        for group in 0..GROUPS {
            for (word, _) in made.words.get(made.members(group)).unwrap_or(&[]) {
                for (place, head) in made.heads.iter_mut().enumerate() {
                    match word.get(place) {
                        Some(byte) if ignores_case => {
                            head[usize::from(byte.to_ascii_lowercase())] |= 1 << group;
                            head[usize::from(byte.to_ascii_uppercase())] |= 1 << group;
                        }
                        Some(byte) => head[usize::from(*byte)] |= 1 << group,
                        None => head.iter_mut().for_each(|groups| *groups |= 1 << group),
                    }
                }
            }
        }
        made
    }

    /// All of them, wherever they stand, in the order of the text.
    pub fn within<'w>(&'w self, text: &'w [u8]) -> impl Iterator<Item = Found> {
        Within { words: self, text, at: 0, groups: 0, rest: 0..0 }
    }

    fn members(&self, group: usize) -> std::ops::Range<usize> {
        let begin = |group: usize| group * self.words.len() / GROUPS;
        begin(group)..begin(group + 1)
    }

    fn is(&self, word: &[u8], stands: &[u8]) -> bool {
        match self.ignores_case {
            true => stands.eq_ignore_ascii_case(word),
            false => stands == word,
        }
    }

    /// The groups that have a word that could begin with these bytes, which may be fewer at the end of a text.
    fn may_begin(&self, bytes: &[u8]) -> u64 {
        self.heads.iter().zip(bytes).fold(u64::MAX, |groups, (head, byte)| groups & head[usize::from(*byte)])
    }
}

struct Within<'w> {
    words: &'w Words,
    text: &'w [u8],
    at: usize,
    /// Groups that are still to be compared with what begins before `at`, and the rest of the one that is being.
    groups: u64,
    rest: std::ops::Range<usize>,
}

impl Iterator for Within<'_> {
    type Item = Found;

    fn next(&mut self) -> Option<Found> {
        loop {
            for (word, place) in self.words.words.get(self.rest.clone()).unwrap_or(&[]) {
                self.rest.start += 1;
                let (start, end) = (self.at - 1, self.at - 1 + word.len());
                // The last letter first: it tells apart what begins alike, such as indentation from a line of spaces.
                let ends_alike =
                    self.text.get(end - 1).zip(word.last()).is_some_and(|(one, other)| (one ^ other) & !32 == 0);
                if ends_alike && self.words.is(word, &self.text[start..end]) {
                    return Some(Found { word: *place, start, end });
                }
            }
            if self.groups != 0 {
                self.rest = self.words.members(self.groups.trailing_zeros() as usize);
                self.groups &= self.groups - 1;
                continue;
            }
            let text = self.text.get(self.at..)?;
            let [first, second, third, fourth] = &*self.words.heads;
            let may_begin = |bytes: &[u8; HEAD]| {
                let [one, two, three, four] = bytes.map(usize::from);
                first[one] & second[two] & third[three] & fourth[four] != 0
            };
            let passed = text.array_windows::<HEAD>().position(may_begin).or_else(|| {
                let short = text.len().saturating_sub(HEAD - 1)..text.len();
                short.into_iter().find(|at| self.words.may_begin(&text[*at..]) != 0)
            })?;
            self.groups = self.words.may_begin(&text[passed..text.len().min(passed + HEAD)]);
            self.at += passed + 1;
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
        assert_eq!(found(&["x", "ab"], "Xab x", true), [(0, 0), (1, 1), (0, 4)]);
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
