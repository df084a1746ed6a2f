//! Work on files, done inside by code of ours: what it is told, and what is made of the hostile bytes that come back.

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use guest::files::{Change, Deed, Entry, Frame, Frames, Kind, Operation, Why};
use model::{
    FileChange, FileEntry, FileEvent, FileFailure, FileHears, FileMatch, FileNews, FileOperation, FileTrouble,
    FileWork, MOST_ARCHIVED, MOST_ARCHIVED_BYTES, MOST_FILE_BYTES, MOST_LISTED_FILES, MOST_MATCHES, MOST_REMOVED,
    MOST_WATCHED, OnlyIf, Outlet, SetupFailure, Shown, Streams, ThingKind,
};
use rustix::io::Errno;

/// For what has an end by itself.
pub const LONGEST: Duration = Duration::from_secs(60);

/// Nothing: as long as somebody wants it.
pub fn time_for(operation: &FileOperation) -> Option<Duration> {
    match operation {
        FileOperation::Watch { .. } => None,
        _ => Some(LONGEST),
    }
}

/// As the first process is told it.
pub fn lowered(work: &FileWork) -> Result<Operation, SetupFailure> {
    let new = |deed, path: &str| Operation::new(deed, path.as_bytes());
    let operation = match &work.operation {
        FileOperation::Read { path, from, length } => {
            Operation { from: *from, length: *length, most_bytes: MOST_FILE_BYTES, ..new(Deed::Read, path) }
        }
        FileOperation::Write { path, mode, only, parents } => {
            let digest = match only {
                OnlyIf::Digest(text) => Some(digest(text)?),
                OnlyIf::Always | OnlyIf::New => None,
            };
            Operation {
                mode: *mode,
                only_new: *only == OnlyIf::New,
                digest,
                boldly: *parents,
                length: Some(work.length),
                most_bytes: MOST_FILE_BYTES,
                ..new(Deed::Write, path)
            }
        }
        FileOperation::List { path, depth } => {
            Operation { depth: *depth, most: MOST_LISTED_FILES, ..new(Deed::List, path) }
        }
        FileOperation::Stat { path, follow } => Operation { boldly: *follow, ..new(Deed::Stat, path) },
        FileOperation::MakeFolder { path, parents } => Operation { boldly: *parents, ..new(Deed::MakeFolder, path) },
        FileOperation::Move { path, to, replace } => {
            Operation { other: to.as_bytes().to_vec(), boldly: *replace, ..new(Deed::Move, path) }
        }
        FileOperation::Remove { path, recursive } => {
            Operation { boldly: *recursive, most: MOST_REMOVED, ..new(Deed::Remove, path) }
        }
        FileOperation::Search { path, pattern, regex, ignore_case, names, most } => Operation {
            other: pattern.as_bytes().to_vec(),
            names: names.clone().unwrap_or_default().into_bytes(),
            boldly: *regex,
            caseless: *ignore_case,
            most: most.unwrap_or(MOST_MATCHES).min(MOST_MATCHES),
            ..new(Deed::Search, path)
        },
        FileOperation::Pack { path } => {
            Operation { most: MOST_ARCHIVED, most_bytes: MOST_ARCHIVED_BYTES, ..new(Deed::Pack, path) }
        }
        FileOperation::Unpack { path } => {
            Operation { most: MOST_ARCHIVED, most_bytes: MOST_ARCHIVED_BYTES, ..new(Deed::Unpack, path) }
        }
        FileOperation::Watch { path, recursive } => {
            Operation { boldly: *recursive, most: MOST_WATCHED, ..new(Deed::Watch, path) }
        }
    };
    let operation = Operation { directory: work.directory.as_os_str().as_bytes().to_vec(), ..operation };
    // What would not be understood there is not sent.
    match Operation::decode(&operation.encode()) {
        Some(understood) if understood == operation => Ok(operation),
        _ => Err(wrong("a path or a pattern is longer than 4096 bytes, or has a null byte")),
    }
}

fn wrong(message: &str) -> SetupFailure {
    SetupFailure { wall: None, message: message.to_owned(), fix: "ask for another".to_owned(), layers: false }
}

fn digest(text: &str) -> Result<[u8; 32], SetupFailure> {
    let digest = blake3::Hash::from_hex(text).map_err(|_| wrong("a digest is 64 hexadecimal digits of BLAKE3"))?;
    Ok(*digest.as_bytes())
}

/// What is said there is heard by whoever asked, and by nobody else.
pub fn listen(streams: &mut Streams, work: FileWork) {
    streams.output = Some(Box::new(Decoded::new(work.hears)));
    streams.error = Some(Box::new(Unheard));
    streams.terminal = None;
    streams.apart = true;
}

/// It has nothing to say there.
struct Unheard;

impl Outlet for Unheard {
    fn pass(&mut self, _: &[u8], _: &mut Vec<u8>) {}
    fn end(&mut self, _: &mut Vec<u8>) {}
    fn holds(&self) -> bool {
        false
    }
    fn rest(&mut self, _: &mut Vec<u8>) {}
}

/// Frames to news, strictly: from the first byte on that is none, there is nothing more to hear.
pub struct Decoded {
    frames: Frames,
    hears: Box<dyn FileHears>,
    told: bool,
}

impl Decoded {
    pub fn new(hears: Box<dyn FileHears>) -> Decoded {
        Decoded { frames: Frames::default(), hears, told: false }
    }
}

impl Outlet for Decoded {
    fn pass(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        for frame in self.frames.push(bytes) {
            self.hears.hear(news(frame), out);
        }
        if self.frames.is_broken() && !self.told {
            self.told = true;
            self.hears.hear(FileNews::Nonsense, out);
        }
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        if !self.frames.is_whole() && !self.told {
            self.told = true;
            self.hears.hear(FileNews::Nonsense, out);
        }
    }

    fn holds(&self) -> bool {
        false
    }

    fn rest(&mut self, _: &mut Vec<u8>) {}
}

fn news(frame: Frame) -> FileNews {
    match frame {
        Frame::Content(bytes) => FileNews::Content(bytes),
        Frame::Entry(Entry { kind, mode, size, modified, path, target }) => FileNews::Entry(FileEntry {
            path: Shown::of(&path),
            kind: match kind {
                Kind::File => ThingKind::File,
                Kind::Folder => ThingKind::Folder,
                Kind::Link => ThingKind::Link,
                Kind::Special => ThingKind::Special,
            },
            mode,
            size,
            modified,
            target: (kind == Kind::Link).then(|| Shown::of(&target)),
        }),
        Frame::Match { path, line, column, text } => FileNews::Match(FileMatch {
            path: Shown::of(&path),
            line,
            column,
            text: String::from_utf8_lossy(&text).into_owned(),
        }),
        Frame::Event { change, path } => FileNews::Event(FileEvent {
            path: Shown::of(&path),
            change: match change {
                Change::Made => FileChange::Made,
                Change::Changed => FileChange::Changed,
                Change::Removed => FileChange::Removed,
                Change::Missed => FileChange::Missed,
            },
        }),
        Frame::Done { count, bytes, skipped, cut, digest } => {
            let digest = digest.map(|digest| blake3::Hash::from_bytes(digest).to_hex().to_string());
            FileNews::Done { count, bytes, skipped, cut, digest }
        }
        Frame::Failed { why, errno, about } => FileNews::Failed(failure(why, errno, &about)),
    }
}

fn failure(why: Why, errno: i32, about: &[u8]) -> FileFailure {
    let path = String::from_utf8_lossy(about);
    let path = format!("`{}`", path.escape_debug());
    let error = io::Error::from_raw_os_error(errno);
    let (kind, message, fix) = match (why, Errno::from_raw_os_error(errno.clamp(1, 4095))) {
        (Why::Errno, Errno::NOENT | Errno::NOTDIR) => {
            (FileTrouble::NotThere, format!("{path} is not there"), "list what is there")
        }
        (Why::Errno, Errno::EXIST | Errno::NOTEMPTY) => (
            FileTrouble::Exists,
            format!("{path} is there already, or is not empty"),
            "say that it may go, or choose another path",
        ),
        (Why::Errno, Errno::ACCESS | Errno::PERM | Errno::ROFS | Errno::BUSY | Errno::XDEV) => (
            FileTrouble::Denied,
            format!("{path} can't be had like that inside: {error}"),
            "see what the sandbox may write to and read: `belljar explain`",
        ),
        (Why::Errno, Errno::NOSPC | Errno::DQUOT | Errno::FBIG) => (
            FileTrouble::NoRoom,
            format!("there is no room for {path}: {error}"),
            "remove something, or make a sandbox with a larger `disk` limit",
        ),
        (Why::Errno, Errno::ISDIR | Errno::LOOP) | (Why::WrongKind, _) => (
            FileTrouble::WrongKind,
            format!("{path} is not the kind of thing that this can be done to"),
            "look what it is: a folder, a link, a pipe or a device is no file",
        ),
        (Why::Errno, Errno::NAMETOOLONG | Errno::INVAL) | (Why::BadPath, _) => {
            (FileTrouble::Wrong, format!("{path} is no path that can be used here"), "choose another")
        }
        (Why::Errno, _) => (FileTrouble::Broken, format!("{path}: {error}"), "try again"),
        (Why::TooLarge, _) => {
            (FileTrouble::TooLarge, format!("{path} is more than goes at once"), "ask for a part of it (`Range`)")
        }
        (Why::TooMany, _) => (
            FileTrouble::TooLarge,
            format!("there are more entries than go at once; the first that is too many is {path}"),
            "ask for a part of it",
        ),
        (Why::TooDeep, _) => {
            (FileTrouble::TooLarge, format!("{path} lies too deep"), "run a command inside that does it")
        }
        (Why::Kernels, _) => (
            FileTrouble::Denied,
            format!("{path} leads to files of the kernel, which are those of whoever looks"),
            "run a command inside that reads it",
        ),
        (Why::Differs, _) => {
            (FileTrouble::Differs, format!("{path} is not what it was said to be"), "read it again, and decide anew")
        }
        (Why::BadArchive, _) => (
            FileTrouble::Wrong,
            "the archive can't be read; entries before it were taken".to_owned(),
            "send an uncompressed tar archive (ustar or pax)",
        ),
        (Why::BadPattern, _) => (
            FileTrouble::Wrong,
            format!("{path} is no pattern that can be used"),
            "see the syntax of the crate `regex`",
        ),
    };
    FileFailure { kind, message, fix: fix.to_owned() }
}
