//! Sends the record elsewhere: reads entries, gives them another form, and remembers how far somebody has taken them.
//!
//! What was not taken is sent again: a place hears everything at least once, whenever we are killed.

mod cursor;
mod shape;
mod sink;

use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use export::Origin;
use export::metrics::{CONTENT_TYPE, Metrics};
use ledger::Ledger;
use model::{Destination, Entry, EntryQuery, Export, ExportFormat, Exports, Trouble};

use crate::Engine;
use crate::records::trouble;
use cursor::Cursor;
use shape::Shape;
use sink::{Failure, Sink};

/// Between two tries to tell a place that is away.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

impl Exports for Engine {
    fn export(&self, wish: &Export, output: &mut dyn Write, tell: &dyn Fn(&str)) -> Result<u64, Trouble> {
        fits(wish)?;
        let ledger = self.kept_record()?;
        let origin = self.origin(ledger)?;
        if let Destination::Page(address) = wish.to {
            return self.page(ledger, wish, address, tell).map(|()| 0);
        }
        let mut cursor = wish.cursor.as_deref().map(|name| Cursor::open(ledger, name, wish, &origin)).transpose()?;
        let mut query = wish.query.clone();
        let mut shape = Shape::of(wish.format);
        if let Some(cursor) = &cursor {
            query.after = cursor.after();
            tell_of_a_gap(ledger, query.after, tell)?;
            shape.resume(ledger, &query, cursor.open_runs())?;
        }
        let sink = Sink::open(wish, output, tell).map_err(|failure| failure.trouble)?;
        let mut sending = Sending { sink, shape, cursor: cursor.take(), origin, follow: wish.follow, tell, count: 0 };
        let mut done = Ok(());
        if wish.follow {
            let followed = ledger.follow_in_turns(&query, |next| {
                done = match next {
                    Some(entry) => sending.take(entry),
                    None => sending.flush(),
                };
                done.is_ok()
            });
            followed.map_err(trouble)?;
        } else {
            let read = ledger.each(&query, |entry| {
                done = sending.take(entry);
                done.is_ok()
            });
            read.map_err(trouble)?;
        }
        done?;
        sending.end()
    }
}

impl Engine {
    /// Whose record it is.
    pub(crate) fn origin(&self, ledger: &Ledger) -> Result<Origin, Trouble> {
        let mut installation = String::new();
        let kinds = vec![ledger::kinds::BEGUN.to_owned(), ledger::kinds::SEGMENT.to_owned()];
        let found = ledger.each(&EntryQuery { kinds, ..EntryQuery::default() }, |entry| {
            entry.data["installation"].as_str().unwrap_or_default().clone_into(&mut installation);
            installation.is_empty()
        });
        found.map_err(trouble)?;
        if installation.is_empty() {
            return Err(trouble(ledger::Error::None { path: ledger.folder().to_owned() }));
        }
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        Ok(Origin { installation, host, version: self.version.to_owned() })
    }

    /// Everything so far is counted before the page is there: a reader would take the rest for a burst.
    fn page(
        &self,
        ledger: &Ledger,
        wish: &Export,
        address: std::net::SocketAddr,
        tell: &dyn Fn(&str),
    ) -> Result<(), Trouble> {
        let metrics = Arc::new(Mutex::new(Metrics::default()));
        let mut served = Ok(false);
        let followed = ledger.follow_in_turns(&wish.query, |next| {
            match (next, &served) {
                // A page that panicked has only read: the counts are whole.
                (Some(entry), _) => metrics.lock().unwrap_or_else(PoisonError::into_inner).observe(&entry),
                (None, Ok(true)) => {}
                (None, _) => {
                    let counted = metrics.clone();
                    let page = move || counted.lock().unwrap_or_else(PoisonError::into_inner).text();
                    let at = egress::serve(address, CONTENT_TYPE, page);
                    served = at.map(|at| tell(&format!("metrics are at http://{at}/metrics"))).map(|()| true);
                }
            }
            served.is_ok()
        });
        followed.map_err(trouble)?;
        served.map(drop).map_err(|error| Failure::from(error).trouble)
    }
}

/// What was archived before it was taken is not sent any more; somebody has to know.
fn tell_of_a_gap(ledger: &Ledger, after: u64, tell: &dyn Fn(&str)) -> Result<(), Trouble> {
    let mut next = None;
    let read = ledger.each(&EntryQuery { after, ..EntryQuery::default() }, |entry| {
        next = Some(entry.number);
        false
    });
    read.map_err(trouble)?;
    if let Some(next) = next.filter(|next| *next > after.saturating_add(1)) {
        tell(&format!("entries {} to {} were moved to an archive before they were sent", after + 1, next - 1));
    }
    Ok(())
}

/// Whether such a place can take such a format.
fn fits(wish: &Export) -> Result<(), Trouble> {
    let refuse = |message: String, fix: &str| Err(Trouble { message, fix: fix.to_owned() });
    let name = wish.format.name();
    let for_lines = matches!(
        wish.to,
        Destination::Unix(_) | Destination::Udp { .. } | Destination::Tcp { .. } | Destination::Tls { .. }
    );
    match (wish.format, &wish.to) {
        (ExportFormat::Syslog, Destination::Http(_)) => {
            refuse("syslog is not posted".to_owned(), "use unix:, udp://, tcp:// or tls://, or another format")
        }
        (format, _) if for_lines && format != ExportFormat::Syslog => {
            refuse(format!("only syslog goes there, not {name}"), "use https://, file: or -, or the format syslog")
        }
        (format, Destination::Page(_)) if format != ExportFormat::Prometheus => {
            refuse(format!("only metrics are served as a page, not {name}"), "use the format prometheus, or --to")
        }
        (ExportFormat::Prometheus, Destination::Output) if wish.follow => refuse(
            "metrics do not follow each other on one output".to_owned(),
            "use --listen ADDRESS, or --to file:PATH",
        ),
        (ExportFormat::Prometheus, _) if wish.cursor.is_some() => {
            refuse("metrics are counted from the beginning of the record".to_owned(), "leave out --cursor")
        }
        _ => Ok(()),
    }
}

struct Sending<'a> {
    sink: Sink<'a>,
    shape: Shape,
    cursor: Option<Cursor>,
    origin: Origin,
    /// Then a place that is away is waited for.
    follow: bool,
    tell: &'a dyn Fn(&str),
    count: u64,
}

impl Sending<'_> {
    fn take(&mut self, entry: Entry) -> Result<(), Trouble> {
        self.count += 1;
        self.shape.take(&self.origin, entry);
        if self.shape.is_full() { self.flush() } else { Ok(()) }
    }

    /// What was taken so far is with somebody else after this, and only then it is noted.
    fn flush(&mut self) -> Result<(), Trouble> {
        let Some(batch) = self.shape.batch() else { return Ok(()) };
        if !batch.is_empty() {
            self.deliver(&batch)?;
        }
        self.note(batch.last)
    }

    fn deliver(&mut self, batch: &shape::Batch) -> Result<(), Trouble> {
        let mut pause = FIRST_PAUSE;
        loop {
            match self.sink.deliver(&self.origin, batch) {
                Ok(()) if pause > FIRST_PAUSE => {
                    (self.tell)("it is taken again");
                    return Ok(());
                }
                Ok(()) => return Ok(()),
                Err(Failure { trouble, may_pass }) if self.follow && may_pass => {
                    if pause == FIRST_PAUSE {
                        (self.tell)(&format!("{trouble}; trying again until it is taken"));
                    }
                    std::thread::sleep(pause);
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
                Err(failure) => return Err(failure.trouble),
            }
        }
    }

    fn note(&mut self, last: u64) -> Result<(), Trouble> {
        match &mut self.cursor {
            Some(cursor) => cursor.write(last, self.shape.open_runs()),
            None => Ok(()),
        }
    }

    fn end(mut self) -> Result<u64, Trouble> {
        // With a cursor, the next one tells of runs that have no end yet.
        if self.cursor.is_none() {
            self.shape.end();
        }
        let batch = self.shape.batch();
        if let Some(batch) = batch.as_ref().filter(|batch| !batch.is_empty()) {
            self.deliver(batch)?;
        }
        self.sink.close().map_err(|failure| failure.trouble)?;
        if let Some(batch) = batch {
            self.note(batch.last)?;
        }
        Ok(self.count)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use ledger::{Draft, Durable};

    use super::*;

    #[test]
    fn what_was_archived_before_it_was_sent_is_told() -> Result<(), String> {
        let folder = std::env::temp_dir().join(format!("belljar-gap-{}", std::process::id()));
        let ledger = Ledger::at(folder.clone()).with_segments_of(2000);
        for _ in 0..20 {
            let draft = Draft::now("run.ended", "{}".to_owned());
            ledger.append(&[draft], Durable::default()).map_err(|error| error.to_string())?;
        }
        let said = RefCell::new(Vec::new());
        let look = |after| tell_of_a_gap(&ledger, after, &|text| said.borrow_mut().push(text.to_owned()));
        look(0).map_err(|trouble| trouble.to_string())?;
        assert!(said.borrow().is_empty());
        std::fs::remove_file(folder.join("00000001.log")).map_err(|error| error.to_string())?;
        look(2).map_err(|trouble| trouble.to_string())?;
        assert!(said.borrow().len() == 1 && said.borrow()[0].starts_with("entries 3 to "), "{said:?}");
        // Nothing comes after the last of all numbers.
        look(u64::MAX).map_err(|trouble| trouble.to_string())?;
        assert_eq!(said.borrow().len(), 1);
        std::fs::remove_dir_all(folder).map_err(|error| error.to_string())
    }
}
