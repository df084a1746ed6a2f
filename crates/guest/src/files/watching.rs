//! What happens to files, as it happens. Ends when nobody listens any more, or whoever asked ends it.

use std::collections::HashMap;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::Mode;
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::io::Errno;

use super::carry::{DEEPEST, Sum, below, names, say};
use super::walk::{self, End, Result, about, join};
use super::{Change, Frame, Operation};

struct Watching<'a> {
    events: OwnedFd,
    /// Which folder is meant, by the kernel's number.
    folders: HashMap<i32, Vec<u8>>,
    operation: &'a Operation,
}

/// The first word is that it watches: an empty path that has changed.
pub fn watch(operation: &Operation) -> Result<Sum> {
    let path = operation.path.as_slice();
    let events = inotify::init(CreateFlags::CLOEXEC).map_err(about(path))?;
    let mut watching = Watching { events, folders: HashMap::new(), operation };
    let whole = match walk::to(path, true)? {
        End::Name(folder, name) => rustix::fs::openat(&folder, &*name, walk::FOLDER, Mode::empty()),
        End::Folder(folder) => rustix::fs::openat(&folder, c".", walk::FOLDER, Mode::empty()),
    };
    let whole = whole.map_err(about(path))?;
    walk::not_the_kernels(&whole, path)?;
    watching.add(&whole, b"", if operation.boldly { DEEPEST } else { 1 })?;
    say(&Frame::Event { change: Change::Changed, path: Vec::new() })?;
    watching.tell()
}

impl Watching<'_> {
    fn add(&mut self, folder: &OwnedFd, path: &[u8], depth: usize) -> Result<()> {
        if self.folders.len() as u64 >= self.operation.most {
            return say(&Frame::Event { change: Change::Missed, path: path.to_vec() });
        }
        let flags = WatchFlags::CREATE
            | WatchFlags::CLOSE_WRITE
            | WatchFlags::ATTRIB
            | WatchFlags::DELETE
            | WatchFlags::DELETE_SELF
            | WatchFlags::MOVED_FROM
            | WatchFlags::MOVED_TO
            | WatchFlags::ONLYDIR;
        // By the descriptor that is open: its name may mean another folder by now.
        let name = format!("/proc/self/fd/{}", folder.as_raw_fd());
        let number = inotify::add_watch(&self.events, name, flags).map_err(about(path))?;
        self.folders.insert(number, path.to_vec());
        if depth > 1 {
            for name in names(folder, path)? {
                let name = name?;
                if let Some(below) = below(folder, &name) {
                    self.add(&below, &join(path, name.to_bytes()), depth - 1)?;
                }
            }
        }
        Ok(())
    }

    fn tell(mut self) -> Result<Sum> {
        loop {
            let stdout = rustix::stdio::stdout();
            let mut both =
                [PollFd::new(&self.events, PollFlags::IN), PollFd::from_borrowed_fd(stdout, PollFlags::empty())];
            match poll(&mut both, None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(errno) => return Err(about(&self.operation.path)(errno)),
            }
            if both[1].revents().intersects(PollFlags::ERR | PollFlags::HUP) {
                return Ok(Sum::default());
            }
            if both[0].revents().contains(PollFlags::IN) {
                self.tell_what_came()?;
            }
        }
    }

    fn tell_what_came(&mut self) -> Result<()> {
        let mut buffer = [MaybeUninit::uninit(); 16 << 10];
        let mut came = Vec::new();
        let mut reader = inotify::Reader::new(self.events.as_fd(), &mut buffer);
        // One buffer full at a time.
        loop {
            let event = reader.next().map_err(about(&self.operation.path))?;
            came.push((event.wd(), event.events(), event.file_name().map(|name| name.to_bytes().to_vec())));
            if reader.is_buffer_empty() {
                break;
            }
        }
        for (number, what, name) in came {
            let Some(folder) = self.folders.get(&number).cloned() else {
                say(&Frame::Event { change: Change::Missed, path: Vec::new() })?;
                continue;
            };
            if what.contains(ReadFlags::IGNORED) {
                self.folders.remove(&number);
                continue;
            }
            let change = match what {
                what if what.contains(ReadFlags::QUEUE_OVERFLOW) => Change::Missed,
                what if what.intersects(ReadFlags::CREATE | ReadFlags::MOVED_TO) => Change::Made,
                what if what.intersects(ReadFlags::DELETE | ReadFlags::DELETE_SELF | ReadFlags::MOVED_FROM) => {
                    Change::Removed
                }
                _ => Change::Changed,
            };
            let path = name.map_or(folder.clone(), |name| join(&folder, &name));
            let new_folder = change == Change::Made && what.contains(ReadFlags::ISDIR) && self.operation.boldly;
            say(&Frame::Event { change, path: path.clone() })?;
            if new_folder {
                let whole = join(&self.operation.path, &path);
                // Gone again, most likely.
                if let Ok(folder) = walk::folder(&whole) {
                    self.add(&folder, &path, DEEPEST)?;
                }
            }
        }
        Ok(())
    }
}
