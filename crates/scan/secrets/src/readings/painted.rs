//! The bytes as somebody reads them who does not see what acts: colours, letters without width, backspaces, control bytes.

use std::sync::Arc;

use super::{Found, Place, Text};
use crate::stream::Index;

/// A sequence is over after so many bytes, and a string to the terminal after so many.
const LONGEST: usize = 64;
const LONGEST_STRING: usize = 4096;
/// Bytes that nobody sees, at most, for each that is seen: bounds what waits. A colour for every letter is less.
const UNSEEN: i64 = 32;
const UNSEEN_AT_ONCE: i64 = 4096;
/// So far behind the last sign of paint, at the end of a line, the bytes are again what is seen.
const PLAIN_FOR: Place = 32 << 10;

/// What a backspace does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Backspace {
    /// Nothing: it is one more byte that nobody sees.
    Unseen,
    /// The letter before it is gone, as where somebody prints each letter twice to make it bold.
    TakesBack,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Text,
    Escape,
    /// After `ESC (`: one letter follows.
    Charset,
    /// After `ESC [`.
    Control(usize),
    /// After `ESC ]` and its like.
    Message(usize),
}

pub(crate) struct Painted {
    index: Arc<Index>,
    backspace: Backspace,
    state: State,
    text: Option<Text>,
    /// The last letter, where one may be taken back.
    letter: Option<(Place, u8)>,
    last_sign: Place,
    budget: i64,
}

impl Painted {
    pub fn new(index: &Arc<Index>, backspace: Backspace) -> Painted {
        Painted {
            index: Arc::clone(index),
            backspace,
            state: State::Text,
            text: None,
            letter: None,
            last_sign: 0,
            budget: UNSEEN_AT_ONCE,
        }
    }

    pub fn is_on(&self) -> bool {
        self.text.is_some()
    }

    /// Begins: from `place` on the bytes are not what is seen.
    pub fn begin(&mut self, place: Place) {
        *self = Painted {
            last_sign: place,
            text: Some(Text::new(&self.index)),
            ..Painted::new(&self.index, self.backspace)
        };
    }

    pub fn waits_from(&self) -> Option<Place> {
        self.text.as_ref().and_then(Text::waits_from)
    }

    /// Reads on, and says how far: less than all if it is over.
    pub fn read(&mut self, place: Place, bytes: &[u8], found: &mut Vec<Found>) -> usize {
        let mut at = 0;
        while at < bytes.len() && self.text.is_some() {
            at += match self.state {
                State::Text => self.plain(place + at as Place, &bytes[at..], found),
                _ => {
                    self.last_sign = place + at as Place;
                    self.sequence(bytes[at])
                }
            };
        }
        at
    }

    pub fn finish(&mut self, found: &mut Vec<Found>) {
        self.give_letter(found);
        if let Some(text) = self.text.take() {
            text.finish(found);
        }
    }

    /// Takes what is seen, or one sign; says how many bytes that are.
    fn plain(&mut self, place: Place, bytes: &[u8], found: &mut Vec<Found>) -> usize {
        let line = memchr::memchr(b'\n', bytes).map_or(bytes.len(), |line| line + 1);
        let seen = first_sign(&bytes[..line]).unwrap_or(line);
        if seen > 0 {
            self.see(place, &bytes[..seen], found);
            let is_over = bytes[seen - 1] == b'\n' && place + seen as Place > self.last_sign + PLAIN_FOR;
            if is_over {
                self.finish(found);
            }
            return seen;
        }
        self.last_sign = place;
        let sign = unseen(bytes);
        match bytes[0] {
            0x1b => self.state = State::Escape,
            // The same in one letter.
            0xc2 if bytes.get(1) == Some(&0x9b) => self.state = State::Control(0),
            0x08 if self.backspace == Backspace::TakesBack => self.letter = None,
            _ => {}
        }
        self.spend(sign.max(1), found);
        sign.max(1)
    }

    fn see(&mut self, place: Place, bytes: &[u8], found: &mut Vec<Found>) {
        self.budget = (self.budget + UNSEEN * bytes.len() as i64).min(UNSEEN_AT_ONCE);
        self.give_letter(found);
        let Some(text) = &mut self.text else { return };
        let (given, last) = match (self.backspace, bytes.split_last()) {
            (Backspace::TakesBack, Some((last, rest))) if *last != b'\n' => (rest, Some(*last)),
            _ => (bytes, None),
        };
        if !given.is_empty() {
            text.push(place, given, found);
        }
        self.letter = last.map(|last| (place + given.len() as Place, last));
    }

    fn give_letter(&mut self, found: &mut Vec<Found>) {
        if let (Some((place, letter)), Some(text)) = (self.letter.take(), &mut self.text) {
            text.push(place, &[letter], found);
        }
    }

    /// One byte of a sequence: nobody sees it, whatever it turns out to be. One that can't be of it is no part of it.
    fn sequence(&mut self, byte: u8) -> usize {
        let next = match (self.state, byte) {
            (_, b'\n' | 0x1b) | (State::Text, _) => State::Text,
            (State::Escape, b'[') => State::Control(0),
            (State::Escape, b']' | b'P' | b'X' | b'^' | b'_') => State::Message(0),
            (State::Escape, 0x20..=0x2f) => State::Charset,
            (State::Control(length), 0x20..=0x3f) if length < LONGEST => State::Control(length + 1),
            (State::Message(length), byte) if length < LONGEST_STRING && !matches!(byte, 0x07 | 0x18 | 0x1a) => {
                State::Message(length + 1)
            }
            _ => {
                self.state = State::Text;
                self.budget -= 1;
                // What ends a sequence is of it, if it is a letter.
                return usize::from(byte >= 0x20 || matches!(byte, 0x07 | 0x18 | 0x1a));
            }
        };
        self.state = next;
        if next == State::Text {
            return 0;
        }
        self.budget -= 1;
        1
    }

    /// More than anybody would put between letters: what waits is let go, and the text begins anew.
    fn spend(&mut self, bytes: usize, found: &mut Vec<Found>) {
        self.budget -= bytes as i64;
        if self.budget < 0 {
            let (state, place) = (self.state, self.last_sign);
            self.finish(found);
            self.begin(place);
            self.state = state;
        }
    }
}

/// Where the first byte is that is not seen as what it is.
pub(crate) fn first_sign(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        // Most text has none, and that is seen in one go over many bytes.
        while let Some(block) = bytes.get(at..).and_then(|rest| rest.first_chunk::<64>()) {
            if block.iter().fold(0, |any, byte| any | u8::from(is_odd(*byte))) != 0 {
                break;
            }
            at += 64;
        }
        at += bytes[at..].iter().position(|byte| is_odd(*byte))?;
        if unseen(&bytes[at..]) > 0 {
            return Some(at);
        }
        at += 1;
    }
}

/// How many bytes at the end may turn out to be a sign when more comes: they wait.
pub(crate) fn cut_short(bytes: &[u8]) -> usize {
    let near = &bytes[bytes.len().saturating_sub(3)..];
    let begins = |byte: &u8| *byte == b'\r' || *byte >= 0xc0;
    let Some(back) = near.iter().rposition(begins) else { return 0 };
    let tail = &near[back..];
    let needs = match tail[0] {
        b'\r' | 0xc0..=0xdf => 2,
        0xe0..=0xef => 3,
        _ => 4,
    };
    let goes_on = tail[0] != b'\r' && tail[1..].iter().all(|byte| (0x80..0xc0).contains(byte));
    if tail.len() < needs && (goes_on || tail.len() == 1) { tail.len() } else { 0 }
}

#[inline]
fn is_odd(byte: u8) -> bool {
    // Without a branch, so that many are looked at together.
    ((byte < 0x20) & (byte != b'\n') & (byte != b'\t')) | (byte == 0x7f) | (byte >= 0xc2)
}

/// How many bytes of the beginning nobody sees; none if it is a letter.
fn unseen(bytes: &[u8]) -> usize {
    match *bytes {
        // Two lines, as some systems write it.
        [b'\r', b'\n', ..] | [b'\n' | b'\t', ..] | [] => 0,
        [0..=0x1f | 0x7f, ..] => 1,
        // Control letters, a hyphen that is not there, letters that go with the one before, joiners.
        [0xc2, 0x80..=0x9f | 0xad, ..] | [0xcc, 0x80..=0xbf, ..] | [0xcd, 0x80..=0xaf, ..] | [0xd8, 0x9c, ..] => 2,
        [0xe1, 0x85, 0x9f | 0xa0, ..]
        | [0xe1, 0x9e, 0xb4 | 0xb5, ..]
        | [0xe1, 0xa0, 0x8b..=0x8f, ..]
        | [0xe2, 0x80, 0x8b..=0x8f | 0xa8..=0xae, ..]
        | [0xe2, 0x81, 0xa0..=0xaf, ..]
        | [0xe2, 0x83, 0x90..=0xbf, ..]
        | [0xe3, 0x85, 0xa4, ..]
        | [0xef, 0xb8, 0x80..=0x8f, ..]
        | [0xef, 0xbb, 0xbf, ..]
        | [0xef, 0xbe, 0xa0, ..]
        | [0xef, 0xbf, 0xb9..=0xbb, ..] => 3,
        // Tags, and more that choose how a letter looks.
        [0xf3, 0xa0, 0x80..=0x87, 0x80..=0xbf, ..] => 4,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_seen_and_what_acts_is_not() {
        for text in ["plain", "grün ├─ ok\t\n", "a\r\nb", "😀", ""] {
            assert_eq!(first_sign(text.as_bytes()), None, "{text:?}");
        }
        for (text, at) in [("a\x1b[0m", 1), ("ab\u{200b}", 2), ("a\rb", 1), ("ü\u{feff}", 2), ("a\u{8}", 1), ("a\0", 1)]
        {
            assert_eq!(first_sign(text.as_bytes()), Some(at), "{text:?}");
        }
    }

    #[test]
    fn only_what_may_become_a_sign_waits() {
        for (bytes, waits) in [
            (&b"ab"[..], 0),
            (b"ab\r", 1),
            (b"ab\xe2", 1),
            (b"ab\xe2\x80", 2),
            (b"a\xe2\x80\x8b", 0),
            (b"\xf3\xa0\x80", 3),
            (b"\xc3\xbc", 0),
            (b"\r\n", 0),
            (b"", 0),
        ] {
            assert_eq!(cut_short(bytes), waits, "{}", bytes.escape_ascii());
        }
    }
}
