//! Many literals looked for at once: four letters of each are noted as two pairs, in two tables of which ordinary text
//! touches so few lines that they stay in the fastest cache.
//!
//! Made in microseconds for hundreds of values, where an automaton takes milliseconds; most places of ordinary text cost
//! two looks, and eight places share one branch.

/// Letters that are looked for first.
pub(crate) const GRAM: usize = 4;
/// Where in a literal its letters may stand at the latest. So whoever holds this many letters and `GRAM` knows of it.
const LATEST: usize = 4;
/// Fewer letters than this of a literal's beginning may not have been noticed by the table.
pub(crate) const UNNOTICED: usize = LATEST + GRAM - 1;
/// The shortest literal.
pub(crate) const SHORTEST: usize = 3;
/// Letters before a line break inside of base64 that make it look like a wrapped line. More than may be unnoticed.
pub(crate) const WRAPPED: usize = 8;
/// Spaces of indentation after such a break.
const INDENT: usize = 16;

/// For each pair of letters the groups of literals that have it; a literal is possible where both its pairs agree.
type Pairs = [u8; 1 << 16];
/// Places that share one branch, and the bytes that this takes.
const PLACES: usize = 8;
const BYTES: usize = PLACES + GRAM;

/// Where lines may break inside of a literal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Breaks {
    Never,
    /// After letters that look like a wrapped line of base64 or hex.
    Wrapped,
    /// After any letter: as `fold` does, and a carriage return.
    Anywhere,
}

pub(crate) struct Needle {
    pub bytes: Box<[u8]>,
    pub breaks: Breaks,
    /// What it means to whoever made it.
    pub tag: u32,
    /// Not yet whole, it must be held back.
    pub held: bool,
    /// It counts only where no letter, digit or `_` stands before it.
    pub starts_word: bool,
}

#[derive(Clone, Copy)]
struct Entry {
    gram: u32,
    needle: u32,
    offset: u8,
    starts_word: bool,
}

pub(crate) struct Needles {
    list: Vec<Needle>,
    entries: Vec<Entry>,
    tables: Option<(Box<Pairs>, Box<Pairs>)>,
    /// From four letters to the first of their entries: by hash, the next free one if that is taken.
    slots: Vec<Option<(u32, u32)>>,
    /// Those that must be held back, in the order of their bytes.
    sorted: Vec<u32>,
    first: Box<[bool]>,
    /// Those that lines may break anywhere, in the order of their bytes.
    folding: Vec<u32>,
    /// Their first two letters.
    folding_pairs: Box<[u64; 1 << 10]>,
}

/// How far a literal is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    No,
    /// As far as there are bytes: this many letters of it.
    Partly(usize),
    /// Up to this place.
    Whole(usize),
}

impl Needles {
    pub fn of(list: Vec<Needle>) -> Needles {
        let mut entries = Vec::with_capacity(list.len() * 2);
        for (at, needle) in list.iter().enumerate() {
            enter(&mut entries, at as u32, needle);
        }
        entries.sort_unstable_by_key(|entry| (entry.gram, entry.needle, entry.offset));
        let tables = (!entries.is_empty()).then(|| tables_of(&entries));
        let mut slots = vec![None; (entries.len() * 2).next_power_of_two()];
        for (at, entry) in entries.iter().enumerate() {
            let is_first = at == 0 || entries[at - 1].gram != entry.gram;
            let free = hashed(entry.gram, slots.len()).find(|slot| slots[*slot].is_none());
            if let Some(slot) = free.filter(|_| is_first) {
                slots[slot] = Some((entry.gram, at as u32));
            }
        }
        let in_order = |which: fn(&Needle) -> bool| {
            let mut sorted: Vec<u32> = (0..list.len() as u32).filter(|at| which(&list[*at as usize])).collect();
            sorted.sort_by(|one, other| list[*one as usize].bytes.cmp(&list[*other as usize].bytes));
            sorted
        };
        let sorted = in_order(|needle| needle.held);
        let mut first = vec![false; 256].into_boxed_slice();
        for at in &sorted {
            first[usize::from(list[*at as usize].bytes[0])] = true;
        }
        let folding = in_order(|needle| needle.breaks == Breaks::Anywhere);
        let mut folding_pairs = Box::new([0; 1 << 10]);
        for at in &folding {
            let bytes = &list[*at as usize].bytes;
            let (word, bit) = pair_bit(bytes[0], bytes[1]);
            folding_pairs[word] |= bit;
        }
        Needles { list, entries, tables, slots, sorted, first, folding, folding_pairs }
    }

    /// Literals whose first letters stand right before a line's end, so few that the table can't notice them.
    #[inline(never)]
    pub fn each_folded(&self, text: &[u8], from: usize, mut found: impl FnMut(usize, u32)) {
        if self.folding.is_empty() {
            return;
        }
        for line in memchr::memchr2_iter(b'\n', b'\r', &text[from..]) {
            let end = from + line;
            let near = &text[end.saturating_sub(UNNOTICED)..end];
            let Some(last) = near.last().filter(|byte| !is_break(**byte)) else { continue };
            // Where the text ends with the line, any letter may follow.
            let next = match text.get(end + 1) {
                Some(next) if !next.is_ascii_whitespace() => Some(next),
                _ => after_breaks(text, end).and_then(|after| text.get(after)),
            };
            let is_possible = |one: u8, two: Option<&u8>| match two {
                Some(two) => {
                    let (word, bit) = pair_bit(one, *two);
                    self.folding_pairs[word] & bit != 0
                }
                None => true,
            };
            if is_possible(*last, next) {
                self.folded_at(text, end - 1, end, &mut found);
            }
            for (back, pair) in near.windows(2).rev().enumerate().take_while(|(_, pair)| !is_break(pair[0])) {
                if is_possible(pair[0], Some(&pair[1])) {
                    self.folded_at(text, end - 2 - back, end, &mut found);
                }
            }
        }
    }

    fn folded_at(&self, text: &[u8], start: usize, end: usize, found: &mut impl FnMut(usize, u32)) {
        let letters = &text[start..end];
        let first = self.folding.partition_point(|at| *self.get(*at).bytes < *letters);
        let alike = self.folding[first..].iter().take_while(|at| self.get(**at).bytes.starts_with(letters));
        alike.for_each(|at| found(start, *at));
    }

    pub fn get(&self, at: u32) -> &Needle {
        &self.list[at as usize]
    }

    /// Places from `from` on where letters of a literal stand; each with the literals and the letters before them.
    pub fn each(&self, text: &[u8], from: usize, mut found: impl FnMut(usize, u32, usize)) {
        let Some((first, second)) = &self.tables else { return };
        places(text, from, first, second, |at| self.at(text, at, &mut found));
    }

    #[inline(never)]
    fn at(&self, text: &[u8], at: usize, found: &mut impl FnMut(usize, u32, usize)) {
        let Some(letters) = text.get(at..).and_then(|rest| rest.first_chunk()) else { return };
        let gram = u32::from_le_bytes(*letters);
        let mut slots = hashed(gram, self.slots.len()).map_while(|slot| self.slots[slot]);
        let Some((_, first)) = slots.find(|(known, _)| *known == gram) else { return };
        for entry in self.entries[first as usize..].iter().take_while(|entry| entry.gram == gram) {
            let offset = usize::from(entry.offset);
            // Here rather than later: most places where a short keyword stands are inside of a word.
            let in_word = at.checked_sub(offset + 1).is_some_and(|before| is_word(text[before]));
            if !(entry.starts_word && in_word) {
                found(at, entry.needle, offset);
            }
        }
    }

    /// Where a literal begins whose letters at `offset` stand at `at`; breaks of wrapped lines between are passed over.
    pub fn beginning(&self, text: &[u8], at: usize, needle: &Needle, offset: usize) -> Option<usize> {
        if needle.breaks != Breaks::Wrapped {
            return at.checked_sub(offset);
        }
        let mut at = at;
        for _ in 0..offset {
            at = before_break(text, at).checked_sub(1)?;
        }
        Some(at)
    }

    /// Whether the literal stands at `start`.
    pub fn reach(&self, text: &[u8], start: usize, needle: &Needle) -> Reach {
        let rest = &text[start..];
        let common = rest.len().min(needle.bytes.len());
        if rest[..common] == needle.bytes[..common] {
            return if common == needle.bytes.len() { Reach::Whole(start + common) } else { Reach::Partly(common) };
        }
        match needle.breaks {
            Breaks::Never => Reach::No,
            breaks => broken(text, start, &needle.bytes, breaks),
        }
    }

    /// The first place from which on the end of `text` may become a literal that the table has not noticed yet.
    pub fn may_begin(&self, text: &[u8]) -> usize {
        let from = text.len().saturating_sub(UNNOTICED);
        let plain = (from..text.len()).find(|start| self.begins(&text[*start..], &text[..*start], false));
        let unwrapped = self.may_begin_wrapped(text);
        plain.unwrap_or(text.len()).min(unwrapped.unwrap_or(text.len()))
    }

    /// The same, if a line that looks like wrapped base64 ends here.
    fn may_begin_wrapped(&self, text: &[u8]) -> Option<usize> {
        // Letters of the end, without the one break that can be among so few.
        let mut letters = [0; UNNOTICED];
        let mut at = text.len();
        let mut best = None;
        let mut broken = false;
        for count in (0..UNNOTICED).rev() {
            let before = before_break(text, at);
            broken |= before < at;
            at = before;
            if at == 0 || !is_base64(text[at - 1]) {
                break;
            }
            at -= 1;
            letters[count] = text[at];
            if broken && self.begins(&letters[count..], &text[..at], true) {
                best = Some(at);
            }
        }
        best
    }

    fn begins(&self, letters: &[u8], before: &[u8], wrapping: bool) -> bool {
        let Some(first) = letters.first() else { return false };
        if !self.first.get(usize::from(*first)).copied().unwrap_or(false) {
            return false;
        }
        let from = self.sorted.partition_point(|at| *self.get(*at).bytes < *letters);
        let in_word = before.last().is_some_and(|letter| is_word(*letter));
        self.sorted[from..]
            .iter()
            .map(|at| self.get(*at))
            .take_while(|needle| needle.bytes.starts_with(letters))
            .any(|needle| !(needle.starts_word && in_word) && (!wrapping || needle.breaks == Breaks::Wrapped))
    }
}

/// One branch for eight places: looks into the tables cost less than a wrong guess of where to go on. By itself, so that
/// all it needs stays in registers.
#[inline(never)]
fn places(text: &[u8], from: usize, first: &Pairs, second: &Pairs, mut found: impl FnMut(usize)) {
    let mut at = from;
    while let Some(bytes) = text.get(at..).and_then(|rest| rest.first_chunk::<BYTES>()) {
        let possible = |place: usize| {
            let one = u16::from_le_bytes([bytes[place], bytes[place + 1]]);
            let two = u16::from_le_bytes([bytes[place + 2], bytes[place + 3]]);
            first[usize::from(one)] & second[usize::from(two)]
        };
        let any = possible(0)
            | possible(1)
            | possible(2)
            | possible(3)
            | possible(4)
            | possible(5)
            | possible(6)
            | possible(7);
        if any != 0 {
            (0..PLACES).filter(|place| possible(*place) != 0).for_each(|place| found(at + place));
        }
        at += PLACES;
    }
    while text.len() >= at + GRAM {
        found(at);
        at += 1;
    }
}

/// Literals with the same first pair are of one group: the one where it makes the least of ordinary text possible.
fn tables_of(entries: &[Entry]) -> (Box<Pairs>, Box<Pairs>) {
    let mut first = Box::new([0; 1 << 16]);
    let mut second = Box::new([0; 1 << 16]);
    let mut grams: Vec<(u16, u16)> =
        entries.iter().map(|entry| (entry.gram as u16, (entry.gram >> 16) as u16)).collect();
    grams.sort_unstable();
    grams.dedup();
    // How common the first and the second pairs of each group are.
    let mut common = [(0u64, 0u64); 8];
    for same in grams.chunk_by(|one, other| one.0 == other.0) {
        let pair = same[0].0;
        let more = |group: usize| -> (u64, u64) {
            let new = same.iter().filter(|(_, two)| second[usize::from(*two)] & (1u8 << group) == 0);
            let (ones, twos) = common[group];
            (ones + frequency(pair), twos + new.map(|(_, two)| frequency(*two)).sum::<u64>())
        };
        let cost = |group: usize| {
            let ((ones, twos), (before_ones, before_twos)) = (more(group), common[group]);
            ones.saturating_mul(twos) - before_ones.saturating_mul(before_twos)
        };
        let group = (0..8).min_by_key(|group| cost(*group)).unwrap_or(0);
        common[group] = more(group);
        first[usize::from(pair)] |= 1 << group;
        same.iter().for_each(|(_, two)| second[usize::from(*two)] |= 1 << group);
    }
    (first, second)
}

/// How often a pair stands in ordinary output, roughly.
fn frequency(pair: u16) -> u64 {
    let [one, two] = pair.to_le_bytes();
    let often = |letter: u8| match rarity(letter) {
        0 => 24,
        2 => 9,
        4 => 4,
        5 => 2,
        _ => 1,
    };
    often(one) * often(two)
}

/// The slots where four letters may be noted, in the order in which they are tried.
fn hashed(gram: u32, slots: usize) -> impl Iterator<Item = usize> {
    let start = (gram.wrapping_mul(0x9e37_79b1) >> 12) as usize;
    (start..start + slots).map(move |slot| slot & (slots - 1))
}

fn enter(entries: &mut Vec<Entry>, at: u32, needle: &Needle) {
    let Needle { bytes, starts_word, .. } = needle;
    let starts_word = *starts_word;
    let gram =
        |offset: usize| u32::from_le_bytes([bytes[offset], bytes[offset + 1], bytes[offset + 2], bytes[offset + 3]]);
    if bytes.len() < SHORTEST {
        return;
    }
    if bytes.len() == SHORTEST {
        // Any letter of a token may follow.
        for follows in (0..=u8::MAX).filter(|letter| is_word(*letter) || *letter == b'-') {
            let gram = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], follows]);
            entries.push(Entry { gram, needle: at, offset: 0, starts_word });
        }
        return;
    }
    if needle.breaks == Breaks::Wrapped && bytes.len() >= 2 * GRAM {
        // Wherever a line breaks, one of the two is whole.
        entries.push(Entry { gram: gram(0), needle: at, offset: 0, starts_word });
        entries.push(Entry { gram: gram(GRAM), needle: at, offset: GRAM as u8, starts_word });
        return;
    }
    let last = (bytes.len() - GRAM).min(LATEST);
    let offset =
        (0..=last).max_by_key(|offset| bytes[*offset..offset + GRAM].iter().map(|letter| rarity(*letter)).sum::<u32>());
    let offset = offset.unwrap_or(0);
    entries.push(Entry { gram: gram(offset), needle: at, offset: offset as u8, starts_word });
}

/// How seldom a letter stands in ordinary output, roughly.
fn rarity(letter: u8) -> u32 {
    match letter {
        b'e' | b't' | b'a' | b'o' | b'i' | b'n' | b's' | b'r' | b' ' | b'/' | b'.' | b'l' | b'c' | b'd' => 0,
        b'p' | b'u' | b'm' | b'h' | b'-' | b'_' | b'0'..=b'9' | b':' | b'g' | b'f' => 2,
        b'a'..=b'z' => 4,
        b'A'..=b'Z' => 5,
        _ => 6,
    }
}

/// Compares letter by letter, where lines may break in between.
fn broken(text: &[u8], start: usize, bytes: &[u8], breaks: Breaks) -> Reach {
    let mut at = start;
    for (count, letter) in bytes.iter().enumerate() {
        if count > 0 {
            let after = match (breaks, text.get(at)) {
                // Most letters are what they should be.
                (_, Some(other)) if other == letter => Some(at),
                (Breaks::Anywhere, Some(other)) if is_break(*other) => after_breaks(text, at),
                (Breaks::Wrapped, _) => after_break(text, at),
                _ => Some(at),
            };
            match after {
                Some(after) => at = after,
                // The break itself is not whole yet.
                None => return Reach::Partly(count),
            }
        }
        match text.get(at) {
            None => return Reach::Partly(count),
            Some(other) if other == letter => at += 1,
            Some(_) => return Reach::No,
        }
    }
    Reach::Whole(at)
}

/// The place after all line ends and spaces at `at`, of which there are a few; `None` if the end of the text comes first.
fn after_breaks(text: &[u8], at: usize) -> Option<usize> {
    let rest = &text[at..];
    let space = |byte: &&u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
    let count = rest.iter().take(INDENT).take_while(space).count();
    (count < rest.len() || count == INDENT).then_some(at + count)
}

/// Where the bit of a pair of letters is.
fn pair_bit(one: u8, two: u8) -> (usize, u64) {
    let pair = usize::from(one) << 8 | usize::from(two);
    (pair >> 6, 1 << (pair & 63))
}

fn is_break(letter: u8) -> bool {
    matches!(letter, b'\n' | b'\r')
}

/// The place after a break of a wrapped line at `at`, or `at`; `None` if the end of the text comes first.
fn after_break(text: &[u8], at: usize) -> Option<usize> {
    let rest = &text[at..];
    let mark = match rest {
        [b'\n', ..] => 1,
        [b'\r', b'\n', ..] | [b'\\', b'n', ..] => 2,
        [b'\r'] | [b'\\'] => return None,
        _ => return Some(at),
    };
    if !looks_wrapped(text, at) {
        return Some(at);
    }
    let indent = rest[mark..].iter().take(INDENT).take_while(|letter| matches!(letter, b' ' | b'\t')).count();
    (mark + indent < rest.len()).then_some(at + mark + indent)
}

/// The place before a break of a wrapped line that ends at `at`, or `at`.
fn before_break(text: &[u8], at: usize) -> usize {
    let line = &text[..at];
    let indent = line.iter().rev().take(INDENT).take_while(|letter| matches!(letter, b' ' | b'\t')).count();
    let line = &line[..at - indent];
    let before = match line {
        [.., b'\r', b'\n'] | [.., b'\\', b'n'] => line.len() - 2,
        [.., b'\n'] => line.len() - 1,
        // The beginning of a break, where the text ends for now.
        [.., b'\r' | b'\\'] if at == text.len() => line.len() - 1,
        _ => return at,
    };
    if looks_wrapped(text, before) { before } else { at }
}

fn looks_wrapped(text: &[u8], end: usize) -> bool {
    end >= WRAPPED && text[end - WRAPPED..end].iter().all(|letter| is_base64(*letter))
}

pub(crate) fn is_base64(letter: u8) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, b'+' | b'/' | b'-' | b'_')
}

pub(crate) fn is_word(letter: u8) -> bool {
    letter.is_ascii_alphanumeric() || letter == b'_'
}
