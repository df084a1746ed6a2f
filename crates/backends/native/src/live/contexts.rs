//! What the host knows of contexts: interpreters that wait for the next cell. It holds our ends of their pipes, and lends them to
//! one visitor at a time.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{SystemTime, UNIX_EPOCH};

use model::{CellLanguage, ContextShown, MOST_CONTEXTS, is_context_name};
use sys::descriptors;

/// What a visitor may want of contexts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// To run a cell in it.
    Lend(String),
    /// A new one, which is then lent.
    Make(String, CellLanguage),
    /// The cell is over, and the context can be lent to the next.
    GiveBack,
    List,
    Interrupt(String),
    End(String),
}

/// What is said to who wants something.
pub const DONE: &[u8] = b"done";
/// There is no such context.
pub const NONE: &[u8] = b"none";
/// It is lent to somebody else, or there is one already.
pub const BUSY: &[u8] = b"busy";
/// There are as many as there can be.
pub const FULL: &[u8] = b"full";
/// Nothing runs in it.
pub const IDLE: &[u8] = b"idle";
/// Said to whoever has it: somebody wants what runs there to stop.
pub const INTERRUPT: &[u8] = b"interrupt";

/// Whether its variables can be forked, so that it has one descriptor more on either side.
pub fn has_parcels(language: CellLanguage) -> bool {
    language == CellLanguage::Python
}

impl Wanted {
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Wanted::Lend(name) => format!("cell\t{name}"),
            Wanted::Make(name, language) => format!("context\t{name}\t{}", language.name()),
            Wanted::GiveBack => "back".to_owned(),
            Wanted::List => "contexts".to_owned(),
            Wanted::Interrupt(name) => format!("interrupt\t{name}"),
            Wanted::End(name) => format!("end\t{name}"),
        }
        .into_bytes()
    }

    pub fn decode(bytes: &[u8]) -> Option<Wanted> {
        let mut words = std::str::from_utf8(bytes).ok()?.split('\t');
        let name = |name: &str| is_context_name(name).then(|| name.to_owned());
        match (words.next()?, words.next(), words.next(), words.next()) {
            ("cell", Some(context), None, None) => Some(Wanted::Lend(name(context)?)),
            ("context", Some(context), Some(language), None) => {
                Some(Wanted::Make(name(context)?, CellLanguage::named(language)?))
            }
            ("back", None, None, None) => Some(Wanted::GiveBack),
            ("contexts", None, None, None) => Some(Wanted::List),
            ("interrupt", Some(context), None, None) => Some(Wanted::Interrupt(name(context)?)),
            ("end", Some(context), None, None) => Some(Wanted::End(name(context)?)),
            _ => None,
        }
    }
}

/// Our ends of what leads to one and back: cells go in; output, error output and results come out. Those whose variables can be
/// forked have a socket, too, on which descriptors go in and nothing comes out.
pub struct Ends {
    pub cells: OwnedFd,
    pub output: OwnedFd,
    pub error: OwnedFd,
    pub results: OwnedFd,
    pub parcels: Option<OwnedFd>,
}

impl Ends {
    pub fn all(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let four = [self.cells.as_fd(), self.output.as_fd(), self.error.as_fd(), self.results.as_fd()];
        four.into_iter().chain(self.parcels.as_ref().map(AsFd::as_fd))
    }

    pub fn of(list: Vec<OwnedFd>) -> Option<Ends> {
        let mut list = list.into_iter();
        let (cells, output, error, results) = (list.next()?, list.next()?, list.next()?, list.next()?);
        let parcels = list.next();
        list.next().is_none().then_some(Ends { cells, output, error, results, parcels })
    }
}

#[derive(Default)]
pub struct Contexts(Vec<Context>);

struct Context {
    shown: ContextShown,
    /// What the first process calls it.
    number: u32,
    ends: Ends,
    /// Who waits for its end.
    waiting: Vec<OwnedFd>,
}

impl Contexts {
    /// The number of one of that name, and whether it is lent.
    pub fn find(&self, name: &str) -> Option<(u32, bool)> {
        self.0.iter().find(|context| context.shown.name == name).map(|context| (context.number, context.shown.busy))
    }

    pub fn is_full(&self) -> bool {
        self.0.len() >= MOST_CONTEXTS
    }

    /// A new one, lent to whoever wants it made.
    pub fn add(&mut self, name: String, language: CellLanguage, number: u32, ends: Ends) {
        let created = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let shown = ContextShown { name, language, busy: true, cells: 1, created };
        self.0.push(Context { shown, number, ends, waiting: Vec::new() });
    }

    /// Lends it to `visitor`, who is told which cell this is.
    pub fn lend(&mut self, number: u32, visitor: BorrowedFd<'_>) -> io::Result<()> {
        let context = self.0.iter_mut().find(|context| context.number == number).ok_or(io::ErrorKind::NotFound)?;
        context.shown.busy = true;
        context.shown.cells += 1;
        let words = format!("lent\t{}", context.shown.cells);
        descriptors::send(visitor, words.as_bytes(), &context.ends.all().collect::<Vec<_>>())
    }

    /// Whether it is one that is lent.
    pub fn take_back(&mut self, number: u32) -> bool {
        let lent = self.0.iter_mut().find(|context| context.number == number && context.shown.busy);
        lent.map(|context| context.shown.busy = false).is_some()
    }

    /// It is to end: `visitor` hears when it has.
    pub fn await_end(&mut self, number: u32, visitor: OwnedFd) {
        self.0.iter_mut().filter(|context| context.number == number).for_each(|context| {
            if let Ok(visitor) = visitor.try_clone() {
                context.waiting.push(visitor);
            }
        });
    }

    /// It has ended, if there was one.
    pub fn ended(&mut self, number: u32) {
        let Some(at) = self.0.iter().position(|context| context.number == number) else { return };
        for visitor in self.0.swap_remove(at).waiting {
            match descriptors::send(visitor.as_fd(), DONE, &[]) {
                // Whoever does not wait any more need not be told.
                Ok(()) | Err(_) => {}
            }
        }
    }

    /// Who waits for a cell that never comes ends by itself.
    pub fn let_go(&mut self) {
        self.0.clear();
    }

    pub fn list(&self) -> Vec<u8> {
        let shown: Vec<&ContextShown> = self.0.iter().map(|context| &context.shown).collect();
        serde_json::to_vec(&shown).unwrap_or_default()
    }
}

/// What the host says to who is lent a context: the number of the cell.
pub fn lent(words: &[u8]) -> Option<u64> {
    std::str::from_utf8(words).ok()?.strip_prefix("lent\t")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_wanted_survives(name in "[a-z0-9._-]{1,64}", which in 0usize..3) {
            let language = CellLanguage::ALL[which];
            for wanted in [Wanted::Lend(name.clone()), Wanted::Make(name.clone(), language), Wanted::GiveBack, Wanted::List,
                Wanted::Interrupt(name.clone()), Wanted::End(name.clone())] {
                prop_assert_eq!(Wanted::decode(&wanted.encode()), Some(wanted));
            }
        }

        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            if let Some(wanted) = Wanted::decode(&bytes) {
                prop_assert_eq!(wanted.encode(), bytes);
            }
        }
    }
}
