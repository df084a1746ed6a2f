//! Comparing and merging texts, line by line.
//!
//! What is compared was written by an agent: the work is bounded, and what would take more of it is shown coarser.

use imara_diff::{Algorithm, Diff, InternedInput, Interner, Token};
use std::{iter, ops::Range};

/// Git looks for a NUL in so many bytes, and nobody should have to learn a second rule.
const LOOKED_AT: usize = 8000;
/// A merge that nobody could read again is not made.
const LARGEST_MERGED: usize = 4 << 20;
const MOST_LINES_MERGED: usize = 200_000;
/// Both sides together. Above it only the edges that two texts share are found, in place.
const MOST_LINES_ALIGNED: usize = 4_000_000;
/// What histogram and Myers may cost one comparison, in lines times lines: both are quadratic when asked to be.
const MOST_WORK: usize = 1 << 28;
/// How far a change may slide to where a person would have put it.
const ROOM_TO_SLIDE: usize = 64;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lines {
    pub added: usize,
    pub removed: usize,
}

pub fn is_text(bytes: &[u8]) -> bool {
    !bytes.iter().take(LOOKED_AT).any(|byte| *byte == 0)
}

/// How many lines came and went. What is no text has no lines.
pub fn count(old: &[u8], new: &[u8]) -> Lines {
    if !is_text(old) || !is_text(new) {
        return Lines::default();
    }
    changes(old, new).iter().fold(Lines::default(), |lines, change| Lines {
        added: lines.added + change.new.len(),
        removed: lines.removed + change.old.len(),
    })
}

/// What both sides made of `base`, or nothing if that is for a person to say: changes that overlap or touch, unless
/// they are the same change.
pub fn merge(base: &[u8], host: &[u8], sandbox: &[u8]) -> Option<Vec<u8>> {
    if ![base, host, sandbox].into_iter().all(is_mergeable) {
        return None;
    }
    let mut both = edits(base, host);
    both.extend(edits(base, sandbox));
    both.sort_by_key(|edit| (edit.old.start, edit.old.end));
    both.dedup();

    let apart = |edit: &Edit<'_>, next: &Edit<'_>| edit.old.end < next.old.start;
    both.is_sorted_by(apart).then(|| edited(base, &both))
}

/// A run of lines replaced by another, counted from zero. Between two of them at least one line stayed as it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    pub old: Range<usize>,
    pub new: Range<usize>,
}

/// With their terminators: the last one may have none.
pub(crate) fn lines(text: &[u8]) -> impl DoubleEndedIterator<Item = &[u8]> {
    text.split_inclusive(|byte| *byte == b'\n')
}

/// A text read from top to bottom, in steps that end at numbered lines: what is not looked at costs no memory.
pub(crate) struct Walk<I> {
    lines: I,
    passed: usize,
}

impl<'a> Walk<()> {
    pub fn over(text: &'a [u8]) -> Walk<impl Iterator<Item = &'a [u8]>> {
        Walk { lines: lines(text), passed: 0 }
    }
}

impl<'a, I: Iterator<Item = &'a [u8]>> Walk<I> {
    pub fn skip_to(&mut self, end: usize) {
        self.take_to(end).for_each(drop);
    }

    #[must_use = "lines are passed as they are read"]
    pub fn take_to(&mut self, end: usize) -> impl Iterator<Item = &'a [u8]> {
        let count = end.saturating_sub(self.passed);
        self.passed += count;
        self.lines.by_ref().take(count)
    }
}

/// What turns `old` into `new`, from top to bottom.
pub(crate) fn changes(old: &[u8], new: &[u8]) -> Vec<Change> {
    if old == new {
        return Vec::new();
    }
    let whole = Change { old: 0..lines(old).count(), new: 0..lines(new).count() };
    if whole.old.len() + whole.new.len() > MOST_LINES_ALIGNED {
        let same_above = shared(lines(old), lines(new));
        let same_below = shared(lines(old).rev(), lines(new).rev());
        return vec![whole.without(same_above, same_below)];
    }
    let mut interner = Interner::new(0);
    let old: Vec<Token> = lines(old).map(|line| interner.intern(line)).collect();
    let new: Vec<Token> = lines(new).map(|line| interner.intern(line)).collect();
    Comparison { old: &old, new: &new, interner: &interner, work_left: MOST_WORK, changes: Vec::new() }.run()
}

#[derive(PartialEq, Eq)]
struct Edit<'a> {
    old: Range<usize>,
    text: Vec<&'a [u8]>,
}

fn is_mergeable(text: &[u8]) -> bool {
    is_text(text) && text.len() <= LARGEST_MERGED && lines(text).count() <= MOST_LINES_MERGED
}

fn edits<'a>(base: &[u8], side: &'a [u8]) -> Vec<Edit<'a>> {
    let mut side_lines = Walk::over(side);
    let edit = |change: Change| {
        side_lines.skip_to(change.new.start);
        Edit { old: change.old, text: side_lines.take_to(change.new.end).collect() }
    };
    changes(base, side).into_iter().map(edit).collect()
}

fn edited(base: &[u8], edits: &[Edit<'_>]) -> Vec<u8> {
    let mut text = Vec::with_capacity(base.len());
    let mut base_lines = Walk::over(base);
    for edit in edits {
        base_lines.take_to(edit.old.start).for_each(|line| text.extend_from_slice(line));
        edit.text.iter().for_each(|line| text.extend_from_slice(line));
        base_lines.skip_to(edit.old.end);
    }
    base_lines.take_to(usize::MAX).for_each(|line| text.extend_from_slice(line));
    text
}

impl Change {
    /// Less what both sides share at its edges, given as the most that may be taken off. Above goes first: a line
    /// cannot be taken off twice.
    fn without(&self, above: usize, below: usize) -> Change {
        let shorter = self.old.len().min(self.new.len());
        let above = above.min(shorter);
        let below = below.min(shorter - above);
        let within = |range: &Range<usize>| range.start + above..range.end - below;
        Change { old: within(&self.old), new: within(&self.new) }
    }

    fn work(&self) -> usize {
        let shorter = self.old.len().min(self.new.len());
        shorter.saturating_add(1).saturating_mul(self.old.len() + self.new.len())
    }
}

struct Comparison<'a> {
    old: &'a [Token],
    new: &'a [Token],
    interner: &'a Interner<&'a [u8]>,
    work_left: usize,
    changes: Vec<Change>,
}

impl Comparison<'_> {
    /// Lines that both sides have once hold the rest in place, and finding them is cheap for any text: only what
    /// lies between two of them goes to an algorithm that an agent could keep busy.
    fn run(mut self) -> Vec<Change> {
        let ends = (self.old.len(), self.new.len());
        let anchors = anchors(self.old, self.new, self.interner.num_tokens() as usize);
        let mut start = (0, 0);
        for (old, new) in anchors.into_iter().chain(iter::once(ends)) {
            self.compare(Change { old: start.0..old, new: start.1..new });
            start = (old + 1, new + 1);
        }
        self.changes
    }

    fn compare(&mut self, gap: Change) {
        let old = self.old.get(gap.old.clone()).unwrap_or_default();
        let new = self.new.get(gap.new.clone()).unwrap_or_default();
        let same_above = shared(old, new);
        let same_below = shared(old.iter().rev(), new.iter().rev());
        let differing = gap.without(same_above, same_below);
        if differing.old.is_empty() && differing.new.is_empty() {
            return;
        }
        let Some(work_left) = self.work_left.checked_sub(differing.work()) else {
            self.changes.push(differing);
            return;
        };
        self.work_left = work_left;
        self.refine(gap.without(
            (differing.old.start - gap.old.start).saturating_sub(ROOM_TO_SLIDE),
            (gap.old.end - differing.old.end).saturating_sub(ROOM_TO_SLIDE),
        ));
    }

    fn refine(&mut self, part: Change) {
        let line = |token: &Token| self.interner[*token];
        // Interned anew: the algorithm's tables are as long as the highest token.
        let mut input = InternedInput::default();
        input.update_before(self.old.get(part.old.clone()).unwrap_or_default().iter().map(line));
        input.update_after(self.new.get(part.new.clone()).unwrap_or_default().iter().map(line));
        let mut diff = Diff::compute(Algorithm::Histogram, &input);
        diff.postprocess_lines(&input);
        let placed =
            |at: &Range<usize>, found: Range<u32>| at.start + found.start as usize..at.start + found.end as usize;
        self.changes.extend(
            diff.hunks().map(|hunk| Change { old: placed(&part.old, hunk.before), new: placed(&part.new, hunk.after) }),
        );
    }
}

fn shared<T: PartialEq>(left: impl IntoIterator<Item = T>, right: impl IntoIterator<Item = T>) -> usize {
    iter::zip(left, right).take_while(|(left, right)| left == right).count()
}

/// Where a line is in one text.
#[derive(Clone, Copy)]
enum Place {
    Nowhere,
    Once(usize),
    Often,
}

/// The lines that each side has exactly once, as many as are in the same order on both.
fn anchors(old: &[Token], new: &[Token], distinct: usize) -> Vec<(usize, usize)> {
    let mut pairs: Vec<(usize, usize)> = iter::zip(places(old, distinct), places(new, distinct))
        .filter_map(|places| match places {
            (Place::Once(old), Place::Once(new)) => Some((old, new)),
            _ => None,
        })
        .collect();
    pairs.sort_unstable();
    longest_rising(&pairs)
}

fn places(tokens: &[Token], distinct: usize) -> Vec<Place> {
    let mut places = vec![Place::Nowhere; distinct];
    for (index, token) in tokens.iter().enumerate() {
        if let Some(place) = places.get_mut(token.0 as usize) {
            *place = match place {
                Place::Nowhere => Place::Once(index),
                Place::Once(_) | Place::Often => Place::Often,
            };
        }
    }
    places
}

/// Of pairs that rise on the left, the most that also rise on the right.
fn longest_rising(pairs: &[(usize, usize)]) -> Vec<(usize, usize)> {
    // For each length of a run, the lowest right side that ends one, and whose it is.
    let mut ends: Vec<(usize, usize)> = Vec::new();
    let mut before: Vec<Option<usize>> = Vec::with_capacity(pairs.len());
    for (index, (_, right)) in pairs.iter().enumerate() {
        let length = ends.partition_point(|(end, _)| end < right);
        before.push(length.checked_sub(1).and_then(|shorter| ends.get(shorter)).map(|(_, index)| *index));
        match ends.get_mut(length) {
            Some(end) => *end = (*right, index),
            None => ends.push((*right, index)),
        }
    }
    let last = ends.last().map(|(_, index)| *index);
    let backwards = iter::successors(last, |index| before.get(*index).copied().flatten());
    let mut run: Vec<(usize, usize)> = backwards.filter_map(|index| pairs.get(index).copied()).collect();
    run.reverse();
    run
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Few words, so that lines repeat and everything is ambiguous.
    fn text() -> impl Strategy<Value = Vec<u8>> {
        let word = prop::sample::select(vec!["a", "b", "  c", "}", "", "a\r", "d"]);
        (prop::collection::vec(word, 0..30), any::<bool>()).prop_map(|(words, ended)| {
            let mut text = words.join("\n").into_bytes();
            if ended && !text.is_empty() {
                text.push(b'\n');
            }
            text
        })
    }

    /// Lines that are all different, of which each side changes some, with one that nobody touched between any two.
    #[derive(Clone, Debug)]
    enum Place {
        Kept,
        Host(Vec<u8>),
        Sandbox(Vec<u8>),
        Both(Vec<u8>),
    }

    fn places() -> impl Strategy<Value = Vec<Place>> {
        let replacement = || prop::collection::vec(any::<u8>(), 0..3);
        let place = prop_oneof![
            Just(Place::Kept),
            replacement().prop_map(Place::Host),
            replacement().prop_map(Place::Sandbox),
            replacement().prop_map(Place::Both),
        ];
        prop::collection::vec(place, 0..20)
    }

    fn written(places: &[Place], replaced: impl Fn(&Place) -> Option<Vec<u8>>) -> Vec<u8> {
        let mut text = String::new();
        for (index, place) in places.iter().enumerate() {
            match replaced(place) {
                None => text.push_str(&format!("line {index}\n")),
                Some(lines) => {
                    lines.iter().enumerate().for_each(|(at, line)| text.push_str(&format!("new {index}.{at} {line}\n")))
                }
            }
            text.push_str(&format!("between {index}\n"));
        }
        text.into_bytes()
    }

    fn after(old: &[u8], new: &[u8]) -> Vec<u8> {
        edited(old, &edits(old, new))
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn changes_lead_from_the_old_to_the_new(old in text(), new in text()) {
            let changes = changes(&old, &new);
            prop_assert_eq!(after(&old, &new), new);
            prop_assert!(changes.is_sorted_by(|change, next| change.old.end < next.old.start && change.new.end < next.new.start));
        }

        #[test]
        fn any_bytes_can_be_compared(old: Vec<u8>, new: Vec<u8>) {
            prop_assert_eq!(after(&old, &new), new);
        }

        #[test]
        fn what_only_one_side_changed_is_taken(base in text(), side in text()) {
            prop_assert_eq!(merge(&base, &base, &side), Some(side.clone()));
            prop_assert_eq!(merge(&base, &side, &base), Some(side.clone()));
        }

        #[test]
        fn what_both_sides_made_alike_is_taken_once(base in text(), side in text()) {
            prop_assert_eq!(merge(&base, &side, &side), Some(side.clone()));
        }

        #[test]
        fn neither_side_goes_first(base in text(), host in text(), sandbox in text()) {
            prop_assert_eq!(merge(&base, &host, &sandbox), merge(&base, &sandbox, &host));
        }

        #[test]
        fn edits_with_a_line_between_them_are_both_taken(places in places()) {
            let base = written(&places, |_| None);
            let host = written(&places, |place| match place {
                Place::Host(lines) | Place::Both(lines) => Some(lines.clone()),
                Place::Kept | Place::Sandbox(_) => None,
            });
            let sandbox = written(&places, |place| match place {
                Place::Sandbox(lines) | Place::Both(lines) => Some(lines.clone()),
                Place::Kept | Place::Host(_) => None,
            });
            let merged = written(&places, |place| match place {
                Place::Host(lines) | Place::Sandbox(lines) | Place::Both(lines) => Some(lines.clone()),
                Place::Kept => None,
            });
            prop_assert_eq!(merge(&base, &host, &sandbox), Some(merged));
        }
    }

    fn merged(base: &str, host: &str, sandbox: &str) -> Option<String> {
        let merged = merge(base.as_bytes(), host.as_bytes(), sandbox.as_bytes())?;
        Some(String::from_utf8(merged).expect("it was text"))
    }

    #[test]
    fn a_nul_within_git_s_reach_makes_a_binary() {
        let mut bytes = vec![b'a'; LOOKED_AT];
        bytes.push(0);
        assert!(is_text(&bytes));
        bytes[LOOKED_AT - 1] = 0;
        assert!(!is_text(&bytes));
        assert!(is_text(b""));
    }

    #[test]
    fn lines_are_counted_with_their_terminators() {
        assert_eq!(count(b"a\nb\n", b"a\nc\nd\n"), Lines { added: 2, removed: 1 });
        assert_eq!(count(b"a\n", b"a"), Lines { added: 1, removed: 1 });
        assert_eq!(count(b"a\n", b"a\r\n"), Lines { added: 1, removed: 1 });
        assert_eq!(count(b"", b"a"), Lines { added: 1, removed: 0 });
        assert_eq!(count(b"\0a\n", b""), Lines::default());
    }

    #[test]
    fn changes_that_touch_are_a_conflict() {
        assert_eq!(merged("1\n2\n", "one\n2\n", "1\ntwo\n"), None);
        assert_eq!(merged("1\n2\n", "2\n", "1\ntwo\n"), None);
        assert_eq!(merged("1\n2\n", "1\nx\n2\n", "1\ny\n2\n"), None);
        assert_eq!(merged("1\n2\n", "1\nx\n2\n", "1\ntwo\n"), None);
        assert_eq!(merged("1\n", "1\nx\n", "1\ny\n"), None);
        assert_eq!(merged("", "x\n", "y\n"), None);
        assert_eq!(merged("1\n2\n3\n", "one\n2\n3\n", "1\n2\nthree\n").as_deref(), Some("one\n2\nthree\n"));
    }

    #[test]
    fn one_change_the_sides_share_does_not_stop_the_others() {
        let merged = merged("1\n2\n3\n4\n5\n", "x\n2\n3\n4\nfive\n", "x\n2\nthree\n4\n5\n");
        assert_eq!(merged.as_deref(), Some("x\n2\nthree\n4\nfive\n"));
    }

    #[test]
    fn the_ends_of_lines_stay_as_they_were() {
        let kept = merged("1\r\n2\r\n3\r\n4", "1\r\n2\r\n3\r\nfour", "one\n2\r\n3\r\n4");
        assert_eq!(kept.as_deref(), Some("one\n2\r\n3\r\nfour"));
        assert_eq!(merged("1\n2\n3", "1\n2\n3\n", "one\n2\n3").as_deref(), Some("one\n2\n3\n"));
    }

    #[test]
    fn what_is_no_text_or_too_much_of_it_is_not_merged() {
        assert_eq!(merge(b"\0", b"\0", b"\0"), None);
        assert_eq!(merge(b"a\n", b"a\n", b"\0"), None);
        let many_lines = vec![b'\n'; MOST_LINES_MERGED + 1];
        assert_eq!(merge(b"", b"", &many_lines), None);
        assert_eq!(merge(b"", b"", &many_lines[1..]).as_deref(), Some(&many_lines[1..]));
        let one_line = vec![b'a'; LARGEST_MERGED + 1];
        assert_eq!(merge(b"", &one_line, b""), None);
    }

    #[test]
    fn a_text_that_never_ends_is_replaced_between_its_edges() {
        let old = vec![b'\n'; MOST_LINES_ALIGNED];
        let new = [b"\n\nhere\n", &old[..]].concat();
        assert_eq!(changes(&old, &new), [Change { old: 2..2, new: 2..5 }]);
    }

    /// Without a bound the larger ones would run until the time of a test is over; the smaller are within it.
    #[test]
    fn hostile_texts_take_no_longer_than_others() {
        for size in [6_000, 100_000] {
            let text = |line: &dyn Fn(usize) -> String| (0..size).map(line).collect::<String>().into_bytes();
            let every_other = |word: &'static str, different: usize| {
                text(&|index| match index % 2 {
                    0 => format!("{}\n", index % different),
                    _ => format!("{word} {index}\n"),
                })
            };
            let scattered = |index: usize| index.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
            let few_words = |seed: usize| text(&|index| format!("{}\n", scattered(index + seed) % 50));
            let repeating = |period: usize| text(&|index| format!("{}\n", index % period));
            for [old, new] in [
                [every_other("old", size), every_other("new", size)],
                [every_other("old", size / 2), every_other("new", size / 2)],
                [few_words(0), few_words(1_000_000)],
                [repeating(60), repeating(61)],
            ] {
                assert_eq!(after(&old, &new), new);
            }
        }
    }

    #[test]
    fn an_edit_within_many_alike_lines_stays_small() {
        let old: String = (0..100_000).map(|index| format!("{}\n", index % 60)).collect();
        let new = old.replacen("30\n31\n", "30\nhere\n", 1);
        assert_eq!(count(old.as_bytes(), new.as_bytes()), Lines { added: 1, removed: 1 });
    }
}
