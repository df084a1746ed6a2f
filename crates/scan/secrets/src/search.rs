//! Where secrets are in a stream, in every way in which it can be read. What one reading finds is a secret.

use std::sync::Arc;

use crate::readings::{Backspace, Dumps, Found, Painted, Place, cut_short, first_sign};
use crate::stream::{Index, Label, Sink, Stream};

/// Larger pieces are taken in parts: what waits stays in the cache.
const PART: usize = 64 * 1024;
/// So much is read again where paint begins, within its line.
const LOOK_BACK: usize = 4096;

/// What comes out, in the order of the stream.
pub(crate) enum Piece<'a> {
    Text(&'a [u8]),
    /// What is left out, and the bytes that are.
    Secret {
        start: Place,
        label: Label,
        covered: &'a [u8],
    },
}

pub(crate) struct Search {
    plain: Stream,
    plain_decided: Place,
    painted: [Painted; 2],
    dumps: Dumps,
    /// What waits, and some before it; its first byte has the number `base`.
    buffer: Vec<u8>,
    base: Place,
    /// Up to here everything is given out.
    given: Place,
    /// From here on something may still become a secret, though somebody who waited was shown some of it.
    waits: Place,
    /// Bytes at the end that may be a sign of paint when more comes.
    tail: Vec<u8>,
    found: Vec<Found>,
}

impl Search {
    pub fn new(index: &Arc<Index>) -> Search {
        Search {
            plain: Stream::new(Arc::clone(index)),
            plain_decided: 0,
            painted: [Backspace::Unseen, Backspace::TakesBack].map(|backspace| Painted::new(index, backspace)),
            dumps: Dumps::new(index),
            buffer: Vec::new(),
            base: 0,
            given: 0,
            waits: 0,
            tail: Vec::new(),
            found: Vec::new(),
        }
    }

    pub fn index(&self) -> &Arc<Index> {
        self.plain.index()
    }

    pub fn push(&mut self, bytes: &[u8], out: &mut impl FnMut(Piece<'_>)) {
        if self.index().is_empty() {
            self.base += bytes.len() as Place;
            (self.given, self.waits) = (self.base, self.base);
            out(Piece::Text(bytes));
            return;
        }
        for part in bytes.chunks(PART) {
            if self.tail.is_empty() {
                let (whole, tail) = part.split_at(part.len() - cut_short(part));
                self.tail.extend_from_slice(tail);
                self.take(whole, out);
            } else {
                let mut joined = std::mem::take(&mut self.tail);
                joined.extend_from_slice(part);
                self.tail = joined.split_off(joined.len() - cut_short(&joined));
                self.take(&joined, out);
            }
        }
    }

    /// Nothing follows. Afterwards a new stream can begin.
    pub fn finish(&mut self, out: &mut impl FnMut(Piece<'_>)) {
        let tail = std::mem::take(&mut self.tail);
        self.take(&tail, out);
        self.plain.finish(&mut Places { decided: &mut self.plain_decided, found: &mut self.found });
        self.painted.iter_mut().for_each(|painted| painted.finish(&mut self.found));
        self.dumps.finish(&mut self.found);
        self.give_out(self.end(), out);
        let index = Arc::clone(self.index());
        *self = Search::new(&index);
    }

    /// Somebody waits: what is held is shown, and what follows is still known to belong to it.
    pub fn let_go(&mut self, out: &mut impl FnMut(Piece<'_>)) {
        let tail = std::mem::take(&mut self.tail);
        self.take(&tail, out);
        let held = (self.given - self.base) as usize;
        if held < self.buffer.len() {
            out(Piece::Text(&self.buffer[held..]));
            self.given = self.end();
        }
    }

    /// What was not given out yet, as it came: for another who looks for more.
    pub fn hand_over(&mut self) -> Vec<u8> {
        let index = Arc::clone(self.index());
        let search = std::mem::replace(self, Search::new(&index));
        let given = (search.given - search.base) as usize;
        let mut held = search.buffer.get(given..).unwrap_or_default().to_vec();
        held.extend_from_slice(&search.tail);
        held
    }

    /// How many bytes wait, those among them that were let go.
    pub fn held(&self) -> usize {
        (self.end() - self.given.min(self.waits)) as usize + self.tail.len()
    }

    fn end(&self) -> Place {
        self.base + self.buffer.len() as Place
    }

    fn take(&mut self, bytes: &[u8], out: &mut impl FnMut(Piece<'_>)) {
        self.waits = self.read(bytes);
        self.give_out(self.waits, out);
        self.forget();
    }

    /// Reads on in every way, and says from where on something waits.
    fn read(&mut self, bytes: &[u8]) -> Place {
        let start = self.end();
        self.buffer.extend_from_slice(bytes);
        self.plain.push(bytes, &mut Places { decided: &mut self.plain_decided, found: &mut self.found });
        self.dumps.read(start, bytes, &mut self.found);
        self.read_painted(start, bytes);
        let painted = self.painted.iter().filter_map(Painted::waits_from);
        painted.chain(self.dumps.waits_from()).fold(self.plain_decided, Place::min)
    }

    fn read_painted(&mut self, start: Place, bytes: &[u8]) {
        let has_backspace = |bytes: &[u8]| memchr::memchr(0x08, bytes);
        // A backspace is a sign too.
        let is_plain = !self.painted.iter().any(Painted::is_on) && first_sign(bytes).is_none();
        let many = if is_plain { 0 } else { self.painted.len() };
        for (number, painted) in self.painted.iter_mut().enumerate().take(many) {
            let mut at = 0;
            while at < bytes.len() {
                if painted.is_on() {
                    at += painted.read(start + at as Place, &bytes[at..], &mut self.found);
                    continue;
                }
                let rest = &bytes[at..];
                let sign = if number == 0 { first_sign(rest) } else { has_backspace(rest) };
                let Some(sign) = sign else { break };
                at += sign;
                let place = (start + at as Place - self.base) as usize;
                let from = place.saturating_sub(LOOK_BACK);
                let line = memchr::memrchr(b'\n', &self.buffer[from..place]).map_or(from, |line| from + line + 1);
                painted.begin(start + at as Place);
                painted.read(self.base + line as Place, &self.buffer[line..place], &mut self.found);
            }
        }
    }

    /// Gives out what is decided by all: everything before `limit`.
    fn give_out(&mut self, limit: Place, out: &mut impl FnMut(Piece<'_>)) {
        if self.found.is_empty() {
            self.text_to(limit, out);
            return;
        }
        let mut found = std::mem::take(&mut self.found);
        found.sort_by_key(|found| (found.start, found.end));
        let mut later = Vec::new();
        let mut rest = found.into_iter().peekable();
        while let Some(first) = rest.next() {
            // What overlaps is one.
            let mut all = vec![first];
            let mut end = first.end;
            while let Some(next) = rest.next_if(|next| next.start < end) {
                end = end.max(next.end);
                all.push(next);
            }
            if end > limit {
                later.extend(all);
                later.extend(rest);
                break;
            }
            let start = first.start.max(self.given);
            if end <= start {
                continue;
            }
            self.text_to(start, out);
            let best = all.iter().min_by_key(|found| self.index().precedence(found.label, found.end - found.start));
            let (from, to) = ((start - self.base) as usize, (end - self.base) as usize);
            if let Some(best) = best {
                out(Piece::Secret { start, label: best.label, covered: &self.buffer[from..to] });
            }
            self.given = end;
        }
        let limit = later.iter().map(|found| found.start).fold(limit, Place::min);
        self.found = later;
        self.text_to(limit, out);
    }

    fn text_to(&mut self, limit: Place, out: &mut impl FnMut(Piece<'_>)) {
        if limit > self.given {
            let (from, to) = ((self.given - self.base) as usize, (limit - self.base) as usize);
            out(Piece::Text(&self.buffer[from..to]));
            self.given = limit;
        }
    }

    /// Drops what nobody will look at again.
    fn forget(&mut self) {
        let waits = self.found.iter().map(|found| found.start).fold(self.given, Place::min);
        let gone = ((waits - self.base) as usize).saturating_sub(LOOK_BACK);
        // Moving costs as much as what stays: not for every byte that comes alone.
        if gone > self.buffer.len() / 2 {
            self.buffer.drain(..gone);
            self.base += gone as Place;
        }
    }
}

struct Places<'a> {
    decided: &'a mut Place,
    found: &'a mut Vec<Found>,
}

impl Sink for Places<'_> {
    fn text(&mut self, bytes: &[u8]) {
        *self.decided += bytes.len() as Place;
    }

    fn secret(&mut self, start: u64, end: u64, label: Label) {
        *self.decided = end;
        self.found.push(Found { start, end, label });
    }
}
