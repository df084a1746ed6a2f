//! Runs that go on or have ended a while ago: what each says is kept for those who come back for it, up to a limit.

use std::collections::{HashMap, VecDeque};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use service::{Answer, Job, Lost, Said, Streams, Task};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe;
use tokio::sync::{Notify, mpsc, watch};

use crate::App;
use crate::problem::{Problem, Result};
use crate::tokens;
use crate::warm::Refill;

/// Of what one run says, in bytes and in events: of more, the oldest are forgotten, and whoever misses them is told.
const MOST_KEPT: usize = 4 << 20;
const MOST_EVENTS: usize = 8_192;
/// Of runs that have ended, for each tenant; and for how long.
const MOST_ENDED: usize = 256;
const ENDED_FOR: Duration = Duration::from_secs(15 * 60);
/// Nobody listens to a run that somebody listened to: it goes on for so long, and is ended then.
pub const LINGER: Duration = Duration::from_secs(10);
/// How long whoever is sent something may take to take it.
const TAKES: Duration = Duration::from_secs(10);
/// What a pipe still has after the run's end is read for so long.
const DRAIN: Duration = Duration::from_millis(500);

#[derive(Default)]
pub struct Runs(Mutex<Known>);

#[derive(Default)]
struct Known {
    all: HashMap<String, Arc<Run>>,
    /// Of each tenant, in the order of their end: so whoever begins a run looks at none but those that are forgotten.
    ended: HashMap<String, VecDeque<(Instant, String)>>,
}

pub struct Run {
    pub id: String,
    tenant: String,
    began: u64,
    told: Mutex<Told>,
    /// Changes whenever there is something new.
    news: watch::Sender<u64>,
    cancel: Notify,
    /// It goes on though nobody listens.
    pub background: bool,
    /// Its input, as long as that is open.
    input: tokio::sync::Mutex<Option<pipe::Sender>>,
    /// Signals to be handed on.
    signals: mpsc::UnboundedSender<i32>,
    signalled: Mutex<Option<mpsc::UnboundedReceiver<i32>>>,
}

#[derive(Default)]
struct Told {
    events: VecDeque<Event>,
    bytes: usize,
    last: u64,
    notices: Vec<String>,
    /// As text: whoever asks is told it as it is.
    end: Option<std::result::Result<Box<RawValue>, Problem>>,
    listeners: usize,
    /// It was told to end before it did.
    cancelled: bool,
}

/// A run as it is at one moment.
#[derive(Serialize)]
pub struct Shown {
    id: String,
    status: &'static str,
    created: u64,
    cancelled: bool,
    notices: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<Problem>,
}

#[derive(Clone, Debug)]
pub struct Event {
    pub number: u64,
    pub kind: &'static str,
    pub data: Bytes,
}

impl Runs {
    pub fn begin(&self, tenant: &str) -> Result<Arc<Run>> {
        self.begin_as(tenant, false)
    }

    /// `background`: it is not ended because nobody listens.
    pub fn begin_as(&self, tenant: &str, background: bool) -> Result<Arc<Run>> {
        let id = new_id()?;
        let (signals, signalled) = mpsc::unbounded_channel();
        let run = Arc::new(Run {
            id: id.clone(),
            tenant: tenant.to_owned(),
            began: tokens::now(),
            told: Mutex::default(),
            news: watch::Sender::new(0),
            cancel: Notify::new(),
            background,
            input: tokio::sync::Mutex::default(),
            signals,
            signalled: Mutex::new(Some(signalled)),
        });
        self.lock().all.insert(id, run.clone());
        Ok(run)
    }

    /// It is remembered for a while what came of it.
    fn ended(&self, run: &Run, end: std::result::Result<Value, Problem>) {
        run.ended(end);
        let mut known = self.lock();
        known.ended.entry(run.tenant.clone()).or_default().push_back((Instant::now(), run.id.clone()));
        known.forget();
    }

    /// Another tenant's is not found, as if there were none.
    pub fn find(&self, tenant: &str, id: &str) -> Result<Arc<Run>> {
        let found = self.lock().all.get(id).cloned();
        found.filter(|run| run.tenant == tenant).ok_or_else(Problem::not_found)
    }

    /// Those that go on.
    pub fn going(&self) -> Vec<Arc<Run>> {
        self.lock().all.values().filter(|run| !run.is_over()).cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub fn new_id() -> Result<String> {
    tokens::random(16).map_err(|error| {
        Problem::new(axum::http::StatusCode::SERVICE_UNAVAILABLE, "no-random-bytes", error.to_string()).after(1)
    })
}

impl Known {
    fn forget(&mut self) {
        let Known { all, ended } = self;
        for theirs in ended.values_mut() {
            while theirs.front().is_some_and(|(at, _)| theirs.len() > MOST_ENDED || at.elapsed() >= ENDED_FOR) {
                theirs.pop_front().into_iter().for_each(|(_, id)| drop(all.remove(&id)));
            }
        }
        ended.retain(|_, theirs| !theirs.is_empty());
    }
}

impl Run {
    /// Ends it, as soon as it can be.
    pub fn cancel(&self) {
        self.cancel.notify_one();
    }

    /// More of its input; `end`: and then no more.
    pub async fn put_in(&self, bytes: &[u8], end: bool) -> Result<()> {
        let conflict = |detail: &str, hint: &str| {
            Err(Problem::new(axum::http::StatusCode::CONFLICT, "conflict", detail).hint(hint))
        };
        let mut input = self.input.lock().await;
        if self.is_over() {
            *input = None;
        }
        let Some(sender) = input.as_mut() else {
            return conflict("its input is not open", "begin it with `background` and `interactive`");
        };
        match tokio::time::timeout(TAKES, sender.write_all(bytes)).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) => {
                *input = None;
                return conflict("it reads nothing any more", "see whether it has ended");
            }
            Err(_) => {
                // How much of it was taken nobody knows.
                *input = None;
                return conflict("it does not read its input; that is ended now", "see what it waits for");
            }
        }
        if end {
            *input = None;
        }
        Ok(())
    }

    pub fn signal(&self, signal: i32) -> Result<()> {
        let over = || Problem::new(axum::http::StatusCode::CONFLICT, "conflict", "it has ended");
        if self.is_over() {
            return Err(over());
        }
        self.signals.send(signal).map_err(|_| over())
    }

    pub fn is_over(&self) -> bool {
        self.lock().end.is_some()
    }

    /// The run as it is now.
    pub fn shown(&self) -> Shown {
        let told = self.lock();
        let (status, result, problem) = match told.end.clone() {
            None => ("running", None, None),
            Some(Ok(result)) => ("done", Some(result), None),
            Some(Err(problem)) => ("failed", None, Some(problem)),
        };
        Shown {
            id: self.id.clone(),
            status,
            created: self.began,
            cancelled: told.cancelled,
            notices: told.notices.clone(),
            result,
            problem,
        }
    }

    /// Waits for its end.
    pub async fn end(&self) -> Result<Shown> {
        let mut news = self.news.subscribe();
        loop {
            let end = self.lock().end.as_ref().map(|end| end.as_ref().err().cloned());
            match end {
                Some(None) => return Ok(self.shown()),
                Some(Some(problem)) => return Err(problem),
                None => {}
            }
            if news.changed().await.is_err() {
                return Err(Lost::Ended.into());
            }
        }
    }

    /// What it says, from after this event on; ends after its last one.
    pub fn listen(self: Arc<Run>, after: u64) -> mpsc::Receiver<Event> {
        let (sends, receives) = mpsc::channel(64);
        self.lock().listeners += 1;
        tokio::spawn(async move {
            let mut after = after;
            let mut news = self.news.subscribe();
            'listening: loop {
                let (events, over) = self.since(after);
                for event in events {
                    after = event.number;
                    if sends.send(event).await.is_err() {
                        break 'listening;
                    }
                }
                if over && self.since(after).0.is_empty() {
                    break;
                }
                tokio::select! {
                    changed = news.changed() => if changed.is_err() { break },
                    () = sends.closed() => break,
                }
            }
            self.leave();
        });
        receives
    }

    /// Whoever leaves may come back; if nobody does, there is nobody to run it for.
    fn leave(self: Arc<Run>) {
        let listeners = {
            let mut told = self.lock();
            told.listeners = told.listeners.saturating_sub(1);
            told.listeners
        };
        if listeners == 0 && !self.is_over() && !self.background {
            tokio::spawn(async move {
                tokio::time::sleep(LINGER).await;
                if self.lock().listeners == 0 {
                    self.cancel();
                }
            });
        }
    }

    fn since(&self, after: u64) -> (Vec<Event>, bool) {
        let told = self.lock();
        let mut events: Vec<Event> = told.events.iter().filter(|event| event.number > after).cloned().collect();
        if let Some(first) = events.first()
            && first.number > after + 1
        {
            let lost = first.number - after - 1;
            let data = Bytes::from(json!({"events_forgotten": lost}).to_string());
            events.insert(0, Event { number: first.number - 1, kind: "gap", data });
        }
        (events, told.end.is_some())
    }

    fn says(&self, kind: &'static str, data: &Value) {
        self.says_as_text(kind, data.to_string());
    }

    fn says_as_text(&self, kind: &'static str, data: String) {
        let data = Bytes::from(data);
        {
            let mut told = self.lock();
            told.last += 1;
            told.bytes += data.len();
            let number = told.last;
            told.events.push_back(Event { number, kind, data });
            while told.events.len() > MOST_EVENTS || (told.bytes > MOST_KEPT && told.events.len() > 1) {
                let oldest = told.events.pop_front().map_or(0, |event| event.data.len());
                told.bytes -= oldest;
            }
        }
        self.news.send_modify(|count| *count += 1);
    }

    fn ended(&self, end: std::result::Result<Value, Problem>) {
        let end = end.and_then(|result| to_raw_value(&result).map_err(|error| Lost::Io(error.into()).into()));
        match &end {
            Ok(result) => self.says_as_text("result", result.get().to_owned()),
            Err(problem) => self.says("problem", &serde_json::to_value(problem).unwrap_or_default()),
        }
        self.lock().end = Some(end);
        self.news.send_modify(|count| *count += 1);
    }

    fn lock(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How a run's streams are connected.
pub struct Piped {
    pub stdin: Option<String>,
    /// More of it may come.
    pub open: bool,
    /// What it says goes to those who listen.
    pub streamed: bool,
}

/// Carries a job out to its end, whoever listens. Comes back at once. `held`: kept until then.
pub fn carry<T: Send + 'static>(app: &App, run: Arc<Run>, job: Job, piped: Piped, held: T) {
    let app = app.clone();
    tokio::spawn(async move {
        run.says("started", &json!({"id": run.id}));
        let (carried, refill) = carried(&app, &run, &job, piped).await;
        drop(held);
        let unanswered = carried.is_err();
        app.runs.ended(&run, carried.and_then(Problem::or_value));
        drop(refill);
        if unanswered {
            // Whoever was ended in the midst of it may have left its folder; what stays of it all the same is swept with the next.
            drop(app.pool.answer(&Job { task: Task::Sweep { layers: false }, ..job }).await);
        }
    });
}

async fn carried(app: &App, run: &Arc<Run>, job: &Job, piped: Piped) -> (Result<Answer>, Option<Refill>) {
    let connected = connect(run, piped).map_err(|error| Problem::from(Lost::Io(error)));
    let (streams, readers) = match connected {
        Ok(connected) => connected,
        Err(problem) => return (Err(problem), None),
    };
    let begun = tokio::select! {
        begun = app.warm.begin(&app.pool, job, streams) => begun,
        () = run.cancel.notified() => return (Err(cancelled()), None),
    };
    match begun {
        Ok((running, refill)) => (heard(run, running, readers).await, refill),
        Err(lost) => (Err(lost.into()), None),
    }
}

async fn heard(run: &Arc<Run>, mut running: service::Running, readers: Readers) -> Result<Answer> {
    let mut told_to_end = false;
    let taken = run.signalled.lock().unwrap_or_else(PoisonError::into_inner).take();
    let Some(mut signals) = taken else { return Err(Lost::Ended.into()) };
    let answer = loop {
        tokio::select! {
            heard = running.next() => match heard {
                Ok(Said::Notice(text) | Said::Asks { how: text, .. }) => {
                    run.says("notice", &json!({"text": text}));
                    run.lock().notices.push(text);
                }
                Ok(Said::Asked { .. } | Said::Ready(_)) => {}
                Ok(Said::Answer(answer)) => break Ok(answer),
                // Whoever is told to end before a sandbox stands has nothing to say.
                Err(Lost::Ended) if told_to_end => break Err(cancelled()),
                Err(lost) => break Err(lost.into()),
            },
            Some(signal) = signals.recv() => {
                // One that has ended this moment needs none.
                drop(running.signal(signal));
            }
            // Told to end; then its last words are waited for.
            () = run.cancel.notified() => {
                told_to_end = true;
                run.lock().cancelled = true;
                running.cancel();
            }
        }
    };
    for reader in readers {
        // A pipe whose other end somebody holds has no end; what was said is said.
        drop(tokio::time::timeout(DRAIN, reader).await);
    }
    answer
}

fn cancelled() -> Problem {
    Problem::new(axum::http::StatusCode::CONFLICT, "cancelled", "it was ended before it ran")
}

type Readers = Vec<tokio::task::JoinHandle<()>>;

fn connect(run: &Arc<Run>, piped: Piped) -> std::io::Result<(Streams, Readers)> {
    use rustix::pipe::{PipeFlags, pipe_with};
    let nothing = || -> std::io::Result<OwnedFd> {
        use rustix::fs::{Mode, OFlags, open};
        Ok(open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?)
    };
    let input = match piped.stdin {
        None if !piped.open => nothing()?,
        None => {
            let (input, ours) = pipe_with(PipeFlags::CLOEXEC)?;
            let sender = pipe::Sender::from_owned_fd(ours)?;
            // Nobody else knows of the run yet.
            if let Ok(mut place) = run.input.try_lock() {
                *place = Some(sender);
            }
            input
        }
        Some(text) => {
            let (input, ours) = pipe_with(PipeFlags::CLOEXEC)?;
            let mut sender = pipe::Sender::from_owned_fd(ours)?;
            tokio::spawn(async move {
                // A command need not read all that it is given.
                drop(sender.write_all(text.as_bytes()).await);
            });
            input
        }
    };
    if !piped.streamed {
        return Ok((Streams { input, output: nothing()?, error: nothing()? }, Vec::new()));
    }
    let mut readers = Vec::new();
    let mut stream = |kind: &'static str| -> std::io::Result<OwnedFd> {
        let (ours, theirs) = pipe_with(PipeFlags::CLOEXEC)?;
        let receiver = pipe::Receiver::from_owned_fd(ours)?;
        readers.push(tokio::spawn(read(run.clone(), kind, receiver)));
        Ok(theirs)
    };
    let (output, error) = (stream("stdout")?, stream("stderr")?);
    Ok((Streams { input, output, error }, readers))
}

async fn read(run: Arc<Run>, kind: &'static str, mut from: pipe::Receiver) {
    let mut held = Vec::new();
    let mut buffer = vec![0; 16 << 10];
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        held.extend_from_slice(&buffer[..count]);
        let whole = whole_letters(&held);
        if whole > 0 {
            run.says(kind, &as_text(&held[..whole]));
            held.drain(..whole);
        }
    }
    if !held.is_empty() {
        run.says(kind, &as_text(&held));
    }
}

/// All but the beginning of a letter whose rest is still to come.
fn whole_letters(bytes: &[u8]) -> usize {
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        _ => bytes.len(),
    }
}

fn as_text(bytes: &[u8]) -> Value {
    match std::str::from_utf8(bytes) {
        Ok(text) => json!({"text": text}),
        Err(_) => json!({"base64": STANDARD.encode(bytes)}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_letter_is_never_cut_in_two() {
        let bytes = "aé".as_bytes();
        assert_eq!(whole_letters(&bytes[..2]), 1);
        assert_eq!(whole_letters(bytes), 3);
        assert_eq!(whole_letters(&[0xff, b'a']), 2);
        assert_eq!(as_text(&[0xff])["base64"], "/w==");
    }

    #[test]
    fn what_was_forgotten_is_said_and_the_rest_comes_in_order() {
        let runs = Runs::default();
        let run = runs.begin("t").expect("a run");
        for number in 0..MOST_EVENTS + 10 {
            run.says("stdout", &json!({"text": number.to_string()}));
        }
        let (events, over) = run.since(0);
        assert!(!over && events[0].kind == "gap" && events.len() == MOST_EVENTS + 1);
        assert!(events.windows(2).all(|two| two[0].number < two[1].number));
        assert_eq!(run.since(events[5].number).0.len(), MOST_EVENTS - 5);
    }

    #[test]
    fn another_tenants_run_is_not_found_like_one_that_is_not_there() {
        let runs = Runs::default();
        let run = runs.begin("one").expect("a run");
        assert_eq!(runs.find("two", &run.id).err(), runs.find("two", "nothing").err());
        assert!(runs.find("one", &run.id).is_ok());
    }

    #[test]
    fn only_so_many_that_have_ended_are_remembered() {
        let runs = Runs::default();
        let goes_on = runs.begin("t").expect("a run");
        let anothers = runs.begin("u").expect("a run");
        runs.ended(&anothers, Ok(Value::Null));
        let ended: Vec<Arc<Run>> = (0..MOST_ENDED + 20).map(|_| runs.begin("t").expect("a run")).collect();
        ended.iter().for_each(|run| runs.ended(run, Ok(Value::Null)));
        assert_eq!(runs.lock().all.len(), MOST_ENDED + 2);
        assert!(runs.find("t", &goes_on.id).is_ok() && runs.find("u", &anothers.id).is_ok());
        assert!(runs.find("t", &ended[19].id).is_err() && runs.find("t", &ended[20].id).is_ok());
    }
}
