//! Who may begin something now: how often, how much at once, and in which order. A tenant can fill its own queue and nobody
//! else's, and so can an agent of it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::http::StatusCode;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::line::{Full, Line, Place, Room, Who};
use crate::problem::{Problem, Result};

/// How much there may be.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    pub room: Room,
    pub tenant: Measure,
    /// Of one agent of a tenant, as tokens name them.
    pub agent: Measure,
}

/// Of one.
#[derive(Clone, Copy, Debug)]
pub struct Measure {
    /// That stay: sandboxes that are open, and what runs in the background. These are no jobs.
    pub stays: usize,
    /// Requests a second; and so many at once.
    pub rate: u32,
    pub burst: u32,
}

pub struct Admission {
    terms: Terms,
    line: Arc<Mutex<Line<oneshot::Sender<Admitted>>>>,
    known: Mutex<HashMap<Who, Known>>,
}

struct Known {
    stays: Arc<Semaphore>,
    bucket: Bucket,
}

/// As long as this is kept, a job counts.
pub struct Admitted {
    who: Who,
    line: Arc<Mutex<Line<oneshot::Sender<Admitted>>>>,
}

/// As long as this is kept, something that stays counts.
pub struct Stay {
    _tenant: OwnedSemaphorePermit,
    _agent: Option<OwnedSemaphorePermit>,
}

impl Drop for Admitted {
    fn drop(&mut self) {
        let next = lock(&self.line).leave(&self.who);
        if let Some((who, waiter)) = next {
            // Whoever has gone away meanwhile hands it back, and so it goes on to the one after them.
            drop(waiter.send(Admitted { who, line: self.line.clone() }));
        }
    }
}

/// Who waits, and whether they still do.
struct Waits<'a> {
    admission: &'a Admission,
    number: u64,
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        lock(&self.admission.line).go(self.number);
    }
}

impl Admission {
    pub fn new(terms: Terms) -> Admission {
        Admission { terms, line: Arc::new(Mutex::new(Line::new(terms.room))), known: Mutex::default() }
    }

    /// Counts a request; too many are told when to come again.
    pub fn knock(&self, who: &Who) -> Result<()> {
        let now = Instant::now();
        for (who, name) in measured(who) {
            self.with(&who, |known| known.bucket.take(now)).map_err(|wait| {
                Problem::new(StatusCode::TOO_MANY_REQUESTS, "too-often", format!("this {name} asks too often"))
                    .hint("wait as long as `Retry-After` says")
                    .after(wait.as_secs() + 1)
            })?;
        }
        Ok(())
    }

    /// Waits for a place.
    pub async fn enter(&self, who: &Who) -> Result<Admitted> {
        let (tell, told) = oneshot::channel();
        let place = lock(&self.line).come(who, tell).map_err(full)?;
        let number = match place {
            Place::Now => return Ok(Admitted { who: who.clone(), line: self.line.clone() }),
            Place::Waits(number) => number,
        };
        let waits = Waits { admission: self, number };
        let admitted = told.await;
        drop(waits);
        admitted.map_err(|_| {
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, "stopping", "the service is about to end").after(5)
        })
    }

    /// A place for something that stays. Nobody waits for one: they are given back when somebody decides so.
    pub fn stay(&self, who: &Who) -> Result<Stay> {
        let mut permits = Vec::new();
        for (who, name) in measured(who) {
            let stays = self.with(&who, |known| known.stays.clone());
            let permit = stays.try_acquire_owned().map_err(|_| {
                let detail = format!("this {name} has as many open sandboxes and background runs as it may have");
                let hint = format!("stop some of them, or start the service with a larger `--open-per-{name}`");
                Problem::new(StatusCode::TOO_MANY_REQUESTS, "too-many-open", detail).hint(hint).after(5)
            })?;
            permits.push(permit);
        }
        let mut permits = permits.into_iter();
        let closed =
            || Problem::new(StatusCode::SERVICE_UNAVAILABLE, "stopping", "the service is about to end").after(5);
        Ok(Stay { _tenant: permits.next().ok_or_else(closed)?, _agent: permits.next() })
    }

    /// Jobs at this moment.
    pub fn busy(&self) -> usize {
        lock(&self.line).running()
    }

    fn with<T>(&self, who: &Who, ask: impl FnOnce(&mut Known) -> T) -> T {
        let Measure { stays, rate, burst } = if who.agent.is_some() { self.terms.agent } else { self.terms.tenant };
        let new = || Known { stays: Arc::new(Semaphore::new(stays)), bucket: Bucket::new(rate, burst) };
        // There are only as many as somebody made tokens for.
        ask(lock(&self.known).entry(who.clone()).or_insert_with(new))
    }
}

/// Under which measures somebody is: the tenant's, and if it is an agent, its own.
fn measured(who: &Who) -> impl Iterator<Item = (Who, &'static str)> {
    let tenant = Who { agent: None, ..who.clone() };
    let agent = who.agent.is_some().then(|| (who.clone(), "agent"));
    [(tenant, "tenant")].into_iter().chain(agent)
}

fn full(full: Full) -> Problem {
    let name = match full {
        Full::Tenant => "tenant",
        Full::Agent => "agent",
    };
    let detail = format!("this {name} has as many jobs as it may have, and as many wait");
    Problem::new(StatusCode::TOO_MANY_REQUESTS, "full", detail).hint("wait for some of them to end").after(1)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// When the next would be due if all came evenly: it may be early by as much as the burst takes.
struct Bucket {
    due: Option<Instant>,
    every: Duration,
    early: Duration,
}

impl Bucket {
    fn new(rate: u32, burst: u32) -> Bucket {
        let every = Duration::from_secs(1) / rate.max(1);
        Bucket { due: None, every, early: every * burst.max(1).saturating_sub(1) }
    }

    fn take(&mut self, now: Instant) -> std::result::Result<(), Duration> {
        let due = self.due.map_or(now, |due| due.max(now));
        let wait = due.saturating_duration_since(now).saturating_sub(self.early);
        if wait > Duration::ZERO {
            return Err(wait);
        }
        self.due = Some(due + self.every);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TERMS: Terms = Terms {
        room: Room { all: 2, tenant: 1, agent: 1, queue: 2, agent_queue: 2 },
        tenant: Measure { stays: 2, rate: 10, burst: 4 },
        agent: Measure { stays: 1, rate: 10, burst: 3 },
    };

    fn who(tenant: &str, agent: Option<&str>) -> Who {
        Who { tenant: tenant.to_owned(), agent: agent.map(str::to_owned) }
    }

    #[test]
    fn a_burst_passes_and_then_as_many_as_the_rate_says() {
        let mut bucket = Bucket::new(10, 3);
        let start = Instant::now();
        assert!((0..3).all(|_| bucket.take(start).is_ok()));
        assert!(bucket.take(start).is_err());
        assert!(bucket.take(start + Duration::from_millis(100)).is_ok());
        assert!(bucket.take(start + Duration::from_millis(100)).is_err());
        assert!(bucket.take(start + Duration::from_secs(10)).is_ok());
    }

    #[test]
    fn what_stays_counts_for_the_agent_and_for_its_tenant() {
        let admission = Admission::new(TERMS);
        let first = admission.stay(&who("t", Some("a"))).expect("a place");
        let refused = admission.stay(&who("t", Some("a"))).err().expect("no place");
        assert!(refused.detail.contains("agent") && refused.retry_after.is_some(), "{refused:?}");
        let _second = admission.stay(&who("t", Some("b"))).expect("another agent");
        let refused = admission.stay(&who("t", None)).err().expect("no place");
        assert!(refused.detail.contains("tenant"), "{refused:?}");
        drop(first);
        admission.stay(&who("t", Some("a"))).expect("given back, also by the one that was refused");
    }

    #[test]
    fn a_tenant_that_fills_its_queue_keeps_nobody_else_waiting() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async {
            let admission = Arc::new(Admission::new(TERMS));
            let greedy = who("greedy", None);
            let first = admission.enter(&greedy).await.expect("a place");
            let waits: Vec<_> = (0..2)
                .map(|_| {
                    let (admission, greedy) = (admission.clone(), greedy.clone());
                    tokio::spawn(async move { admission.enter(&greedy).await.map(drop) })
                })
                .collect();
            tokio::task::yield_now().await;
            let refused = admission.enter(&greedy).await.err().expect("no place");
            assert_eq!((refused.status, refused.retry_after), (429, Some(1)));
            let other = admission.enter(&who("modest", None)).await.expect("a place");
            assert_eq!(admission.busy(), 2);
            drop((first, other));
            for waited in waits {
                waited.await.expect("joined").expect("a place");
            }
            assert_eq!(admission.busy(), 0);
        });
    }

    #[test]
    fn who_goes_away_while_it_waits_takes_no_place_along() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        runtime.block_on(async {
            let admission = Admission::new(TERMS);
            let one = who("t", None);
            let first = admission.enter(&one).await.expect("a place");
            let mut gone = Box::pin(admission.enter(&one));
            assert!(tokio::time::timeout(Duration::ZERO, gone.as_mut()).await.is_err());
            // Let in, and gone before it noticed.
            drop(first);
            assert_eq!(admission.busy(), 1);
            drop(gone);
            assert_eq!(admission.busy(), 0);
            admission.enter(&one).await.map(drop).expect("a place");
        });
    }
}
