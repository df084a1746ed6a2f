//! Terminals in sandboxes: each is a run of its own that goes on whoever looks at it. The last of what it showed is kept for those who
//! come (back) to it, and is at the same time all that anybody has to wait for: whoever is too slow misses some, and is told.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::http::StatusCode;
use bytes::Bytes;
use serde_json::{Value, json};
use service::{Job, Lost, Said, Screen, Size, Streams};
use tokio::sync::{Notify, mpsc, watch};

use crate::App;
use crate::opened::Using;
use crate::problem::{Problem, Result};
use crate::{runs, tokens};

/// Of what one terminal showed, in bytes.
const KEPT: usize = 256 << 10;
/// Of terminals that have ended, for each tenant; and for how long.
const MOST_ENDED: usize = 32;
const ENDED_FOR: Duration = Duration::from_secs(15 * 60);
/// Read at once.
const AT_ONCE: usize = 16 << 10;
/// After having been told to end. The sandbox's host ends it before that.
const GRACE: Duration = Duration::from_secs(10);
const MOST_NOTICES: usize = 100;

const HANG_UP: i32 = 1;
const WINDOW_CHANGED: i32 = 28;

#[derive(Default)]
pub struct Terminals {
    all: Mutex<HashMap<String, Arc<Terminal>>>,
    ending: AtomicBool,
}

pub struct Terminal {
    pub id: String,
    tenant: String,
    /// Its sandbox: the whole id, and the name.
    sandbox: (String, Option<String>),
    command: Vec<String>,
    began: u64,
    screen: Screen,
    state: Mutex<State>,
    /// Changes whenever there is something new.
    news: watch::Sender<u64>,
    signals: mpsc::Sender<i32>,
    /// Somebody wants it to end.
    hangs_up: Notify,
}

struct State {
    shown: Shown,
    size: Size,
    viewers: usize,
    begun: bool,
    notices: Vec<String>,
    end: Option<(std::result::Result<Value, Problem>, Instant)>,
}

/// The last of what was shown.
#[derive(Default)]
struct Shown {
    kept: VecDeque<u8>,
    /// All that was ever shown, in bytes.
    total: u64,
}

impl Shown {
    fn add(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        self.kept.extend(bytes);
        let surplus = self.kept.len().saturating_sub(KEPT);
        self.kept.drain(..surplus);
    }

    fn first(&self) -> u64 {
        self.total - self.kept.len() as u64
    }

    /// Where somebody begins who has seen nothing: not in the middle of a line, if a part is gone.
    fn beginning(&self) -> u64 {
        let line = self.kept.iter().position(|byte| *byte == b'\n').map_or(0, |at| at as u64 + 1);
        if self.first() == 0 { 0 } else { self.first() + line }
    }

    /// What follows after so many bytes, and how many were missed before it.
    fn after(&self, at: u64, most: usize) -> (Bytes, u64) {
        let from = at.clamp(self.first(), self.total);
        let start = usize::try_from(from - self.first()).unwrap_or(usize::MAX).min(self.kept.len());
        let end = self.kept.len().min(start.saturating_add(most));
        (self.kept.range(start..end).copied().collect(), from.saturating_sub(at))
    }
}

/// What is to be begun.
pub struct Wanted {
    pub tenant: String,
    pub sandbox: (String, Option<String>),
    pub command: Vec<String>,
    pub size: Size,
    pub job: Job,
}

impl Terminals {
    /// Begins one, and comes back when it was let in or somebody is asked about it. `held` is kept until its end, `using` until it is
    /// begun: after that, who looks at it uses the sandbox.
    pub async fn begin<T: Send + 'static>(
        &self,
        app: &App,
        wanted: Wanted,
        using: Option<Using>,
        held: T,
    ) -> Result<Arc<Terminal>> {
        let Wanted { tenant, sandbox, command, size, job } = wanted;
        let (screen, streams) = Screen::open(size).map_err(|error| {
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, "no-terminal", format!("cannot make a terminal: {error}"))
                .hint("end some that are not needed")
                .after(5)
        })?;
        let (signals, signalled) = mpsc::channel(64);
        let terminal = Arc::new(Terminal {
            id: runs::new_id()?,
            tenant,
            sandbox,
            command,
            began: tokens::now(),
            screen,
            state: Mutex::new(State {
                shown: Shown::default(),
                size,
                viewers: 0,
                begun: false,
                notices: Vec::new(),
                end: None,
            }),
            news: watch::Sender::new(0),
            signals,
            hangs_up: Notify::new(),
        });
        {
            let mut all = self.lock();
            forget(&mut all, &terminal.tenant);
            all.insert(terminal.id.clone(), terminal.clone());
        }
        let (going, pool) = (terminal.clone(), app.pool.clone());
        tokio::spawn(async move {
            let carried = going.carried(&pool, &job, streams, signalled).await;
            drop(held);
            going.ended(carried);
        });
        terminal.until(|state| state.begun || state.end.is_some() || !state.notices.is_empty()).await;
        drop(using);
        let refused = terminal.lock().end.as_ref().and_then(|(end, _)| end.as_ref().err().cloned());
        match refused {
            None => Ok(terminal),
            Some(problem) => {
                self.lock().remove(&terminal.id);
                Err(problem)
            }
        }
    }

    /// Another tenant's, or another sandbox's, is not found, as if there were none.
    pub fn find(&self, tenant: &str, sandbox: &str, id: &str) -> Result<Arc<Terminal>> {
        let found = self.lock().get(id).cloned();
        found.filter(|one| one.tenant == tenant && one.is_in(sandbox)).ok_or_else(Problem::not_found)
    }

    pub fn list(&self, tenant: &str, sandbox: &str) -> Vec<Value> {
        let mut all: Vec<Arc<Terminal>> =
            self.lock().values().filter(|one| one.tenant == tenant && one.is_in(sandbox)).cloned().collect();
        all.sort_by_key(|one| (std::cmp::Reverse(one.began), one.id.clone()));
        all.iter().map(|one| one.shown()).collect()
    }

    pub fn remove(&self, terminal: &Terminal) {
        self.lock().remove(&terminal.id);
    }

    /// The service ends.
    pub fn end_all(&self) {
        self.ending.store(true, Ordering::Relaxed);
        self.lock().values().for_each(|one| one.hang_up());
    }

    pub fn are_ending(&self) -> bool {
        self.ending.load(Ordering::Relaxed) && self.lock().values().any(|one| !one.is_over())
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<Terminal>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn forget(all: &mut HashMap<String, Arc<Terminal>>, tenant: &str) {
    all.retain(|_, one| one.ended_at().is_none_or(|at| at.elapsed() < ENDED_FOR));
    let of_this = all.values().filter(|one| one.tenant == tenant);
    let mut ended: Vec<(Instant, String)> = of_this.filter_map(|one| Some((one.ended_at()?, one.id.clone()))).collect();
    ended.sort();
    let surplus = ended.len().saturating_sub(MOST_ENDED - 1);
    ended.iter().take(surplus).for_each(|(_, id)| drop(all.remove(id)));
}

/// What a viewer gets next.
pub enum Next {
    Bytes {
        bytes: Bytes,
        missed: u64,
    },
    /// It has ended, and all was shown.
    End(Value),
    Nothing,
}

/// Somebody looks.
pub struct Viewing(Arc<Terminal>);

impl Drop for Viewing {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.viewers = state.viewers.saturating_sub(1);
    }
}

impl Terminal {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_in(&self, sandbox: &str) -> bool {
        self.sandbox.0 == sandbox || self.sandbox.1.as_deref() == Some(sandbox)
    }

    pub fn is_over(&self) -> bool {
        self.lock().end.is_some()
    }

    fn ended_at(&self) -> Option<Instant> {
        self.lock().end.as_ref().map(|(_, at)| *at)
    }

    /// As it is now.
    pub fn shown(&self) -> Value {
        let state = self.lock();
        let status = match (&state.end, state.begun) {
            (Some((Ok(_), _)), _) => "done",
            (Some((Err(_), _)), _) => "failed",
            (None, true) => "running",
            (None, false) => "waiting",
        };
        let mut shown = json!({
            "id": self.id, "sandbox": self.sandbox.0, "command": self.command, "created": self.began, "status": status,
            "columns": state.size.columns, "rows": state.size.rows, "viewers": state.viewers, "notices": state.notices,
            "attach": format!("/v1/sandboxes/{}/terminals/{}/attach", self.sandbox.0, self.id),
        });
        match &state.end {
            None => {}
            Some((Ok(result), _)) => shown["result"] = result.clone(),
            Some((Err(problem), _)) => shown["problem"] = serde_json::to_value(problem).unwrap_or_default(),
        }
        shown
    }

    /// How it ended, in short: the last word to whoever looks.
    fn last_word(end: &std::result::Result<Value, Problem>) -> Value {
        match end {
            Ok(result) => json!({"exit": {
                "code": result["exit"], "signal": result["signal"], "overrun": result["overrun"],
            }}),
            Err(problem) => json!({"exit": {"problem": problem}}),
        }
    }

    pub fn view(self: &Arc<Terminal>) -> Viewing {
        self.lock().viewers += 1;
        Viewing(self.clone())
    }

    pub fn news(&self) -> watch::Receiver<u64> {
        self.news.subscribe()
    }

    /// Where a new viewer begins.
    pub fn beginning(&self) -> u64 {
        self.lock().shown.beginning()
    }

    /// What follows after so many bytes.
    pub fn after(&self, at: u64, most: usize) -> Next {
        let state = self.lock();
        let (bytes, missed) = state.shown.after(at, most);
        match (&state.end, bytes.is_empty()) {
            (_, false) => Next::Bytes { bytes, missed },
            (Some((end, _)), true) => Next::End(Terminal::last_word(end)),
            (None, true) => Next::Nothing,
        }
    }

    /// Types as much of it as there is room for.
    pub async fn types(&self, bytes: &[u8]) -> std::io::Result<usize> {
        self.screen.write(bytes).await
    }

    pub fn resize(&self, size: Size) -> Result<()> {
        if self.is_over() {
            return Err(over());
        }
        self.screen.resize(size).map_err(|error| Problem::from(Lost::Io(error)))?;
        self.lock().size = size;
        self.signal(WINDOW_CHANGED);
        Ok(())
    }

    /// Of too many at once, some are none.
    pub fn signal(&self, signal: i32) {
        match self.signals.try_send(signal) {
            Ok(()) | Err(_) => {}
        }
    }

    /// As when somebody closes the window.
    pub fn hang_up(&self) {
        self.hangs_up.notify_one();
    }

    /// Waits for its end.
    pub async fn end(&self) {
        self.until(|state| state.end.is_some()).await;
    }

    async fn until(&self, is: impl Fn(&State) -> bool) {
        let mut news = self.news.subscribe();
        while !is(&self.lock()) {
            if news.changed().await.is_err() {
                return;
            }
        }
    }

    fn changed(&self) {
        self.news.send_modify(|count| *count += 1);
    }

    fn ended(&self, end: Result<Value>) {
        self.lock().end = Some((end, Instant::now()));
        self.changed();
    }

    async fn carried(
        self: &Arc<Terminal>,
        pool: &service::Pool,
        job: &Job,
        streams: Streams,
        mut signals: mpsc::Receiver<i32>,
    ) -> Result<Value> {
        let mut running = pool.begin(job, Some(streams)).await?;
        let reader = tokio::spawn(self.clone().reads());
        let mut ends: Option<Instant> = None;
        let answer = loop {
            let patience = ends.map_or(Duration::from_secs(3600), |at| at.saturating_duration_since(Instant::now()));
            tokio::select! {
                said = running.next() => match said {
                    Ok(Said::Notice(text) | Said::Asks { how: text, .. }) => {
                        let mut state = self.lock();
                        if state.notices.len() < MOST_NOTICES {
                            state.notices.push(text);
                        }
                        drop(state);
                        self.changed();
                    }
                    Ok(Said::Ready(_)) => {
                        self.lock().begun = true;
                        self.changed();
                    }
                    Ok(Said::Asked { .. }) => {}
                    Ok(Said::Answer(answer)) => break Problem::or_value(answer),
                    Err(Lost::Ended) if ends.is_some() => break Err(over()),
                    Err(lost) => break Err(lost.into()),
                },
                // One that has ended this moment needs none.
                Some(signal) = signals.recv() => drop(running.signal(signal)),
                () = self.hangs_up.notified() => {
                    ends = ends.or(Some(Instant::now() + GRACE));
                    drop(running.signal(HANG_UP));
                }
                () = tokio::time::sleep(patience) => {
                    if ends.take().is_some() {
                        running.cancel();
                    }
                }
            }
        };
        // What was shown before the answer is there. Somebody may still hold the other end; they are not waited for.
        reader.abort();
        drop(reader.await);
        let mut buffer = vec![0; AT_ONCE];
        while let count @ 1.. = self.screen.read_now(&mut buffer) {
            self.lock().shown.add(&buffer[..count]);
        }
        answer
    }

    async fn reads(self: Arc<Terminal>) {
        let mut buffer = vec![0; AT_ONCE];
        while let Ok(count @ 1..) = self.screen.read(&mut buffer).await {
            self.lock().shown.add(&buffer[..count]);
            self.changed();
        }
    }
}

fn over() -> Problem {
    Problem::new(StatusCode::CONFLICT, "conflict", "the terminal has ended")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_slow_misses_the_oldest_and_is_told_how_much() {
        let mut shown = Shown::default();
        shown.add(b"one\ntwo\n");
        assert_eq!((shown.beginning(), shown.after(0, 4)), (0, (Bytes::from_static(b"one\n"), 0)));
        assert_eq!(shown.after(4, 100), (Bytes::from_static(b"two\n"), 0));
        assert_eq!(shown.after(8, 100).0.len(), 0);
        shown.add(&vec![b'x'; KEPT - 3]);
        // Five bytes are gone; the first whole line begins after what is left of that one.
        assert_eq!((shown.first(), shown.beginning()), (5, 8));
        assert_eq!(shown.after(4, 3), (Bytes::from_static(b"wo\n"), 1));
        assert_eq!(shown.kept.len(), KEPT);
        shown.add(&vec![b'y'; 3 * KEPT]);
        assert_eq!((shown.kept.len(), shown.after(0, 1).1), (KEPT, shown.first()));
        // From a time that is yet to come there is nothing.
        assert_eq!(shown.after(u64::MAX, 1), (Bytes::new(), 0));
    }
}
