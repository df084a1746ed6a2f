//! The value of one secret: known from the beginning, or fetched when a request needs it and again when it is too old.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;
use zeroize::Zeroizing;

/// Values that were valid before: a server may keep what it was told and say it later.
const MOST_KEPT: usize = 8;

pub struct SecretValue {
    pub name: String,
    /// What programs inside have in its place. It opens nothing.
    pub stand_in: String,
    known: RefCell<Known>,
    source: Option<Rc<dyn Fetches>>,
    /// Of several requests that need it, one fetches it for all.
    turn: Mutex<()>,
}

/// Somebody who knows where values are to be had.
pub trait Fetches {
    fn fetch(&self, name: &str) -> Fetching;
}

/// A value, and for how long it may be used; or why there is none, in words that may be said to anybody.
pub type Fetching = Pin<Box<dyn Future<Output = Result<(Zeroizing<String>, Duration), String>>>>;

#[derive(Default)]
struct Known {
    /// The newest first.
    values: VecDeque<Rc<Zeroizing<String>>>,
    /// When the newest is too old.
    until: Option<Instant>,
}

impl SecretValue {
    pub fn new(name: &str, stand_in: &str, value: &str) -> SecretValue {
        let value = (!value.is_empty()).then(|| Rc::new(Zeroizing::new(value.to_owned())));
        let known = Known { values: value.into_iter().collect(), until: None };
        SecretValue { known: RefCell::new(known), ..SecretValue::of(name, stand_in, None) }
    }

    /// One that nobody knows yet.
    pub fn fetched(name: &str, stand_in: &str, source: Rc<dyn Fetches>) -> SecretValue {
        SecretValue::of(name, stand_in, Some(source))
    }

    fn of(name: &str, stand_in: &str, source: Option<Rc<dyn Fetches>>) -> SecretValue {
        let (name, stand_in) = (name.to_owned(), stand_in.to_owned());
        SecretValue { name, stand_in, known: RefCell::default(), source, turn: Mutex::default() }
    }

    /// Nothing stands for nothing.
    pub(super) fn is_something(&self) -> bool {
        !self.stand_in.is_empty() && (self.source.is_some() || self.value().is_some())
    }

    /// The newest that is known. Whoever sends it has made it ready before.
    pub(super) fn value(&self) -> Option<Rc<Zeroizing<String>>> {
        self.known.borrow().values.front().cloned()
    }

    /// All that must not come back.
    pub(super) fn all(&self) -> Vec<Rc<Zeroizing<String>>> {
        self.known.borrow().values.iter().cloned().collect()
    }

    /// Fetches it, if it is not known or too old. Without, nothing is sent: an old one is no better than none.
    pub(super) async fn ready(&self) -> Result<(), String> {
        let Some(source) = &self.source else { return Ok(()) };
        if self.is_fresh() {
            return Ok(());
        }
        let _turn = self.turn.lock().await;
        if self.is_fresh() {
            return Ok(());
        }
        // Counted from before: it may have been made at once.
        let asked = Instant::now();
        let (value, lasts) = source.fetch(&self.name).await?;
        let mut known = self.known.borrow_mut();
        known.until = asked.checked_add(lasts);
        if known.values.front().is_none_or(|newest| **newest != value) {
            known.values.push_front(Rc::new(value));
            known.values.truncate(MOST_KEPT);
        }
        Ok(())
    }

    fn is_fresh(&self) -> bool {
        let known = self.known.borrow();
        !known.values.is_empty() && known.until.is_some_and(|until| Instant::now() < until)
    }
}

impl std::fmt::Debug for SecretValue {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("SecretValue").field("name", &self.name).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// Counts; and fails when it is told to.
    #[derive(Default)]
    struct Counter {
        calls: Cell<u32>,
        lasts: Cell<Duration>,
        fails: Cell<bool>,
    }

    struct Shared(Rc<Counter>);

    impl Fetches for Shared {
        fn fetch(&self, name: &str) -> Fetching {
            let (counter, name) = (self.0.clone(), name.to_owned());
            Box::pin(async move {
                tokio::task::yield_now().await;
                counter.calls.set(counter.calls.get() + 1);
                match counter.fails.get() {
                    true => Err("it failed".to_owned()),
                    false => Ok((Zeroizing::new(format!("{name}-{}", counter.calls.get())), counter.lasts.get())),
                }
            })
        }
    }

    #[test]
    fn a_value_is_fetched_once_for_all_who_need_it_and_again_when_it_is_too_old() {
        let counter = Rc::new(Counter { lasts: Cell::new(Duration::from_secs(3600)), ..Counter::default() });
        let secret = SecretValue::fetched("t", "STAND-IN", Rc::new(Shared(counter.clone())));
        assert!(secret.is_something() && secret.value().is_none());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let (one, two, three) = tokio::join!(secret.ready(), secret.ready(), secret.ready());
            assert_eq!((one, two, three, counter.calls.get()), (Ok(()), Ok(()), Ok(()), 1));
            assert_eq!((secret.ready().await, counter.calls.get()), (Ok(()), 1));
            // From now on each is too old at once.
            secret.known.borrow_mut().until = Some(Instant::now());
            counter.lasts.set(Duration::ZERO);
            assert_eq!((secret.ready().await, counter.calls.get()), (Ok(()), 2));
            assert_eq!(secret.value().expect("one").as_str(), "t-2");
            // The old one must not come back either.
            assert_eq!(secret.all().len(), 2);
            counter.fails.set(true);
            assert_eq!(secret.ready().await, Err("it failed".to_owned()));
            // Not remembered: what fails now may work in a moment.
            counter.fails.set(false);
            assert_eq!((secret.ready().await, secret.value().expect("one").as_str()), (Ok(()), "t-4"));
        });
    }

    #[test]
    fn nothing_that_is_printed_shows_a_value() {
        assert!(!format!("{:?}", SecretValue::new("a", "b", "sesame")).contains("sesame"));
        assert!(!SecretValue::new("a", "b", "").is_something() && !SecretValue::new("a", "", "c").is_something());
    }
}
