//! Names in a new root: folders, files and links that others are mounted over, or that are all there is. A part of them can be made by an
//! assistant, at the same time as another part.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::thread::futex::{self, Flags};

use crate::assistant::Assistant;
use crate::process::Alone;
use crate::trees::{Copies, Copying, PATIENCE};

/// What a name stands for.
#[derive(Clone, Debug)]
pub enum Kind {
    Directory {
        mode: u32,
    },
    File {
        mode: u32,
        contents: Vec<u8>,
    },
    /// To there.
    Link {
        target: CString,
    },
}

/// Makes one, below `at`. Nothing may be there.
pub fn directory(at: BorrowedFd<'_>, path: &CStr, mode: u32) -> Result<(), Errno> {
    rustix::fs::mkdirat(at, path, Mode::from_raw_mode(mode))
}

/// The same for a file.
pub fn file(at: BorrowedFd<'_>, path: &CStr, mode: u32, contents: &[u8]) -> Result<(), Errno> {
    // Most are only there to be mounted over.
    if contents.is_empty() {
        return rustix::fs::mknodat(at, path, FileType::RegularFile, Mode::from_raw_mode(mode), 0);
    }
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let file = rustix::fs::openat(at, path, flags, Mode::from_raw_mode(mode))?;
    let mut rest = contents;
    while !rest.is_empty() {
        rest = &rest[rustix::io::write(&file, rest)?..];
    }
    Ok(())
}

/// The same for a link.
pub fn link(at: BorrowedFd<'_>, path: &CStr, target: &CStr) -> Result<(), Errno> {
    rustix::fs::symlinkat(target, at, path)
}

/// Names that are being made. Leaked: the assistant may write to it at any time.
pub struct Places {
    root: OwnedFd,
    list: Vec<(CString, Kind)>,
    /// How far they are.
    state: AtomicU32,
    /// Which of them could not be made, if one could not.
    failed: AtomicU32,
}

const NOT_YET: u32 = 0;
const BEGUN: u32 = 1;
/// And somebody waits for that.
const AWAITED: u32 = 2;
/// By the assistant, or by whoever did not wait for it to begin.
const MADE: u32 = 3;
/// Besides, the error.
const FAILED: u32 = 1 << 31;

impl Places {
    pub fn below(root: OwnedFd, list: Vec<(CString, Kind)>) -> &'static Places {
        Box::leak(Box::new(Places { root, list, state: AtomicU32::new(NOT_YET), failed: AtomicU32::new(0) }))
    }

    /// Has them made beside us, and `copies` copied after that; on that processor, if we may run on one only. To be joined once all are
    /// taken.
    pub fn begin(&'static self, copies: &'static Copies, beside: Option<usize>, alone: Alone) -> io::Result<Copying> {
        let work = |(places, copies): &'static (&'static Places, &'static Copies)| {
            places.make();
            copies.make();
            Ok(0)
        };
        Assistant::begin(alone, Box::leak(Box::new((self, copies))), work, beside).map(Copying)
    }

    /// If nobody has begun. Allocates nothing.
    fn make(&self) {
        if self.state.compare_exchange(NOT_YET, BEGUN, Ordering::AcqRel, Ordering::Acquire).is_err() {
            return;
        }
        let word = match self.make_all() {
            Ok(()) => MADE,
            Err(error) => FAILED | error.raw_os_error().unsigned_abs(),
        };
        if self.state.swap(word, Ordering::AcqRel) == AWAITED {
            // Whoever waits looks again before long, whatever is said here.
            match futex::wake(&self.state, Flags::PRIVATE, 1) {
                Ok(_) | Err(_) => {}
            }
        }
    }

    fn make_all(&self) -> Result<(), Errno> {
        for (at, (path, kind)) in (0u32..).zip(&self.list) {
            self.failed.store(at, Ordering::Release);
            let root = self.root.as_fd();
            match kind {
                Kind::Directory { mode } => directory(root, path, *mode)?,
                Kind::File { mode, contents } => file(root, path, *mode, contents)?,
                Kind::Link { target } => link(root, path, target)?,
            }
        }
        Ok(())
    }

    /// They are all there after this: made here, if nobody has begun. Else which of them is not, and why.
    pub fn finish(&self) -> Result<(), (usize, io::Error)> {
        self.make();
        let failed = || self.failed.load(Ordering::Acquire) as usize;
        loop {
            match self.state.load(Ordering::Acquire) {
                MADE => return Ok(()),
                BEGUN => {
                    // Whoever was faster is seen the next time.
                    match self.state.compare_exchange(BEGUN, AWAITED, Ordering::AcqRel, Ordering::Acquire) {
                        Ok(_) | Err(_) => {}
                    }
                }
                AWAITED => match futex::wait(&self.state, Flags::PRIVATE, AWAITED, Some(&PATIENCE)) {
                    Ok(()) | Err(Errno::AGAIN | Errno::INTR) => {}
                    Err(error) => return Err((failed(), error.into())),
                },
                word => return Err((failed(), io::Error::from_raw_os_error((word & !FAILED).cast_signed()))),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn folder(name: &str) -> (std::path::PathBuf, OwnedFd) {
        let path = std::env::temp_dir().join(format!("belljar-places-{name}-{}", std::process::id()));
        std::fs::create_dir(&path).expect("a new folder");
        let opened = std::fs::File::open(&path).expect("opened").into();
        (path, opened)
    }

    #[test]
    fn all_of_them_are_made_whoever_does_it() {
        let (path, opened) = folder("made");
        let list = vec![
            (c"a".into(), Kind::Directory { mode: 0o700 }),
            (c"a/empty".into(), Kind::File { mode: 0o600, contents: Vec::new() }),
            (c"a/file".into(), Kind::File { mode: 0o600, contents: b"words".to_vec() }),
            (c"a/link".into(), Kind::Link { target: c"file".into() }),
        ];
        let places = Places::below(opened, list);
        std::thread::scope(|scope| {
            scope.spawn(|| places.make());
            places.finish().expect("made");
            assert_eq!(std::fs::read(path.join("a/link")).expect("read"), b"words");
        });
        assert_eq!(path.join("a").metadata().expect("there").permissions().mode() & 0o777, 0o700);
        assert!(std::fs::read(path.join("a/empty")).expect("read").is_empty());
        // Once is enough.
        places.finish().expect("still");
        std::fs::remove_dir_all(path).expect("removed");
    }

    #[test]
    fn what_can_not_be_made_is_named() {
        let (path, opened) = folder("named");
        let list = vec![
            (c"a".into(), Kind::Directory { mode: 0o700 }),
            (c"a".into(), Kind::File { mode: 0o600, contents: Vec::new() }),
            (c"b".into(), Kind::Directory { mode: 0o700 }),
        ];
        let places = Places::below(opened, list);
        let (which, error) = places.finish().expect_err("it is there already");
        assert_eq!((which, error.kind()), (1, io::ErrorKind::AlreadyExists));
        assert!(!path.join("b").exists());
        std::fs::remove_dir_all(path).expect("removed");
    }
}
