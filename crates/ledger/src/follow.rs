//! Waits for what is still to come: the kernel says when something was written.

use model::{Entry, EntryQuery};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::inotify;

use crate::error::{Result, cannot};
use crate::writer::Ledger;

impl Ledger {
    /// All entries in their order, and then those that come, until `each` says no.
    pub fn follow(&self, query: &EntryQuery, mut each: impl FnMut(Entry) -> bool) -> Result<()> {
        self.follow_in_turns(query, |next| next.is_none_or(&mut each))
    }

    /// The same; `each` also hears, with nothing, that there is no more for now.
    pub fn follow_in_turns(&self, query: &EntryQuery, mut each: impl FnMut(Option<Entry>) -> bool) -> Result<()> {
        self.place.make()?;
        let folder = self.folder();
        let watch = inotify::init(inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK);
        let watch = watch.map_err(cannot("watch", folder))?;
        // The note is written after the entries, so by then they are there.
        let flags = inotify::WatchFlags::MODIFY | inotify::WatchFlags::CREATE;
        inotify::add_watch(&watch, folder, flags).map_err(cannot("watch", folder))?;
        let mut query = query.clone();
        let mut buffer = [std::mem::MaybeUninit::uninit(); 4096];
        loop {
            let mut more = true;
            let mut last = query.after;
            self.each(&query, |entry| {
                last = entry.number;
                more = each(Some(entry));
                more
            })?;
            if !more || !each(None) {
                return Ok(());
            }
            query.after = last;
            match poll(&mut [PollFd::new(&watch, PollFlags::IN)], None) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(cannot("watch", folder)(error)),
            }
            let mut events = inotify::Reader::new(&watch, &mut buffer);
            while events.next().is_ok() {}
        }
    }
}
