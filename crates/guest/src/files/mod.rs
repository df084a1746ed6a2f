//! Work on a sandbox's files, done inside it by code of ours: under its walls, so that no spelling of a path and no link that
//! is swapped under way leads anywhere that a command inside could not go by itself.
//!
//! What is to be done comes sealed from outside. What comes back are frames, and to the host they are hostile bytes: who
//! speaks them lives among the guest's processes.

mod archive;
mod carry;
mod search;
mod walk;
mod watching;

#[doc(hidden)]
pub use archive::try_to_read;

use std::io;

use rustix::fs::Mode;
use serde::{Deserialize, Serialize};
use sys::{process, signals};

/// The whole life of a fresh copy of the first process whose streams are in place. Nothing else of it is left open: what
/// it is told to do comes from outside, what it meets does not.
pub fn work(operation: &Operation, umask: Mode, mask: &signals::Mask) -> ! {
    rustix::process::umask(umask);
    let ready = || -> io::Result<()> {
        process::close_all_from(3, 2)?;
        process::new_session()?;
        // Nobody inside looks into it: its memory is a copy of ours.
        process::forbid_inspection()?;
        signals::reset_actions();
        signals::restore(mask)
    };
    match ready() {
        Ok(()) => process::exit(carry::carry_out(operation)),
        Err(_) => process::exit(125),
    }
}

/// What to do. Which of the rest it looks at depends on that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Deed {
    Read = 1,
    Write,
    List,
    Stat,
    MakeFolder,
    Move,
    Remove,
    Search,
    /// Frames of which somebody outside makes an archive.
    Pack,
    /// An archive, which comes as input.
    Unpack,
    Watch,
}

const DEEDS: [Deed; 11] = [
    Deed::Read,
    Deed::Write,
    Deed::List,
    Deed::Stat,
    Deed::MakeFolder,
    Deed::Move,
    Deed::Remove,
    Deed::Search,
    Deed::Pack,
    Deed::Unpack,
    Deed::Watch,
];

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "Vec<u8>", try_from = "Vec<u8>")]
pub struct Operation {
    pub deed: Deed,
    /// Where paths start that don't start at the root.
    pub directory: Vec<u8>,
    pub path: Vec<u8>,
    /// Where it is moved to; what is searched for.
    pub other: Vec<u8>,
    /// Only names like this are searched.
    pub names: Vec<u8>,
    /// Missing folders are made; folders are removed with what is in them; a link at the end is followed; what is there is
    /// replaced; the pattern is a regular expression; folders below are watched too.
    pub boldly: bool,
    /// Upper and lower case are one.
    pub caseless: bool,
    /// Replace nothing.
    pub only_new: bool,
    /// Replace only what has this digest.
    pub digest: Option<[u8; 32]>,
    pub mode: Option<u32>,
    /// From which byte, and how many.
    pub from: u64,
    pub length: Option<u64>,
    pub depth: u64,
    /// Of entries, matches or files.
    pub most: u64,
    /// Of contents.
    pub most_bytes: u64,
}

/// What a path leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    File = 1,
    Folder,
    Link,
    Special,
}

const KINDS: [Kind; 4] = [Kind::File, Kind::Folder, Kind::Link, Kind::Special];

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub kind: Kind,
    pub mode: u32,
    pub size: u64,
    /// Seconds since 1970.
    pub modified: i64,
    pub path: Vec<u8>,
    /// Of a link: where it leads to.
    pub target: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Change {
    Made = 1,
    Changed,
    Removed,
    /// More happened than was told.
    Missed,
}

const CHANGES: [Change; 4] = [Change::Made, Change::Changed, Change::Removed, Change::Missed];

/// Why it was not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Why {
    /// As the kernel says.
    Errno = 1,
    TooLarge,
    TooMany,
    TooDeep,
    /// It is no plain file, or no folder.
    WrongKind,
    /// A file of the kernel's, behind which there is no file.
    Kernels,
    /// It is not what it was said to be.
    Differs,
    BadArchive,
    BadPattern,
    BadPath,
}

const WHYS: [Why; 10] = [
    Why::Errno,
    Why::TooLarge,
    Why::TooMany,
    Why::TooDeep,
    Why::WrongKind,
    Why::Kernels,
    Why::Differs,
    Why::BadArchive,
    Why::BadPattern,
    Why::BadPath,
];

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    Content(Vec<u8>),
    Entry(Entry),
    Match {
        path: Vec<u8>,
        line: u64,
        column: u64,
        text: Vec<u8>,
    },
    Event {
        change: Change,
        path: Vec<u8>,
    },
    /// The last of what went well. `cut`: there is more than was told.
    Done {
        count: u64,
        bytes: u64,
        skipped: u64,
        cut: bool,
        digest: Option<[u8; 32]>,
    },
    /// The last of what did not.
    Failed {
        why: Why,
        errno: i32,
        about: Vec<u8>,
    },
}

/// Of one frame, without what stands in front.
pub const LARGEST_FRAME: usize = 128 << 10;
const IN_FRONT: usize = 5;
/// Of a path, with which every kernel is content.
pub const LONGEST_PATH: usize = 4096;
/// Of an operation.
const LARGEST_OPERATION: usize = 64 << 10;

fn put(bytes: &mut Vec<u8>, part: &[u8]) {
    bytes.extend_from_slice(&u32::try_from(part.len()).unwrap_or(u32::MAX).to_le_bytes());
    bytes.extend_from_slice(part);
}

fn put_digest(bytes: &mut Vec<u8>, digest: Option<&[u8; 32]>) {
    bytes.push(u8::from(digest.is_some()));
    bytes.extend(digest.into_iter().flatten());
}

fn put_number(bytes: &mut Vec<u8>, number: Option<u64>) {
    bytes.push(u8::from(number.is_some()));
    bytes.extend(number.into_iter().flat_map(u64::to_le_bytes));
}

/// Takes parts from the front; each is whole or nothing.
struct Parts<'a>(&'a [u8]);

impl<'a> Parts<'a> {
    fn chunk<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (chunk, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*chunk)
    }

    fn byte(&mut self) -> Option<u8> {
        self.chunk::<1>().map(|[byte]| byte)
    }

    fn yes(&mut self) -> Option<bool> {
        match self.byte()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    fn number(&mut self) -> Option<u64> {
        self.chunk().map(u64::from_le_bytes)
    }

    fn perhaps<T>(&mut self, part: impl FnOnce(&mut Self) -> Option<T>) -> Option<Option<T>> {
        match self.yes()? {
            true => part(self).map(Some),
            false => Some(None),
        }
    }

    fn part(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(u32::from_le_bytes(self.chunk()?)).ok()?;
        let (part, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(part)
    }

    fn path(&mut self) -> Option<Vec<u8>> {
        let path = self.part()?;
        (path.len() <= LONGEST_PATH && !path.contains(&0)).then(|| path.to_vec())
    }

    fn end<T>(self, whole: T) -> Option<T> {
        self.0.is_empty().then_some(whole)
    }
}

fn one_of<T: Copy>(all: &[T], number: u8) -> Option<T> {
    all.get(usize::from(number).checked_sub(1)?).copied()
}

impl From<Operation> for Vec<u8> {
    fn from(operation: Operation) -> Vec<u8> {
        operation.encode()
    }
}

impl TryFrom<Vec<u8>> for Operation {
    type Error = &'static str;

    fn try_from(bytes: Vec<u8>) -> Result<Operation, &'static str> {
        Operation::decode(&bytes).ok_or("no operation on files")
    }
}

impl Operation {
    /// With nothing said but this.
    pub fn new(deed: Deed, path: &[u8]) -> Operation {
        Operation {
            deed,
            directory: Vec::new(),
            path: path.to_vec(),
            other: Vec::new(),
            names: Vec::new(),
            boldly: false,
            caseless: false,
            only_new: false,
            digest: None,
            mode: None,
            from: 0,
            length: None,
            depth: 0,
            most: 0,
            most_bytes: 0,
        }
    }

    pub fn encode(&self) -> Vec<u8> {
        let Operation {
            deed,
            directory,
            path,
            other,
            names,
            boldly,
            caseless,
            only_new,
            digest,
            mode,
            from,
            length,
            depth,
            most,
            most_bytes,
        } = self;
        let mut bytes = vec![*deed as u8];
        [directory, path, other, names].into_iter().for_each(|part| put(&mut bytes, part));
        bytes.extend([boldly, caseless, only_new].map(|yes| u8::from(*yes)));
        put_digest(&mut bytes, digest.as_ref());
        put_number(&mut bytes, mode.map(u64::from));
        put_number(&mut bytes, *length);
        [from, depth, most, most_bytes].into_iter().for_each(|number| bytes.extend(number.to_le_bytes()));
        bytes
    }

    /// `None` for anything that `encode` does not make.
    pub fn decode(bytes: &[u8]) -> Option<Operation> {
        if bytes.len() > LARGEST_OPERATION {
            return None;
        }
        let mut parts = Parts(bytes);
        let operation = Operation {
            deed: one_of(&DEEDS, parts.byte()?)?,
            directory: parts.path()?,
            path: parts.path()?,
            other: parts.path()?,
            names: parts.path()?,
            boldly: parts.yes()?,
            caseless: parts.yes()?,
            only_new: parts.yes()?,
            digest: parts.perhaps(Parts::chunk)?,
            mode: parts.perhaps(|parts| u32::try_from(parts.number()?).ok())?,
            length: parts.perhaps(Parts::number)?,
            from: parts.number()?,
            depth: parts.number()?,
            most: parts.number()?,
            most_bytes: parts.number()?,
        };
        parts.end(operation)
    }
}

impl Frame {
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![0; IN_FRONT];
        let kind = match self {
            Frame::Content(content) => {
                bytes.extend_from_slice(content);
                1
            }
            Frame::Entry(Entry { kind, mode, size, modified, path, target }) => {
                bytes.push(*kind as u8);
                bytes.extend(mode.to_le_bytes());
                bytes.extend(size.to_le_bytes());
                bytes.extend(modified.to_le_bytes());
                put(&mut bytes, path);
                put(&mut bytes, target);
                2
            }
            Frame::Match { path, line, column, text } => {
                bytes.extend(line.to_le_bytes());
                bytes.extend(column.to_le_bytes());
                put(&mut bytes, path);
                put(&mut bytes, text);
                3
            }
            Frame::Event { change, path } => {
                bytes.push(*change as u8);
                put(&mut bytes, path);
                4
            }
            Frame::Done { count, bytes: size, skipped, cut, digest } => {
                [count, size, skipped].into_iter().for_each(|number| bytes.extend(number.to_le_bytes()));
                bytes.push(u8::from(*cut));
                put_digest(&mut bytes, digest.as_ref());
                5
            }
            Frame::Failed { why, errno, about } => {
                bytes.push(*why as u8);
                bytes.extend(errno.to_le_bytes());
                put(&mut bytes, about);
                6
            }
        };
        let length = u32::try_from(bytes.len() - IN_FRONT).unwrap_or(u32::MAX);
        bytes[0] = kind;
        bytes[1..IN_FRONT].copy_from_slice(&length.to_le_bytes());
        bytes
    }

    fn of(kind: u8, bytes: &[u8]) -> Option<Frame> {
        let mut parts = Parts(bytes);
        let frame = match kind {
            1 => return (!bytes.is_empty()).then(|| Frame::Content(bytes.to_vec())),
            2 => Frame::Entry(Entry {
                kind: one_of(&KINDS, parts.byte()?)?,
                mode: parts.chunk().map(u32::from_le_bytes).filter(|mode| *mode <= 0o7777)?,
                size: parts.number()?,
                modified: parts.chunk().map(i64::from_le_bytes)?,
                path: parts.path()?,
                target: parts.path()?,
            }),
            3 => {
                let (line, column) = (parts.number()?, parts.number()?);
                Frame::Match { line, column, path: parts.path()?, text: parts.part()?.to_vec() }
            }
            4 => Frame::Event { change: one_of(&CHANGES, parts.byte()?)?, path: parts.path()? },
            5 => Frame::Done {
                count: parts.number()?,
                bytes: parts.number()?,
                skipped: parts.number()?,
                cut: parts.yes()?,
                digest: parts.perhaps(Parts::chunk)?,
            },
            6 => Frame::Failed {
                why: one_of(&WHYS, parts.byte()?)?,
                errno: parts.chunk().map(i32::from_le_bytes).filter(|errno| (0..4096).contains(errno))?,
                about: parts.path()?,
            },
            _ => return None,
        };
        parts.end(frame)
    }
}

/// Reads frames from pieces of any length. Whatever is no frame ends it: nothing after that is looked at.
#[derive(Default)]
pub struct Frames {
    held: Vec<u8>,
    state: Reading,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Reading {
    #[default]
    On,
    /// The last frame came.
    Over,
    Broken,
}

impl Frames {
    /// What came whole with these bytes, in order.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<Frame> {
        if self.state != Reading::On {
            // After the last word there is none.
            if !bytes.is_empty() {
                self.state = Reading::Broken;
            }
            return Vec::new();
        }
        self.held.extend_from_slice(bytes);
        let mut frames = Vec::new();
        let mut at = 0;
        while self.state == Reading::On {
            let rest = &self.held[at..];
            let Some(([kind, length @ ..], after)) = rest.split_first_chunk::<IN_FRONT>() else { break };
            let length = u32::from_le_bytes(*length) as usize;
            if length > LARGEST_FRAME {
                self.state = Reading::Broken;
                break;
            }
            let Some(whole) = after.get(..length) else { break };
            let Some(frame) = Frame::of(*kind, whole) else {
                self.state = Reading::Broken;
                break;
            };
            at += IN_FRONT + length;
            if matches!(frame, Frame::Done { .. } | Frame::Failed { .. }) {
                self.state = if at == self.held.len() { Reading::Over } else { Reading::Broken };
            }
            frames.push(frame);
        }
        self.held.drain(..at);
        frames
    }

    /// All of it came, and nothing else.
    pub fn is_whole(&self) -> bool {
        self.state == Reading::Over
    }

    pub fn is_broken(&self) -> bool {
        self.state == Reading::Broken
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn path() -> impl Strategy<Value = Vec<u8>> {
        proptest::collection::vec(1u8.., 0..30)
    }

    fn frame() -> impl Strategy<Value = Frame> {
        let digest = any::<Option<[u8; 32]>>();
        prop_oneof![
            proptest::collection::vec(any::<u8>(), 1..50).prop_map(Frame::Content),
            (0usize..4, 0u32..0o7777, any::<u64>(), any::<i64>(), path(), path()).prop_map(
                |(kind, mode, size, modified, path, target)| Frame::Entry(Entry {
                    kind: KINDS[kind],
                    mode,
                    size,
                    modified,
                    path,
                    target
                })
            ),
            (path(), any::<u64>(), any::<u64>(), path()).prop_map(|(path, line, column, text)| Frame::Match {
                path,
                line,
                column,
                text
            }),
            (0usize..4, path()).prop_map(|(change, path)| Frame::Event { change: CHANGES[change], path }),
            (any::<[u64; 3]>(), any::<bool>(), digest).prop_map(|([count, bytes, skipped], cut, digest)| Frame::Done {
                count,
                bytes,
                skipped,
                cut,
                digest
            }),
            (0usize..10, 0i32..4096, path()).prop_map(|(why, errno, about)| Frame::Failed {
                why: WHYS[why],
                errno,
                about
            }),
        ]
    }

    fn is_last(frame: &Frame) -> bool {
        matches!(frame, Frame::Done { .. } | Frame::Failed { .. })
    }

    proptest! {
        #[test]
        fn frames_survive_however_they_are_cut(frames in proptest::collection::vec(frame(), 0..6), cut in 1usize..9) {
            let end = frames.iter().position(is_last).map_or(frames.len(), |at| at + 1);
            let frames = &frames[..end];
            let bytes: Vec<u8> = frames.iter().flat_map(Frame::encode).collect();
            let mut reader = Frames::default();
            let read: Vec<Frame> = bytes.chunks(cut).flat_map(|piece| reader.push(piece)).collect();
            prop_assert_eq!(&read, frames);
            prop_assert_eq!(reader.is_whole(), frames.last().is_some_and(is_last));
        }

        #[test]
        fn no_bytes_panic_and_what_is_read_encodes_to_the_same(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let mut reader = Frames::default();
            let again: Vec<u8> = reader.push(&bytes).iter().flat_map(Frame::encode).collect();
            prop_assert!(bytes.starts_with(&again));
            if let Some(operation) = Operation::decode(&bytes) {
                prop_assert_eq!(operation.encode(), bytes);
            }
        }

        #[test]
        fn an_operation_survives(deed in 0usize..11, path in path(), other in path(), flags in any::<[bool; 3]>(),
            digest in any::<Option<[u8; 32]>>(), mode in any::<Option<u32>>(), length in any::<Option<u64>>(), from in any::<u64>()) {
            let [boldly, caseless, only_new] = flags;
            let operation = Operation { other, boldly, caseless, only_new, digest, mode, length, from,
                ..Operation::new(DEEDS[deed], &path) };
            prop_assert_eq!(Operation::decode(&operation.encode()), Some(operation));
        }
    }

    #[test]
    fn nothing_is_heard_after_the_last_word() {
        let done = Frame::Done { count: 0, bytes: 0, skipped: 0, cut: false, digest: None };
        let mut reader = Frames::default();
        assert_eq!(reader.push(&done.encode()), std::slice::from_ref(&done));
        assert!(reader.is_whole());
        assert!(reader.push(&done.encode()).is_empty());
        assert!(reader.is_broken() && !reader.is_whole());
        let mut reader = Frames::default();
        reader.push(&[1, 255, 255, 255, 255]);
        assert!(reader.is_broken());
    }
}
