//! Runs that are much like those before them find a sandbox that stands already, with a warm interpreter in it.
//!
//! What is kept ready is for one tenant and one wish, and for one run: nothing of a run is there for the next. Whether it is let in
//! is decided by whoever carries it out; here it is only fetched from the shelf.

use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use service::{Interpreter, Job, Lost, Pool, Running, Setting, Standby, Streams, Task, Wish};
use tokio::sync::oneshot;

use crate::runs;

/// Kinds of runs that something is kept ready for; of more, those that were asked for longest ago get nothing.
const MOST_KINDS: usize = 16;
/// A kind that nobody asks for is given up after this.
const FORGOTTEN: Duration = Duration::from_secs(120);
/// How long is waited before each try to make one: on a host that is very busy the first may take too long.
const TRIES: [Duration; 3] = [Duration::ZERO, Duration::from_secs(2), Duration::from_secs(8)];
/// Who finds none ready waits for one at most so long: to make it takes less time than to start without, but not on a host that is stuck.
const WAITED: Duration = Duration::from_secs(5);
/// Modules that take long to load: code that names one gets an interpreter that has them.
const HEAVY: [&str; 3] = ["numpy", "pandas", "matplotlib"];
const PLAIN: &str = "python";
const LOADED: &str = "python with numpy, pandas and matplotlib";

/// The interpreters to keep warm, if the host has one.
pub fn interpreters() -> Vec<Interpreter> {
    let Some(program) = python() else { return Vec::new() };
    let heavy = HEAVY.iter().map(|name| (*name).to_owned()).collect();
    vec![Interpreter::new(PLAIN, program.clone(), Vec::new()), Interpreter::new(LOADED, program, heavy)]
}

/// The one that `python3` leads to, if that is a program and not a script that looks for one.
fn python() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let found = std::env::split_paths(&path).map(|folder| folder.join("python3")).find(|path| path.is_file())?;
    let program = std::fs::canonicalize(found).ok()?;
    let mut first = [0; 4];
    std::io::Read::read_exact(&mut std::fs::File::open(&program).ok()?, &mut first).ok()?;
    (first == *b"\x7fELF").then_some(program)
}

/// What must be the same for one to stand in for another.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Kind {
    setting: String,
    wish: String,
    interpreter: &'static str,
}

struct Shelf {
    ready: Vec<Standby>,
    /// That are being made.
    coming: usize,
    /// Who gets those first.
    waiting: VecDeque<oneshot::Sender<Standby>>,
    /// The last try to make one came to nothing: nobody waits for the next.
    troubled: bool,
    asked: Instant,
    /// It could not be made; there is no use in trying again for a while.
    failed: Option<Instant>,
}

/// What was taken from the shelf is made anew when this is dropped: after the answer, so that it takes no time from it.
pub struct Refill {
    kind: Kind,
    pool: Pool,
    job: Job,
    warm: Arc<Warm>,
}

impl Shelf {
    fn new() -> Shelf {
        Shelf {
            ready: Vec::new(),
            coming: 0,
            waiting: VecDeque::new(),
            troubled: false,
            asked: Instant::now(),
            failed: None,
        }
    }

    fn cannot(&self) -> bool {
        self.failed.is_some_and(|at| at.elapsed() < FORGOTTEN)
    }

    /// How many more are to be made, so that whoever waits gets one and `each` are left; these count as coming.
    fn order(&mut self, each: usize) -> usize {
        self.waiting.retain(|waits| !waits.is_closed());
        let missing = (each + self.waiting.len()).saturating_sub(self.ready.len() + self.coming);
        self.coming += missing;
        missing
    }

    /// One that was made, for whoever waits longest, or for who comes next.
    fn put(&mut self, mut standby: Standby) {
        self.troubled = false;
        while let Some(waits) = self.waiting.pop_front() {
            match waits.send(standby) {
                Ok(()) => return,
                Err(back) => standby = back,
            }
        }
        self.ready.push(standby);
    }
}

impl Drop for Refill {
    fn drop(&mut self) {
        self.warm.fill(&self.kind, &self.pool, &self.job);
    }
}

pub struct Warm {
    /// Of each kind.
    each: usize,
    shelves: Mutex<HashMap<Kind, Shelf>>,
    /// Runs that found one ready, that waited for one, and that were started without.
    pub taken: AtomicU64,
    pub awaited: AtomicU64,
    pub missed: AtomicU64,
}

impl Warm {
    pub fn new(each: usize) -> Warm {
        let [taken, awaited, missed] = [0; 3].map(AtomicU64::new);
        Warm { each, shelves: Mutex::default(), taken, awaited, missed }
    }

    /// Hands a job over: to whoever stands ready for it, or as ever.
    pub async fn begin(
        self: &Arc<Self>,
        pool: &Pool,
        job: &Job,
        streams: Streams,
    ) -> Result<(Running, Option<Refill>), Lost> {
        let Some((kind, ready)) = self.kind(job) else { return Ok((pool.begin(job, Some(streams)).await?, None)) };
        let (standby, counted) = match self.take(&kind) {
            Some(standby) => (Some(standby), &self.taken),
            None => match self.wait_for_one(&kind, pool, &ready).await {
                Some(standby) => (Some(standby), &self.awaited),
                None => (None, &self.missed),
            },
        };
        counted.fetch_add(1, Ordering::Relaxed);
        let begun = match standby {
            Some(standby) => standby.begin(job, streams).await,
            None => pool.begin(job, Some(streams)).await,
        };
        Ok((begun?, Some(Refill { kind, pool: pool.clone(), job: ready, warm: self.clone() })))
    }

    /// Which it is, and the job that makes something ready for it.
    fn kind(&self, job: &Job) -> Option<(Kind, Job)> {
        let Task::Run { wish, files, .. } = &job.task else { return None };
        let code = match files.get("main.py") {
            Some(service::Contents::Text(code)) if self.each > 0 => code,
            _ => return None,
        };
        let plain = wish.command == ["python3", "main.py"] && wish.workspace.is_none();
        if !plain || wish.backend.as_deref().is_some_and(|backend| backend != "native") || wish.image.is_some() {
            return None;
        }
        // What stands ready is judged when somebody comes, under the policy of that moment.
        let wish = &wish.alike();
        let heavy = HEAVY.iter().any(|name| code.contains(name));
        let interpreter = if heavy { LOADED } else { PLAIN };
        let Job { setting, .. } = job;
        let kind = Kind {
            setting: serde_json::to_string(setting).ok()?,
            wish: serde_json::to_string(wish).ok()?,
            interpreter,
        };
        Some((kind, making(setting.clone(), wish.clone(), interpreter)))
    }

    fn take(&self, kind: &Kind) -> Option<Standby> {
        let mut shelves = self.lock();
        let shelf = shelves.get_mut(kind)?;
        shelf.asked = Instant::now();
        while let Some(standby) = shelf.ready.pop() {
            if standby.waits() {
                return Some(standby);
            }
        }
        None
    }

    /// The next that is made. Nothing: it can't be had, or not soon enough. Where none was ever made it is not waited for: it is not
    /// known yet whether one can be.
    async fn wait_for_one(self: &Arc<Self>, kind: &Kind, pool: &Pool, job: &Job) -> Option<Standby> {
        let (comes, missing) = {
            let mut shelves = self.lock();
            let shelf = shelves.get_mut(kind).filter(|shelf| !shelf.cannot() && !shelf.troubled)?;
            let (waits, comes) = oneshot::channel();
            shelf.waiting.push_back(waits);
            // What is to be left on the shelf can wait until somebody is answered.
            (comes, shelf.order(0))
        };
        self.make(missing, kind, pool, job);
        tokio::time::timeout(WAITED, comes).await.ok()?.ok()
    }

    /// Makes as many ready as are missing. Comes back at once.
    fn fill(self: &Arc<Self>, kind: &Kind, pool: &Pool, job: &Job) {
        let missing = {
            let mut shelves = self.lock();
            shelves.retain(|_, shelf| shelf.asked.elapsed() < FORGOTTEN);
            if !shelves.contains_key(kind) && shelves.len() >= MOST_KINDS {
                let oldest = shelves.iter().min_by_key(|(_, shelf)| shelf.asked).map(|(kind, _)| kind.clone());
                oldest.map(|oldest| shelves.remove(&oldest));
            }
            let shelf = shelves.entry(kind.clone()).or_insert_with(Shelf::new);
            if shelf.cannot() { 0 } else { shelf.order(self.each) }
        };
        self.make(missing, kind, pool, job);
    }

    fn make(self: &Arc<Self>, count: usize, kind: &Kind, pool: &Pool, job: &Job) {
        for _ in 0..count {
            let (warm, kind, pool, mut job) = (self.clone(), kind.clone(), pool.clone(), job.clone());
            tokio::spawn(async move {
                let mut made = None;
                for pause in TRIES {
                    tokio::time::sleep(pause).await;
                    if let (Task::MakeReady { folder, .. }, Ok(new)) = (&mut job.task, runs::new_id()) {
                        *folder = new;
                        made = pool.make_ready(&job).await.ok().and_then(Result::ok);
                    }
                    if made.is_some() {
                        break;
                    }
                    // It is tried again, and nobody waits for that.
                    if let Some(shelf) = warm.lock().get_mut(&kind) {
                        shelf.troubled = true;
                        shelf.waiting.clear();
                    }
                }
                let mut shelves = warm.lock();
                let Some(shelf) = shelves.get_mut(&kind) else { return };
                shelf.coming = shelf.coming.saturating_sub(1);
                match made {
                    Some(standby) => shelf.put(standby),
                    None => shelf.failed = Some(Instant::now()),
                }
            });
        }
    }

    /// How many stand ready.
    pub fn ready(&self) -> usize {
        self.lock().values().map(|shelf| shelf.ready.len()).sum()
    }

    /// What waits is let go: nobody will come any more.
    pub fn end(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Kind, Shelf>> {
        self.shelves.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn making(setting: Setting, wish: Wish, interpreter: &str) -> Job {
    let (folder, interpreter) = (String::new(), interpreter.to_owned());
    Job { setting, task: Task::MakeReady { wish, folder, interpreter } }
}
