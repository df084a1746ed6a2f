//! Calls that go on: a call may outlive the request that began it, while a person is asked. What it came to is handed out once.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::said::{Failure, Good};
use crate::state::Digest;

/// Calls of one caller that wait for a person, or whose end nobody came for.
const MOST_PARKED: usize = 64;
/// What nobody came for is kept for so long.
const KEPT_FOR: Duration = Duration::from_secs(15 * 60);

pub type Ended = Result<Good, Failure>;

/// How far a call is.
#[derive(Clone, Debug)]
pub enum Now {
    Goes,
    /// A person is asked; `how` says how they answer.
    Asks {
        question: String,
        how: String,
    },
    Over(Arc<Ended>),
}

pub struct Call {
    pub id: String,
    /// Whose it is.
    caller: String,
    digest: Digest,
    now: watch::Sender<Now>,
    /// What it says while it goes on, the newest last; for progress.
    pub news: watch::Sender<(u64, String)>,
    pub cancel: CancellationToken,
    /// Whoever asked was sent away until a person has answered.
    parked: AtomicBool,
    ended: Mutex<Option<Instant>>,
}

impl Call {
    pub fn new(id: String, caller: &str, digest: Digest) -> Arc<Call> {
        Arc::new(Call {
            id,
            caller: caller.to_owned(),
            digest,
            now: watch::Sender::new(Now::Goes),
            news: watch::Sender::new((0, String::new())),
            cancel: CancellationToken::new(),
            parked: AtomicBool::new(false),
            ended: Mutex::default(),
        })
    }

    pub fn watch(&self) -> watch::Receiver<Now> {
        self.now.subscribe()
    }

    pub fn says(&self, text: impl Into<String>) {
        let text = text.into();
        self.news.send_modify(|(count, last)| (*count, *last) = (*count + 1, text));
    }

    pub fn asks(&self, question: String, how: String) {
        self.now.send_replace(Now::Asks { question, how });
    }

    pub fn goes_on(&self) {
        self.now.send_if_modified(|now| {
            let asked = matches!(now, Now::Asks { .. });
            if asked {
                *now = Now::Goes;
            }
            asked
        });
    }

    pub fn over(&self, end: Ended) {
        *self.ended.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        self.now.send_replace(Now::Over(Arc::new(end)));
    }

    fn is_forgotten(&self) -> bool {
        let ended = *self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        ended.is_some_and(|at| at.elapsed() > KEPT_FOR)
    }
}

/// Those that were parked.
#[derive(Default)]
pub struct Calls(Mutex<HashMap<String, Arc<Call>>>);

impl Calls {
    /// Keeps a call until somebody comes for its end. Not if there are too many: then it is ended.
    pub fn park(&self, call: &Arc<Call>) -> Result<(), Failure> {
        let mut table = self.lock();
        table.retain(|_, call| !call.is_forgotten());
        let others = table.values().filter(|other| other.caller == call.caller && other.id != call.id).count();
        if others >= MOST_PARKED {
            call.cancel.cancel();
            return Err(Failure::new("full", format!("{others} calls wait for a person already"))
                .rule("mcp.parked")
                .fix("have them answered first: `belljar approve`"));
        }
        call.parked.store(true, Ordering::Relaxed);
        table.insert(call.id.clone(), call.clone());
        Ok(())
    }

    /// The one of this name, if it is this caller's and of these arguments.
    pub fn find(&self, id: &str, caller: &str, digest: &Digest) -> Option<Arc<Call>> {
        let call = self.lock().get(id).cloned()?;
        (call.caller == caller && call.digest == *digest).then_some(call)
    }

    /// The one that the same caller was sent away from with the same arguments: of revisions that have no state to hold.
    pub fn same(&self, caller: &str, digest: &Digest) -> Option<Arc<Call>> {
        let table = self.lock();
        let mut same = table.values().filter(|call| call.caller == caller && call.digest == *digest);
        same.find(|call| !call.is_forgotten()).cloned()
    }

    /// Nobody else gets it from now on. Whether we were the first.
    pub fn take(&self, call: &Call) -> bool {
        self.lock().remove(&call.id).is_some() || !call.parked.load(Ordering::Relaxed)
    }

    pub fn end_all(&self) {
        self.lock().values().for_each(|call| call.cancel.cancel());
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<Call>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(id: usize, caller: &str) -> Arc<Call> {
        Call::new(id.to_string(), caller, [0; 32])
    }

    #[test]
    fn an_end_is_handed_out_once_and_to_its_caller() {
        let calls = Calls::default();
        let call = call(1, "a");
        calls.park(&call).expect("parked");
        assert!(calls.find("1", "b", &[0; 32]).is_none() && calls.find("1", "a", &[1; 32]).is_none());
        assert!(calls.same("b", &[0; 32]).is_none());
        let (one, two) = (calls.find("1", "a", &[0; 32]).expect("it"), calls.same("a", &[0; 32]).expect("it"));
        assert!(calls.take(&one));
        assert!(!calls.take(&two), "somebody was faster");
        assert!(calls.find("1", "a", &[0; 32]).is_none());
    }

    #[test]
    fn one_caller_can_fill_its_own_room_and_nobody_elses() {
        let calls = Calls::default();
        for id in 0..MOST_PARKED {
            calls.park(&call(id, "a")).expect("parked");
        }
        let surplus = call(MOST_PARKED, "a");
        assert!(calls.park(&surplus).is_err() && surplus.cancel.is_cancelled());
        calls.park(&call(MOST_PARKED + 1, "b")).expect("parked");
        // The same again is no other.
        calls.park(&call(0, "a")).expect("parked");
    }
}
