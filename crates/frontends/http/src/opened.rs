//! Sandboxes that are open: whoever opened one stays as its host, and counts apart from jobs. Here is who they are, and until
//! when.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::http::StatusCode;
use serde_json::{Value, json};
use service::{Answer, Job, Pool, Running, Said, Task};
use tokio::sync::{Notify, watch};

use crate::admission::Stay;
use crate::problem::{Problem, Result};
use crate::tokens;

/// How long a sandbox that is open stays so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Until {
    /// From when it was opened.
    pub expires: Option<Duration>,
    /// From when somebody last did something in it over this API.
    pub idle: Option<Duration>,
}

#[derive(Default)]
pub struct Opened {
    places: Mutex<HashMap<(String, String), Arc<Place>>>,
    stopping: AtomicBool,
}

/// One that is open, or about to be.
pub struct Place {
    name: Option<String>,
    until: Until,
    opened: u64,
    use_: Mutex<Used>,
    /// True when it has ended.
    over: watch::Sender<bool>,
    stop: Notify,
}

struct Used {
    /// Jobs in it at this moment.
    now: usize,
    last: Instant,
    since: Instant,
    /// Since when it stands still: then no time runs.
    paused: Option<Instant>,
}

/// As long as this is kept, the sandbox is in use.
pub struct Using(Arc<Place>);

impl Drop for Using {
    fn drop(&mut self) {
        let mut used = self.0.lock();
        used.now = used.now.saturating_sub(1);
        used.last = Instant::now();
    }
}

impl Place {
    fn lock(&self) -> MutexGuard<'_, Used> {
        self.use_.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The moment at which it is to be stopped, as things are now, and why.
    fn ends(&self) -> Option<(Instant, String)> {
        let used = self.lock();
        if used.paused.is_some() {
            return None;
        }
        let absolute =
            self.until.expires.map(|time| (used.since + time, format!("it was opened for {} seconds", time.as_secs())));
        let idle = self
            .until
            .idle
            .filter(|_| used.now == 0)
            .map(|time| (used.last + time, format!("nobody used it for {} seconds", time.as_secs())));
        [absolute, idle].into_iter().flatten().min()
    }

    pub fn is_paused(&self) -> bool {
        self.lock().paused.is_some()
    }

    /// It stands still, or goes on.
    pub fn is_now(&self, paused: bool) {
        let mut used = self.lock();
        match (paused, used.paused) {
            (true, None) => used.paused = Some(Instant::now()),
            (false, Some(since)) => {
                let stood = since.elapsed();
                used.since += stood;
                used.last += stood;
                used.paused = None;
            }
            _ => {}
        }
    }

    /// For whoever looks at it.
    pub fn shown(&self) -> Value {
        let left = self.ends().map(|(at, _)| at.saturating_duration_since(Instant::now()).as_secs());
        json!({
            "opened": self.opened,
            "expires": self.until.expires.map(|time| time.as_secs_f64()),
            "idle": self.until.idle.map(|time| time.as_secs_f64()),
            "stops_in": left,
            "paused": self.is_paused(),
        })
    }
}

impl Opened {
    fn all(&self) -> MutexGuard<'_, HashMap<(String, String), Arc<Place>>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// By its whole id, or its name.
    pub fn find(&self, tenant: &str, id: &str) -> Option<Arc<Place>> {
        let all = self.all();
        let named = || {
            let known = all.iter().find(|((of, _), place)| of == tenant && place.name.as_deref() == Some(id));
            known.map(|(_, place)| place)
        };
        all.get(&(tenant.to_owned(), id.to_owned())).or_else(named).cloned()
    }

    /// It is in use until what comes back is dropped; nothing if nobody here opened it. One that is paused is of no use.
    pub fn uses(&self, tenant: &str, id: &str) -> Result<Option<Using>> {
        let Some(place) = self.find(tenant, id) else { return Ok(None) };
        if place.is_paused() {
            return Err(Problem::new(StatusCode::CONFLICT, "paused", "the sandbox is paused")
                .hint("resume it first: `POST /v1/sandboxes/{id}/resume`"));
        }
        place.lock().now += 1;
        Ok(Some(Using(place)))
    }

    /// The service ends.
    pub fn stop_all(&self) {
        self.stopping.store(true, Ordering::Relaxed);
        self.all().values().for_each(|place| place.stop.notify_one());
    }

    /// Somebody wants all of them stopped, and some still stand.
    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed) && self.count() > 0
    }

    pub fn count(&self) -> usize {
        self.all().len()
    }

    /// Opens it, and sees to its end. `job`: of this tenant, with the task to open it; `id`: its whole id. As long as it is open, the
    /// permit is kept.
    pub async fn open(
        self: Arc<Opened>,
        pool: Pool,
        (tenant, id): (String, String),
        name: Option<String>,
        job: Job,
        until: Until,
        permit: Stay,
    ) -> Result<Value> {
        let now = Instant::now();
        let place = Arc::new(Place {
            name,
            until,
            opened: tokens::now(),
            use_: Mutex::new(Used { now: 0, last: now, since: now, paused: None }),
            over: watch::Sender::new(false),
            stop: Notify::new(),
        });
        let key = (tenant, id);
        {
            let mut all = self.all();
            if all.contains_key(&key) {
                return Err(Problem::new(StatusCode::CONFLICT, "conflict", "the sandbox is open already"));
            }
            all.insert(key.clone(), place.clone());
        }
        // On its own: whoever asked may go away meanwhile, and it is open all the same.
        let opening = tokio::spawn(async move {
            let begun = stands(&pool, &job).await;
            match begun {
                Err(problem) => {
                    self.all().remove(&key);
                    Err(problem)
                }
                Ok((running, shown)) => {
                    tokio::spawn(async move {
                        until_it_ends(running, &pool, &job, &key.1, &place).await;
                        drop(permit);
                        self.all().remove(&key);
                        place.over.send_replace(true);
                    });
                    Ok(shown)
                }
            }
        });
        opening.await.map_err(|_| Problem::from(service::Lost::Ended))?
    }

    /// Waits until it is not among those that are open any more.
    pub async fn gone(&self, tenant: &str, id: &str) {
        let Some(place) = self.find(tenant, id) else { return };
        let mut over = place.over.subscribe();
        while !*over.borrow_and_update() {
            if over.changed().await.is_err() {
                return;
            }
        }
    }
}

async fn stands(pool: &Pool, job: &Job) -> Result<(Running, Value)> {
    let mut running = pool.begin(job, None).await?;
    loop {
        match running.next().await? {
            Said::Notice(_) | Said::Asks { .. } | Said::Asked { .. } => {}
            Said::Ready(shown) => return Ok((running, shown)),
            Said::Answer(answer) => {
                Problem::or_value(answer)?;
                return Err(service::Lost::Ended.into());
            }
        }
    }
}

/// Stops it when it is time, by a job of its own, which writes down why.
async fn until_it_ends(mut running: Running, pool: &Pool, job: &Job, id: &str, place: &Place) {
    loop {
        let due = place.ends();
        let wait = match &due {
            Some((at, _)) => at.saturating_duration_since(Instant::now()),
            None => Duration::from_secs(3600),
        };
        // Nobody may come to tell that it is in use again: so it is looked at now and then.
        let wait = wait.min(Duration::from_secs(5)).max(Duration::from_millis(5));
        tokio::select! {
            said = running.next() => match said {
                Ok(Said::Notice(_) | Said::Asks { .. } | Said::Asked { .. } | Said::Ready(_)) => {}
                Ok(Said::Answer(_)) | Err(_) => return,
            },
            () = place.stop.notified() => running.cancel(),
            () = tokio::time::sleep(wait) => {
                let Some((_, why)) = place.ends().filter(|(at, _)| *at <= Instant::now()) else { continue };
                let stop = Job { task: Task::Stop { id: id.to_owned(), why: Some(why) }, ..job.clone() };
                match pool.answer(&stop).await {
                    Ok(Answer::Done(_)) => {}
                    // However it is, it does not stay.
                    Ok(_) | Err(_) => running.cancel(),
                }
                // Its last words, and if they do not come, its end.
                drop(tokio::time::timeout(Duration::from_secs(15), last_words(&mut running)).await);
                return;
            }
        }
    }
}

async fn last_words(running: &mut Running) {
    while let Ok(Said::Notice(_) | Said::Asks { .. } | Said::Asked { .. } | Said::Ready(_)) = running.next().await {}
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(until: Until) -> Arc<Place> {
        let now = Instant::now();
        Arc::new(Place {
            name: Some("n".to_owned()),
            until,
            opened: 0,
            use_: Mutex::new(Used { now: 0, last: now, since: now, paused: None }),
            over: watch::Sender::new(false),
            stop: Notify::new(),
        })
    }

    #[test]
    fn what_is_in_use_is_not_idle_but_its_time_runs_out() {
        let second = Duration::from_secs(1);
        let idle = place(Until { expires: None, idle: Some(second) });
        let opened = Opened::default();
        opened.all().insert(("t".to_owned(), "i".to_owned()), idle.clone());
        assert!(idle.ends().is_some());
        let uses = |tenant: &str, id: &str| opened.uses(tenant, id).ok().flatten();
        let using = uses("t", "i").expect("it is open");
        assert!(idle.ends().is_none());
        drop(using);
        assert!(idle.ends().is_some_and(|(_, why)| why.contains("nobody used it")));
        assert!(uses("other", "i").is_none() && uses("other", "n").is_none());
        assert!(uses("t", "n").is_some());
        idle.is_now(true);
        assert!(idle.ends().is_none() && opened.uses("t", "i").is_err());
        idle.is_now(false);
        assert!(idle.ends().is_some() && uses("t", "i").is_some());
        let both = place(Until { expires: Some(second), idle: Some(second * 5) });
        assert!(both.ends().is_some_and(|(_, why)| why.contains("opened for 1")));
        assert!(place(Until::default()).ends().is_none());
    }
}
