//! A stream without its secrets, as early as possible.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::formats::Formats;
use crate::search::{Piece, Search};
use crate::stream::{Index, Label};
use crate::values::Values;

/// Takes secrets out of a stream: known values in all their forms, and what has a known format.
///
/// What comes out does not depend on how the stream is cut into pieces. Held back is only what may still become a secret.
pub struct Redactor {
    search: Search,
    counts: BTreeMap<Label, u64>,
}

/// How often something was taken out, by the name of a value or the id of a format.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Redacted {
    pub counts: BTreeMap<String, u64>,
}

impl Redacted {
    pub fn total(&self) -> u64 {
        self.counts.values().sum()
    }
}

impl Redactor {
    pub fn new(values: &Values, formats: Option<&Formats>) -> Redactor {
        match formats {
            Some(formats) if values.is_empty() => Redactor::over(Arc::clone(formats.index())),
            _ => Redactor::over(Arc::new(Index::of(values, formats))),
        }
    }

    /// One for another stream that looks for the same; costs nothing.
    pub fn another(&self) -> Redactor {
        Redactor::over(Arc::clone(self.search.index()))
    }

    fn over(index: Arc<Index>) -> Redactor {
        Redactor { search: Search::new(&index), counts: BTreeMap::new() }
    }

    /// Appends to `out` what may be shown.
    pub fn push(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        let index = Arc::clone(self.search.index());
        self.search.push(bytes, &mut |piece| shown(piece, &index, &mut self.counts, out));
    }

    /// The rest, and what was taken out of all of it. Afterwards another stream can begin.
    pub fn finish(&mut self, out: &mut Vec<u8>) -> Redacted {
        let index = Arc::clone(self.search.index());
        self.search.finish(&mut |piece| shown(piece, &index, &mut self.counts, out));
        self.so_far()
    }

    /// Somebody waits for what is held: it is shown. What follows and belongs to it still does not come out.
    pub fn let_go(&mut self, out: &mut Vec<u8>) {
        let index = Arc::clone(self.search.index());
        self.search.let_go(&mut |piece| shown(piece, &index, &mut self.counts, out));
    }

    /// What waits, as it came, and what was taken out before: where another redactor, which knows more, goes on.
    pub fn hand_over(&mut self) -> (Vec<u8>, Redacted) {
        let held = self.search.hand_over();
        (held, self.so_far())
    }

    /// How many bytes wait for what follows.
    pub fn held(&self) -> usize {
        self.search.held()
    }

    fn so_far(&mut self) -> Redacted {
        let index = self.search.index();
        let mut redacted = Redacted::default();
        for (label, count) in std::mem::take(&mut self.counts) {
            *redacted.counts.entry(index.name(label).to_owned()).or_default() += count;
        }
        redacted
    }
}

fn shown(piece: Piece<'_>, index: &Index, counts: &mut BTreeMap<Label, u64>, out: &mut Vec<u8>) {
    let (label, covered) = match piece {
        Piece::Text(bytes) => return out.extend_from_slice(bytes),
        Piece::Secret { label, covered, .. } => (label, covered),
    };
    *counts.entry(label).or_default() += 1;
    // Lines stay lines: of a key between its two, for one.
    let is_break = |byte: &u8| matches!(byte, b'\n' | b'\r');
    let before = covered.iter().take(2).take_while(|byte| is_break(byte)).count();
    let after = covered[before..].iter().rev().take(2).take_while(|byte| is_break(byte)).count();
    out.extend_from_slice(&covered[..before]);
    out.extend_from_slice(b"[redacted:");
    out.extend_from_slice(index.name(label).as_bytes());
    out.push(b']');
    colours(covered, out);
    out.extend_from_slice(&covered[covered.len() - after..]);
}

/// Colours that began or ended inside: what follows shall look as it did.
fn colours(covered: &[u8], out: &mut Vec<u8>) {
    const MOST: usize = 8;
    const LONGEST: usize = 32;
    for at in memchr::memchr_iter(0x1b, covered).take(MOST) {
        let Some(inside) = covered[at..].strip_prefix(b"\x1b[") else { continue };
        let length = inside.iter().take(LONGEST).take_while(|byte| byte.is_ascii_digit() || **byte == b';').count();
        if inside.get(length) == Some(&b'm') {
            out.extend_from_slice(&covered[at..at + length + 3]);
        }
    }
}
