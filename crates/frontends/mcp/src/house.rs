//! What all callers share: who carries jobs out, calls that go on, and what runs said.

use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use service::{Job, Pool, Said, Streams, Task, Wish};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe;
use tokio::sync::OnceCell;

use crate::caller::{Admission, Caller};
use crate::calls::{Call, Calls};
use crate::said::{Failure, or_value};
use crate::state::Seal;

/// Of what one run said, in bytes; and of how many runs of one tenant.
const LONGEST_LOG: usize = 256 << 10;
const MOST_LOGS: usize = 64;
/// What a pipe still has after the run's end is read for so long.
const DRAIN: std::time::Duration = std::time::Duration::from_millis(500);
/// Of the contents of an artifact, in bytes.
pub const LARGEST_ARTIFACT: u64 = 8 << 20;

pub struct House {
    pub version: &'static str,
    pub pool: Pool,
    pub admission: Arc<dyn Admission>,
    pub seal: Seal,
    pub calls: Calls,
    /// Where a sandbox is made for callers who name none; nothing: they must name one.
    pub home: Option<Home>,
    logs: Mutex<HashMap<String, VecDeque<Log>>>,
    /// By tenant and sandbox.
    turns: Mutex<HashMap<(String, String), Turn>>,
}

/// Whoever holds it uses the sandbox.
type Turn = Arc<tokio::sync::Mutex<()>>;

/// A folder, and the sandbox over it, which is made when somebody needs it first.
pub struct Home {
    pub folder: PathBuf,
    pub sandbox: OnceCell<String>,
}

/// What a run said.
#[derive(Clone, Debug)]
pub struct Log {
    pub run: String,
    pub text: String,
    /// Bytes that were too many.
    pub left_out: u64,
}

impl House {
    pub fn new(
        version: &'static str,
        pool: Pool,
        admission: Arc<dyn Admission>,
        home: Option<Home>,
    ) -> Result<Arc<House>, String> {
        Ok(Arc::new(House {
            version,
            pool,
            admission,
            seal: Seal::new()?,
            calls: Calls::default(),
            home,
            logs: Mutex::default(),
            turns: Mutex::default(),
        }))
    }

    fn keep(&self, tenant: &str, log: Log) {
        let mut logs = self.logs.lock().unwrap_or_else(PoisonError::into_inner);
        let own = logs.entry(tenant.to_owned()).or_default();
        own.push_back(log);
        while own.len() > MOST_LOGS {
            own.pop_front();
        }
    }

    /// Those of this tenant, the newest first.
    pub fn logs(&self, tenant: &str) -> Vec<Log> {
        let logs = self.logs.lock().unwrap_or_else(PoisonError::into_inner);
        logs.get(tenant).into_iter().flatten().rev().cloned().collect()
    }

    /// One after the other in one sandbox: clients call several tools at once, and a sandbox is used by one.
    fn turn(&self, tenant: &str, sandbox: &str) -> Turn {
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        turns.retain(|_, turn| Arc::strong_count(turn) > 1);
        turns.entry((tenant.to_owned(), sandbox.to_owned())).or_default().clone()
    }
}

/// Does what one call needs, job by job, and tells the call of it.
#[derive(Clone)]
pub struct Worker {
    pub house: Arc<House>,
    pub caller: Caller,
    pub call: Arc<Call>,
}

impl Worker {
    /// Which sandbox is meant: the one that was named, or else the one over the folder that we were started in.
    pub async fn sandbox(&self, named: Option<String>) -> Result<String, Failure> {
        match self.sandbox_or_none(named).await? {
            Some(sandbox) => Ok(sandbox),
            None => Err(Failure::wrong("`sandbox` is missing: here is no folder that one would be made over")
                .rule("mcp.sandbox")
                .fix("name one by its id: `run_command` without `sandbox` says which one keeps what it changed")),
        }
    }

    pub async fn sandbox_or_none(&self, named: Option<String>) -> Result<Option<String>, Failure> {
        if let Some(named) = named {
            return match is_name(&named) {
                true => Ok(Some(named)),
                false => Err(Failure::not_found("sandbox")),
            };
        }
        let Some(home) = &self.house.home else { return Ok(None) };
        let made = home.sandbox.get_or_try_init(|| async {
            let wish = Wish { workspace: Some(home.folder.clone()), ..Wish::default() };
            let task = Task::Create { wish, folder: new_id()?, files: Default::default(), name: None };
            let made = self.ask(task, "sandbox").await?;
            let id = made["id"].as_str().ok_or_else(|| Failure::new("trouble", "a sandbox was made that has no id"))?;
            self.call.says(format!("made the sandbox {id} over {}", home.folder.display()));
            Ok(id.to_owned())
        });
        made.await.map(|id| Some(id.clone()))
    }

    /// A job whose answer is all there is.
    pub async fn ask(&self, task: Task, what: &str) -> Result<serde_json::Value, Failure> {
        let sandbox = sandbox_of(&task);
        self.carry(task, None, None, sandbox, what).await
    }

    /// A run: with input, and with what it says kept as its log.
    pub async fn run(&self, task: Task, stdin: Option<Vec<u8>>) -> Result<serde_json::Value, Failure> {
        let (sink, streams) = connect(&self.call, stdin).map_err(|error| Failure::from(service::Lost::Io(error)))?;
        let sandbox = sandbox_of(&task);
        let result = self.carry(task, Some(streams), Some(sink), sandbox, "sandbox").await?;
        Ok(result)
    }

    /// A job that reads what it is given, and writes what it has to its output.
    pub async fn contents(
        &self,
        task: Task,
        input: Option<Vec<u8>>,
        what: &str,
    ) -> Result<(serde_json::Value, Vec<u8>), Failure> {
        let lost = |error: std::io::Error| Failure::from(service::Lost::Io(error));
        let (ours, output) =
            rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).map_err(|error| lost(error.into()))?;
        let receiver = pipe::Receiver::from_owned_fd(ours).map_err(lost)?;
        let streams = Streams { input: given(input).map_err(lost)?, output, error: nothing().map_err(lost)? };
        let reading = tokio::spawn(async move {
            let mut read = Vec::new();
            receiver.take(LARGEST_ARTIFACT + 1).read_to_end(&mut read).await.map(|_| read)
        });
        let sandbox = sandbox_of(&task);
        let value = self.carry(task, Some(streams), None, sandbox, what).await?;
        let bytes = reading.await.map_err(|_| Failure::from(service::Lost::Ended))?.map_err(lost)?;
        Ok((value, bytes))
    }

    async fn carry(
        &self,
        task: Task,
        streams: Option<Streams>,
        sink: Option<Sink>,
        sandbox: Option<String>,
        what: &str,
    ) -> Result<serde_json::Value, Failure> {
        let cancelled = || Failure::new("cancelled", "it was ended before it was done");
        let turn = match &sandbox {
            None => None,
            Some(sandbox) => {
                let lock = self.house.turn(&self.caller.tenant, sandbox);
                tokio::select! {
                    turn = lock.lock_owned() => Some(turn),
                    () = self.call.cancel.cancelled() => return Err(cancelled()),
                }
            }
        };
        let mut turn = turn;
        let place = tokio::select! {
            place = self.house.admission.enter(&self.caller) => place?,
            () = self.call.cancel.cancelled() => return Err(cancelled()),
        };
        let job = Job { setting: self.caller.setting.clone(), task };
        let mut running = tokio::select! {
            begun = self.house.pool.begin(&job, streams) => begun?,
            () = self.call.cancel.cancelled() => return Err(cancelled()),
        };
        let mut told_to_end = false;
        let answer = loop {
            tokio::select! {
                heard = running.next() => match heard {
                    Ok(Said::Notice(text)) => self.call.says(text),
                    Ok(Said::Asks { question, how }) => {
                        // Until somebody answers, others may use the sandbox.
                        turn = None;
                        self.call.asks(question, how);
                    }
                    Ok(Said::Asked { .. } | Said::Ready(_)) => self.call.goes_on(),
                    Ok(Said::Answer(answer)) => break answer,
                    Err(service::Lost::Ended) if told_to_end => return Err(cancelled()),
                    Err(lost) => return Err(lost.into()),
                },
                () = self.call.cancel.cancelled(), if !told_to_end => {
                    told_to_end = true;
                    running.cancel();
                }
            }
        };
        drop(place);
        drop(turn);
        let log = match sink {
            Some(sink) => Some(sink.end().await),
            None => None,
        };
        let mut value = or_value(answer, what)?;
        if let Some((text, left_out)) = log
            && let Some(run) = value["run"].as_str()
        {
            let run = run.to_owned();
            self.house.keep(&self.caller.tenant, Log { run, text, left_out });
        }
        if told_to_end {
            value["cancelled"] = true.into();
        }
        Ok(value)
    }
}

/// The one that must be free for it.
fn sandbox_of(task: &Task) -> Option<String> {
    match task {
        Task::RunIn { id, .. }
        | Task::Cell { id, .. }
        | Task::Files { id, .. }
        | Task::Apply { id, .. }
        | Task::RollBack { id, .. }
        | Task::Snapshot { id, .. } => Some(id.clone()),
        _ => None,
    }
}

/// As ids and names of sandboxes are: what can't be one need not be looked for.
pub fn is_name(text: &str) -> bool {
    (1..=128).contains(&text.len()) && !text.chars().any(|letter| letter.is_control() || letter == '/')
}

/// 128 random bits.
pub fn new_id() -> Result<String, Failure> {
    let mut random = [0_u8; 16];
    let mut filled = 0;
    while filled < random.len() {
        let more = rustix::rand::getrandom(&mut random[filled..], rustix::rand::GetRandomFlags::empty());
        filled += more.map_err(|error| Failure::new("trouble", format!("the kernel has no random bytes: {error}")))?;
    }
    Ok(random.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn nothing() -> std::io::Result<std::os::fd::OwnedFd> {
    use rustix::fs::{Mode, OFlags, open};
    Ok(open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?)
}

/// What reads a run's output while it comes.
struct Sink {
    readers: Vec<tokio::task::JoinHandle<()>>,
    heard: Arc<Mutex<(Vec<u8>, u64)>>,
}

impl Sink {
    async fn end(self) -> (String, u64) {
        for reader in self.readers {
            // A pipe whose other end somebody holds has no end; what was said is said.
            drop(tokio::time::timeout(DRAIN, reader).await);
        }
        let (bytes, left_out) = std::mem::take(&mut *self.heard.lock().unwrap_or_else(PoisonError::into_inner));
        (String::from_utf8_lossy(&bytes).into_owned(), left_out)
    }
}

/// Where a job reads this, or nothing.
fn given(bytes: Option<Vec<u8>>) -> std::io::Result<std::os::fd::OwnedFd> {
    let Some(bytes) = bytes else { return nothing() };
    let (input, ours) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    let mut sender = pipe::Sender::from_owned_fd(ours)?;
    tokio::spawn(async move {
        // A command need not read all that it is given.
        drop(sender.write_all(&bytes).await);
    });
    Ok(input)
}

fn connect(call: &Arc<Call>, stdin: Option<Vec<u8>>) -> std::io::Result<(Sink, Streams)> {
    use rustix::pipe::{PipeFlags, pipe_with};
    let input = given(stdin)?;
    let mut sink = Sink { readers: Vec::new(), heard: Arc::default() };
    let mut stream = || -> std::io::Result<std::os::fd::OwnedFd> {
        let (ours, theirs) = pipe_with(PipeFlags::CLOEXEC)?;
        let receiver = pipe::Receiver::from_owned_fd(ours)?;
        sink.readers.push(tokio::spawn(read(call.clone(), sink.heard.clone(), receiver)));
        Ok(theirs)
    };
    let (output, error) = (stream()?, stream()?);
    Ok((sink, Streams { input, output, error }))
}

async fn read(call: Arc<Call>, heard: Arc<Mutex<(Vec<u8>, u64)>>, mut from: pipe::Receiver) {
    let mut buffer = vec![0; 16 << 10];
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        let new = &buffer[..count];
        {
            let mut heard = heard.lock().unwrap_or_else(PoisonError::into_inner);
            let room = LONGEST_LOG.saturating_sub(heard.0.len()).min(count);
            heard.0.extend_from_slice(&new[..room]);
            heard.1 += (count - room) as u64;
        }
        if let Some(line) = last_line(new) {
            call.says(line);
        }
    }
}

/// For whoever follows: the newest line, as far as one looks at a glance.
fn last_line(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes);
    let line = text.lines().rev().find(|line| !line.trim().is_empty())?;
    Some(line.chars().filter(|letter| !letter.is_control()).take(200).collect())
}
