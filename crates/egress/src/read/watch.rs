//! What the fence of a connection and whoever answers its requests tell each other.

use std::sync::Mutex;
use std::task::Waker;

use super::fence::Violation;

/// Locked for moments: both sides are of the same thread, but the library moves one of them as if they were not.
#[derive(Default)]
pub struct Watch(Mutex<Watched>);

#[derive(Default)]
struct Watched {
    violation: Option<Broken>,
    /// The last request that was answered, and whether both speak something else from then on.
    answered: Option<(u64, bool)>,
    /// How many exchanges are over.
    over: u64,
    reader: Option<Waker>,
}

/// What was wrong, and where. Requests of a connection are numbered from one on.
#[derive(Clone, Copy, Debug)]
pub enum Broken {
    /// The request of this number is ours: it stands where the bad one would have been.
    Head(u64, Violation),
    /// Its body ends because it could not go on.
    Body(u64, Violation),
}

impl Watch {
    fn with<T>(&self, look: impl FnOnce(&mut Watched) -> T) -> T {
        // Nothing in here panics; and if it did, what is said is still true.
        look(&mut self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
    }

    pub fn breaks(&self, broken: Broken) {
        self.with(|watched| watched.violation = Some(broken));
    }

    pub fn head(&self, request: u64) -> Option<Violation> {
        self.with(|watched| match watched.violation {
            Some(Broken::Head(number, violation)) if number == request => Some(violation),
            _ => None,
        })
    }

    pub fn body(&self, request: u64) -> Option<Violation> {
        self.with(|watched| match watched.violation {
            Some(Broken::Body(number, violation)) if number == request => Some(violation),
            _ => None,
        })
    }

    /// The head of an answer is about to be sent.
    pub fn answers(&self, request: u64, switches: bool) {
        let reader = self.with(|watched| {
            watched.answered = Some((request, switches));
            watched.reader.take()
        });
        reader.into_iter().for_each(Waker::wake);
    }

    /// Whether that request was answered, and if both speak something else now.
    pub fn answer(&self, request: u64) -> Option<bool> {
        self.with(|watched| match watched.answered {
            Some((number, switches)) if number == request => Some(switches),
            _ => None,
        })
    }

    /// An exchange is over: its answer has gone, or will never.
    pub fn ends(&self) {
        let reader = self.with(|watched| {
            watched.over += 1;
            watched.reader.take()
        });
        reader.into_iter().for_each(Waker::wake);
    }

    pub fn over(&self) -> u64 {
        self.with(|watched| watched.over)
    }

    pub fn wakes(&self, reader: &Waker) {
        self.with(|watched| watched.reader = Some(reader.clone()));
    }
}
