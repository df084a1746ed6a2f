//! Bytes that are spelled out: the lines of `xxd`, `hexdump` and `od`, and lists of numbers in programs.

use std::sync::Arc;

use super::{Found, Place, Text};
use crate::stream::Index;

/// A longer line is none of a dump.
const LONGEST: usize = 512;
/// Digits of the number that says where a line's bytes are.
const OFFSET: std::ops::RangeInclusive<usize> = 6..=16;
/// Fewer bytes in a line without one are no dump.
const FEWEST: usize = 4;

pub(crate) struct Dumps {
    index: Arc<Index>,
    text: Option<Text>,
    /// The line that may be one of a dump; nothing if it is none.
    line: Option<Vec<u8>>,
    line_start: Place,
}

/// What a line says, and where in it.
#[derive(Debug, PartialEq, Eq)]
struct Spelled {
    start: usize,
    bytes: Vec<u8>,
}

impl Dumps {
    pub fn new(index: &Arc<Index>) -> Dumps {
        Dumps { index: Arc::clone(index), text: None, line: Some(Vec::new()), line_start: 0 }
    }

    pub fn read(&mut self, place: Place, bytes: &[u8], found: &mut Vec<Found>) {
        let mut at = 0;
        while at < bytes.len() {
            let rest = &bytes[at..];
            let Some(line) = &mut self.line else {
                // Nothing of a dump: on to the next line that may be.
                let mut next = memchr::memchr_iter(b'\n', rest).map(|end| at + end + 1);
                let Some(start) = next.find(|start| may_begin(&bytes[*start..])) else { return };
                at = start;
                self.begin(place + at as Place);
                continue;
            };
            if line.is_empty() && !may_begin(rest) {
                self.is_none(found);
                continue;
            }
            let room = LONGEST - line.len();
            let near = &rest[..rest.len().min(room)];
            let end = memchr::memchr(b'\n', near);
            let part = &near[..end.unwrap_or(near.len())];
            // Most lines are none, and are not kept to see that.
            let is_none = line.is_empty() && !may_go_on(part) || end.is_none() && near.len() == room;
            if !is_none {
                line.extend_from_slice(part);
            }
            if is_none || !may_go_on(line) {
                self.is_none(found);
                continue;
            }
            at += part.len();
            if end.is_some() {
                self.line_ends(found);
                at += 1;
                self.begin(place + at as Place);
            }
        }
    }

    pub fn finish(&mut self, found: &mut Vec<Found>) {
        self.line_ends(found);
        self.is_none(found);
    }

    /// The first place that may be spelled out as part of a secret.
    pub fn waits_from(&self) -> Option<Place> {
        let text = self.text.as_ref().and_then(Text::waits_from);
        let cells = self.line.as_ref().and_then(|line| Some((line, start_of_cells(line)?)));
        let line = cells.filter(|(line, start)| start < &line.len()).map(|(_, start)| self.line_start + start as Place);
        [text, line].into_iter().flatten().min()
    }

    fn begin(&mut self, place: Place) {
        // An empty one takes no memory.
        self.line = Some(Vec::new());
        self.line_start = place;
    }

    fn line_ends(&mut self, found: &mut Vec<Found>) {
        let Some(line) = self.line.take() else { return };
        let Some(Spelled { start, bytes }) = spelled(&line) else {
            self.is_none(found);
            return;
        };
        let places = (self.line_start + start as Place, self.line_start + line.len() as Place);
        self.text.get_or_insert_with(|| Text::new(&self.index)).push_spelled(places, &bytes, found);
    }

    fn is_none(&mut self, found: &mut Vec<Found>) {
        self.line = None;
        if let Some(text) = self.text.take() {
            text.finish(found);
        }
    }
}

/// A look at the first letters, which is all that most lines need.
fn may_begin(rest: &[u8]) -> bool {
    let spaces = rest.iter().take(LONGEST).take_while(|byte| **byte == b' ').count();
    let mut digits = rest[spaces..].iter().take(2);
    digits.all(|byte| byte.is_ascii_hexdigit() || *byte == b'x')
}

/// Where a line's bytes begin, as far as it is there; nothing if it can't be of a dump.
fn start_of_cells(line: &[u8]) -> Option<usize> {
    let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    let spaces = |from: usize| from + line[from..].iter().take_while(|byte| **byte == b' ').count();
    match line.get(digits) {
        // Where the line is, or the first of a list.
        None if digits > 0 => (digits <= *OFFSET.end()).then_some(line.len()),
        Some(b':') if OFFSET.contains(&digits) => Some(spaces(digits + 1)),
        // A column of `od -c` may be a space.
        Some(b' ') if OFFSET.contains(&digits) => Some(digits),
        Some(b'x') if line.starts_with(b"0x") => Some(0),
        _ if digits > 0 => None,
        _ => {
            let start = spaces(0);
            let begins = |byte: &u8| byte.is_ascii_hexdigit();
            (start > 0 && line.get(start).is_none_or(begins)).then_some(start)
        }
    }
}

/// Whether a line that is not whole may be of a dump: a question with a number before it must not wait for its end.
fn may_go_on(line: &[u8]) -> bool {
    let Some(start) = start_of_cells(line) else { return false };
    let rest = &line[start..];
    let has_colon = line[..start].contains(&b':');
    let cells = match has_colon {
        true => &rest[..memchr::memmem::find(rest, b"  ").unwrap_or(rest.len())],
        false => without_text(rest),
    };
    let of_numbers = |byte: &u8| byte.is_ascii_hexdigit() || matches!(byte, b' ' | b',' | b'x' | b'\t' | b'\r');
    cells.iter().all(of_numbers)
        || (!has_colon && start > 0 && line[0] != b' ' && rest.chunks_exact(4).all(|cell| letter(cell).is_some()))
}

/// What a whole line spells out.
fn spelled(line: &[u8]) -> Option<Spelled> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let start = start_of_cells(line)?;
    let rest = line.get(start..).filter(|rest| !rest.is_empty())?;
    let with_colon = line[..start].contains(&b':');
    let has_offset = with_colon || (start > 0 && line[0] != b' ');
    let bytes = match (with_colon, has_offset) {
        // What follows two spaces is the text beside it.
        (true, _) => numbers(&rest[..memchr::memmem::find(rest, b"  ").unwrap_or(rest.len())], false),
        (false, true) => numbers(without_text(rest), true).or_else(|| letters(rest)),
        (false, false) => numbers(rest, true).filter(|bytes| bytes.len() >= FEWEST),
    }?;
    let start = start + rest.iter().take_while(|byte| **byte == b' ').count().min(rest.len() - 1);
    (!bytes.is_empty()).then_some(Spelled { start, bytes })
}

/// `hexdump -C` and `od -t x1z` have the text beside the numbers, between marks.
fn without_text(rest: &[u8]) -> &[u8] {
    let mark = [&b" |"[..], b" >"].iter().filter_map(|mark| memchr::memmem::find(rest, mark)).min();
    &rest[..mark.unwrap_or(rest.len())]
}

/// Numbers of one kind: bytes, or words whose last byte comes first if `swapped`.
fn numbers(text: &[u8], swapped: bool) -> Option<Vec<u8>> {
    let mut words = text.split(|byte| matches!(byte, b' ' | b',' | b'\t')).filter(|word| !word.is_empty()).peekable();
    let first = words.peek()?.len();
    let octal = text.iter().all(|byte| matches!(byte, b'0'..=b'7' | b' ')) && matches!(first, 3 | 6);
    let mut bytes = Vec::with_capacity(text.len() / 2);
    for word in words {
        let digits = word.strip_prefix(b"0x").unwrap_or(word);
        let is_kind = word.len() == first || (!swapped && word.len() < first);
        if !is_kind || !(digits.len().is_multiple_of(2) || octal) || digits.len() > 16 {
            return None;
        }
        let number = u64::from_str_radix(std::str::from_utf8(digits).ok()?, if octal { 8 } else { 16 }).ok()?;
        let length = match (octal, digits.len()) {
            (true, 3) => 1,
            (true, _) => 2,
            (false, digits) => digits / 2,
        };
        let all = number.to_be_bytes();
        let word = &all[8 - length..];
        match swapped {
            true => bytes.extend(word.iter().rev()),
            false => bytes.extend(word),
        }
    }
    Some(bytes)
}

/// `od -c`: four columns for each byte.
fn letters(rest: &[u8]) -> Option<Vec<u8>> {
    let cells = rest.chunks_exact(4);
    if !cells.remainder().is_empty() {
        return None;
    }
    cells.map(letter).collect()
}

fn letter(cell: &[u8]) -> Option<u8> {
    Some(match *cell {
        [b' ', b' ', b' ', letter] => letter,
        [b' ', b' ', b'\\', letter] => match letter {
            b'0' => 0,
            b'a' => 7,
            b'b' => 8,
            b't' => b'\t',
            b'n' => b'\n',
            b'v' => 11,
            b'f' => 12,
            b'r' => b'\r',
            b'\\' => b'\\',
            _ => return None,
        },
        [b' ', ref digits @ ..] => u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok()?,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_dumps_are_understood() {
        for line in [
            "00000000: 6669 7368 2d75 6e64 6572 2d67 6c61 7373  fish-under-glass",
            "00000000  66 69 73 68 2d 75 6e 64  65 72 2d 67 6c 61 73 73  |fish-under-glass|",
            "0000000 66 69 73 68 2d 75 6e 64 65 72 2d 67 6c 61 73 73  >fish-under-glass<",
            "0000000   f   i   s   h   -   u   n   d   e   r   -   g   l   a   s   s",
            "0000000 6966 6873 752d 646e 7265 672d 616c 7373",
            "0000000 064546 064163 072455 062156 071145 063455 060554 071563",
            "0000000 146 151 163 150 055 165 156 144 145 162 055 147 154 141 163 163",
            "  0x66, 0x69, 0x73, 0x68, 0x2d, 0x75, 0x6e, 0x64, 0x65, 0x72, 0x2d, 0x67, 0x6c, 0x61, 0x73, 0x73,",
            " 66 69 73 68 2d 75 6e 64 65 72 2d 67 6c 61 73 73",
        ] {
            let spelled = spelled(line.as_bytes()).map(|spelled| String::from_utf8_lossy(&spelled.bytes).into_owned());
            assert_eq!(spelled.as_deref(), Some("fish-under-glass"), "{line}");
        }
    }

    #[test]
    fn other_lines_are_none() {
        for line in [
            "cabcc0c engine: a value that was cut", "   Compiling serde v1.0.1", "2026-11-16T10:33:13Z INFO request",
            "  100% done", "deadbeef", "00000000: ", "", "  ", "1234567 x",
        ] {
            assert_eq!(spelled(line.as_bytes()), None, "{line}");
        }
    }
}
