//! Who may begin something now: how often, how much at once, and in which order. A tenant can fill its own queue and nobody
//! else's.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::http::StatusCode;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::problem::{Problem, Result};

/// How much there may be.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// Jobs at once, of all tenants.
    pub all: usize,
    /// Of one.
    pub tenant: usize,
    /// Of one, besides those that run.
    pub queue: usize,
    /// Of one, that stay: sandboxes that are open, and what runs in the background. These are no jobs.
    pub stays: usize,
    /// Requests of one, a second; and so many at once.
    pub rate: u32,
    pub burst: u32,
}

pub struct Admission {
    terms: Terms,
    all: Arc<Semaphore>,
    tenants: Mutex<HashMap<String, Tenant>>,
}

struct Tenant {
    places: Arc<Semaphore>,
    line: Arc<Semaphore>,
    stays: Arc<Semaphore>,
    bucket: Bucket,
}

/// As long as this is kept, a job counts.
pub struct Admitted {
    _tenant: OwnedSemaphorePermit,
    _all: OwnedSemaphorePermit,
}

impl Admission {
    pub fn new(terms: Terms) -> Admission {
        Admission { terms, all: Arc::new(Semaphore::new(terms.all)), tenants: Mutex::default() }
    }

    /// Counts a request; too many are told when to come again.
    pub fn knock(&self, tenant: &str) -> Result<()> {
        self.with(tenant, |tenant| tenant.bucket.take(Instant::now())).map_err(|wait| {
            Problem::new(StatusCode::TOO_MANY_REQUESTS, "too-often", "this tenant asks too often")
                .hint("wait as long as `Retry-After` says")
                .after(wait.as_secs() + 1)
        })
    }

    /// Waits for a place. First for one of the tenant's own, so that of one tenant never more wait for a common place than it
    /// may have at once: those stand in one line, and nobody waits behind another's queue.
    pub async fn enter(&self, tenant: &str) -> Result<Admitted> {
        let (places, line) = self.with(tenant, |tenant| (tenant.places.clone(), tenant.line.clone()));
        let full = || {
            Problem::new(
                StatusCode::TOO_MANY_REQUESTS,
                "full",
                "this tenant has as many jobs as it may have, and as many wait",
            )
            .hint("wait for some of them to end")
            .after(1)
        };
        let _waits = line.try_acquire_owned().map_err(|_| full())?;
        let closed =
            |_| Problem::new(StatusCode::SERVICE_UNAVAILABLE, "stopping", "the service is about to end").after(5);
        let tenant = places.acquire_owned().await.map_err(closed)?;
        let all = self.all.clone().acquire_owned().await.map_err(closed)?;
        Ok(Admitted { _tenant: tenant, _all: all })
    }

    /// A place for something that stays. Nobody waits for one: they are given back when somebody decides so.
    pub fn stay(&self, tenant: &str) -> Result<OwnedSemaphorePermit> {
        let stays = self.with(tenant, |tenant| tenant.stays.clone());
        stays.try_acquire_owned().map_err(|_| {
            let detail = "this tenant has as many open sandboxes and background runs as it may have";
            Problem::new(StatusCode::TOO_MANY_REQUESTS, "too-many-open", detail)
                .hint("stop some of them, or start the service with a larger `--open-per-tenant`")
                .after(5)
        })
    }

    /// Jobs at this moment.
    pub fn busy(&self) -> usize {
        self.terms.all.saturating_sub(self.all.available_permits())
    }

    fn with<T>(&self, tenant: &str, ask: impl FnOnce(&mut Tenant) -> T) -> T {
        let Terms { tenant: places, queue, stays, rate, burst, .. } = self.terms;
        let mut tenants = self.tenants.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || Tenant {
            places: Arc::new(Semaphore::new(places)),
            line: Arc::new(Semaphore::new(queue)),
            stays: Arc::new(Semaphore::new(stays)),
            bucket: Bucket::new(rate, burst),
        };
        // There are only as many as somebody made tokens for.
        ask(tenants.entry(tenant.to_owned()).or_insert_with(new))
    }
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

    const TERMS: Terms = Terms { all: 2, tenant: 1, queue: 2, stays: 1, rate: 10, burst: 3 };

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
    fn a_tenant_that_fills_its_queue_keeps_nobody_else_waiting() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async {
            let admission = Arc::new(Admission::new(TERMS));
            let first = admission.enter("greedy").await.expect("a place");
            let waits: Vec<_> = (0..2)
                .map(|_| {
                    let admission = admission.clone();
                    tokio::spawn(async move { admission.enter("greedy").await.map(drop) })
                })
                .collect();
            tokio::task::yield_now().await;
            let refused = admission.enter("greedy").await.err().expect("no place");
            assert_eq!((refused.status, refused.retry_after), (429, Some(1)));
            let other = admission.enter("modest").await.expect("a place");
            assert_eq!(admission.busy(), 2);
            drop((first, other));
            for waited in waits {
                waited.await.expect("joined").expect("a place");
            }
            assert_eq!(admission.busy(), 0);
        });
    }
}
