//! Other ways to read the same bytes: as a terminal would show them, and as a dump spells them out. What is read is looked
//! through like any text, and each place of it is a place of the bytes.

mod dump;
mod painted;

use std::collections::VecDeque;
use std::sync::Arc;

use crate::stream::{Index, Label, Sink, Stream};

pub(crate) use dump::Dumps;
pub(crate) use painted::{Backspace, Painted, cut_short, first_sign};

/// Somewhere in the bytes, by number.
pub(crate) type Place = u64;

/// A secret and where it is in the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub start: Place,
    pub end: Place,
    pub label: Label,
}

/// A text that was put together from parts of the bytes.
struct Text {
    stream: Stream,
    /// The parts that are not over, in their order.
    parts: VecDeque<Part>,
    length: u64,
    decided: u64,
}

/// So much of the text, from `at` on, stands at `place`.
struct Part {
    at: u64,
    place: Place,
    /// It is spelled out: all of it stands for each of its letters, up to here.
    whole: Option<Place>,
}

impl Text {
    fn new(index: &Arc<Index>) -> Text {
        Text { stream: Stream::new(Arc::clone(index)), parts: VecDeque::new(), length: 0, decided: 0 }
    }

    /// Letters that stand one after another in the bytes.
    fn push(&mut self, place: Place, bytes: &[u8], found: &mut Vec<Found>) {
        let goes_on = |part: &Part| part.whole.is_none() && part.place + (self.length - part.at) == place;
        if !self.parts.back().is_some_and(goes_on) {
            self.parts.push_back(Part { at: self.length, place, whole: None });
        }
        self.take(bytes, found);
    }

    /// Letters that are spelled out in a line.
    fn push_spelled(&mut self, (start, end): (Place, Place), bytes: &[u8], found: &mut Vec<Found>) {
        self.parts.push_back(Part { at: self.length, place: start, whole: Some(end) });
        self.take(bytes, found);
    }

    fn take(&mut self, bytes: &[u8], found: &mut Vec<Found>) {
        self.length += bytes.len() as u64;
        let mut places = Places { parts: &self.parts, decided: self.decided, found };
        self.stream.push(bytes, &mut places);
        self.decided = places.decided;
        let over = self.parts.partition_point(|part| part.at <= self.decided).saturating_sub(1);
        self.parts.drain(..over);
    }

    fn finish(mut self, found: &mut Vec<Found>) {
        let mut places = Places { parts: &self.parts, decided: self.decided, found };
        self.stream.finish(&mut places);
    }

    /// The first place of the bytes that may still be of a secret.
    fn waits_from(&self) -> Option<Place> {
        (self.decided < self.length).then(|| place_of(&self.parts, self.decided).0)
    }
}

/// Where a letter of the text begins and ends in the bytes.
fn place_of(parts: &VecDeque<Part>, at: u64) -> (Place, Place) {
    let number = parts.partition_point(|part| part.at <= at).saturating_sub(1);
    parts.get(number).map_or((0, 0), |part| match part.whole {
        Some(end) => (part.place, end),
        None => (part.place + (at - part.at), part.place + (at - part.at) + 1),
    })
}

struct Places<'a> {
    parts: &'a VecDeque<Part>,
    decided: u64,
    found: &'a mut Vec<Found>,
}

impl Sink for Places<'_> {
    fn text(&mut self, bytes: &[u8]) {
        self.decided += bytes.len() as u64;
    }

    fn secret(&mut self, start: u64, end: u64, label: Label) {
        self.decided = end;
        let (first, last) = (place_of(self.parts, start).0, place_of(self.parts, end.saturating_sub(1)).1);
        if first < last {
            self.found.push(Found { start: first, end: last, label });
        }
    }
}
