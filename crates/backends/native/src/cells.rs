//! What a context tells of its cells: frames on a descriptor of its own. Whoever writes them runs code of the guest in the same
//! process, so they are hostile bytes: read strictly and within bounds, and from the first that is none on nothing is heard.

use model::{CellError, MOST_PART, MOST_PARTS, MOST_RESULT_BYTES, PartKind};

/// Of a frame without its length.
pub const LARGEST_FRAME: usize = MOST_PART + 64;
/// Of an error's name, its value and its traceback.
pub const LONGEST_ERROR: usize = 256 << 10;
/// In front of each frame stand so many bytes of length, the least first.
const LENGTH: usize = 4;

/// Each says of which cell it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// One way to show a result; those with the same number are of the same.
    Part {
        cell: u64,
        result: u32,
        value: bool,
        kind: PartKind,
        bytes: Vec<u8>,
    },
    Failed {
        cell: u64,
        error: CellError,
    },
    /// The last word on a cell.
    Done {
        cell: u64,
        exit: u8,
        interrupted: bool,
        left_out: u32,
    },
}

impl Frame {
    pub fn cell(&self) -> u64 {
        match self {
            Frame::Part { cell, .. } | Frame::Failed { cell, .. } | Frame::Done { cell, .. } => *cell,
        }
    }

    /// As a kernel writes it.
    pub fn encode(&self) -> Vec<u8> {
        let mut body = Vec::new();
        match self {
            Frame::Part { cell, result, value, kind, bytes } => {
                let kind = PartKind::ALL.iter().position(|known| known == kind).unwrap_or_default();
                body.push(1);
                body.extend(cell.to_le_bytes());
                body.extend(result.to_le_bytes());
                body.push(u8::from(*value));
                body.push(u8::try_from(kind).unwrap_or_default());
                body.extend(bytes);
            }
            Frame::Failed { cell, error: CellError { name, value, traceback } } => {
                body.push(2);
                body.extend(cell.to_le_bytes());
                for text in [name, value] {
                    body.extend(u32::try_from(text.len()).unwrap_or(u32::MAX).to_le_bytes());
                    body.extend(text.as_bytes());
                }
                body.extend(traceback.as_bytes());
            }
            Frame::Done { cell, exit, interrupted, left_out } => {
                body.push(3);
                body.extend(cell.to_le_bytes());
                body.push(*exit);
                body.push(u8::from(*interrupted));
                body.extend(left_out.to_le_bytes());
            }
        }
        let length = u32::try_from(body.len()).unwrap_or(u32::MAX);
        [length.to_le_bytes().as_slice(), &body].concat()
    }

    fn decode(body: &[u8]) -> Option<Frame> {
        let (kind, rest) = body.split_first()?;
        let (cell, rest) = rest.split_first_chunk::<8>()?;
        let cell = u64::from_le_bytes(*cell);
        match kind {
            1 => {
                let (result, rest) = rest.split_first_chunk::<4>()?;
                let ([value, kind], bytes) = rest.split_first_chunk::<2>()?;
                let kind = *PartKind::ALL.get(usize::from(*kind))?;
                is_such(kind, bytes)
                    .then(|| Frame::Part {
                        cell,
                        result: u32::from_le_bytes(*result),
                        value: *value == 1,
                        kind,
                        bytes: bytes.to_vec(),
                    })
                    .filter(|_| *value <= 1)
            }
            2 => {
                let (name, rest) = text(rest)?;
                let (value, rest) = text(rest)?;
                let traceback = std::str::from_utf8(rest).ok()?.to_owned();
                (body.len() <= LONGEST_ERROR)
                    .then_some(Frame::Failed { cell, error: CellError { name, value, traceback } })
            }
            3 => {
                let ([exit, interrupted @ 0..=1], rest) = rest.split_first_chunk::<2>()? else { return None };
                let left_out = u32::from_le_bytes(rest.try_into().ok()?);
                Some(Frame::Done { cell, exit: *exit, interrupted: *interrupted == 1, left_out })
            }
            _ => None,
        }
    }
}

fn text(bytes: &[u8]) -> Option<(String, &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let (text, rest) = rest.split_at_checked(usize::try_from(u32::from_le_bytes(*length)).ok()?)?;
    Some((std::str::from_utf8(text).ok()?.to_owned(), rest))
}

/// What says that it is an image begins like one; everything else is text.
fn is_such(kind: PartKind, bytes: &[u8]) -> bool {
    match kind {
        PartKind::Png => bytes.starts_with(b"\x89PNG\r\n\x1a\n"),
        PartKind::Jpeg => bytes.starts_with(b"\xff\xd8\xff"),
        _ => std::str::from_utf8(bytes).is_ok(),
    }
}

/// Bytes to frames, however they are cut.
#[derive(Default)]
pub struct Frames {
    read: Vec<u8>,
    /// Of the cell that is told of.
    parts: usize,
    bytes: usize,
    broken: bool,
}

impl Frames {
    pub fn push(&mut self, bytes: &[u8]) -> Vec<Frame> {
        let mut frames = Vec::new();
        if self.broken {
            return frames;
        }
        self.read.extend_from_slice(bytes);
        let mut taken = 0;
        while let Some((length, rest)) = self.read[taken..].split_first_chunk::<LENGTH>() {
            let length = u32::from_le_bytes(*length) as usize;
            if length > LARGEST_FRAME {
                self.broken = true;
                break;
            }
            let Some(body) = rest.get(..length) else { break };
            match Frame::decode(body).filter(|frame| counted(&mut self.parts, &mut self.bytes, frame)) {
                Some(frame) => frames.push(frame),
                None => {
                    self.broken = true;
                    break;
                }
            }
            taken += LENGTH + length;
        }
        match self.broken {
            true => self.read = Vec::new(),
            false => drop(self.read.drain(..taken)),
        }
        frames
    }

    pub fn is_broken(&self) -> bool {
        self.broken
    }

    /// Nothing is half told.
    pub fn is_between(&self) -> bool {
        !self.broken && self.read.is_empty()
    }
}

/// Whether there may be so much of one cell.
fn counted(parts: &mut usize, bytes: &mut usize, frame: &Frame) -> bool {
    match frame {
        Frame::Part { bytes: part, .. } => {
            *parts += 1;
            *bytes += part.len();
        }
        Frame::Failed { .. } => *parts += 1,
        Frame::Done { .. } => (*parts, *bytes) = (0, 0),
    }
    *parts <= MOST_PARTS && *bytes <= MOST_RESULT_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(bytes: usize) -> Vec<u8> {
        Frame::Part { cell: 1, result: 0, value: true, kind: PartKind::Text, bytes: vec![b'a'; bytes] }.encode()
    }

    #[test]
    fn frames_survive_however_they_are_cut() {
        let error = CellError { name: "E".to_owned(), value: "é".to_owned(), traceback: "line 1".to_owned() };
        let told = [
            Frame::Part { cell: 7, result: 2, value: false, kind: PartKind::Html, bytes: b"<b>".to_vec() },
            Frame::Failed { cell: 7, error },
            Frame::Done { cell: 7, exit: 1, interrupted: true, left_out: 3 },
        ];
        let bytes: Vec<u8> = told.iter().flat_map(Frame::encode).collect();
        for cut in 1..bytes.len() {
            let mut frames = Frames::default();
            let read: Vec<Frame> = bytes.chunks(cut).flat_map(|piece| frames.push(piece)).collect();
            assert_eq!(read, told, "{cut}");
            assert!(frames.is_between());
        }
    }

    #[test]
    fn no_cell_has_more_results_than_it_may() {
        let mut frames = Frames::default();
        assert_eq!(frames.push(&part(MOST_PART)).len(), 1);
        assert_eq!(frames.push(&part(MOST_PART)).len(), 1);
        assert!(frames.push(&part(1)).is_empty() && frames.is_broken());
        let mut many = Frames::default();
        let read = many.push(&part(1).repeat(MOST_PARTS + 1));
        assert_eq!((read.len(), many.is_broken()), (MOST_PARTS, true));
        // What was told of one cell does not count for the next.
        let done = Frame::Done { cell: 1, exit: 0, interrupted: false, left_out: 0 }.encode();
        let mut next = Frames::default();
        let bytes = [part(1).repeat(MOST_PARTS), done, part(1)].concat();
        assert_eq!((next.push(&bytes).len(), next.is_broken()), (MOST_PARTS + 2, false));
    }

    #[test]
    fn what_is_no_frame_is_heard_no_further() {
        let mut frames = Frames::default();
        assert!(frames.push(&u32::MAX.to_le_bytes()).is_empty() && frames.is_broken());
        assert!(frames.push(&part(1)).is_empty());
        for body in
            [&b"\x09"[..], b"\x03", b"\x01\0\0\0\0\0\0\0\0\0\0\0\0\x02\0", b"\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\xff"]
        {
            let mut frames = Frames::default();
            let bytes = [&u32::try_from(body.len()).expect("short").to_le_bytes(), body].concat();
            assert!(frames.push(&bytes).is_empty() && frames.is_broken(), "{body:?}");
        }
    }
}
