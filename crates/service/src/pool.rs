//! Hands jobs to carriers from a process with threads, and listens to what they say.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use sys::{descriptors, process};
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
use tokio::net::UnixStream;

use crate::carrier::HANDED_OVER;
use crate::job::{Answer, Job, LARGEST_ANSWER, LARGEST_JOB, LENGTH, Said, framed};
use crate::launcher::Launched;
use crate::ready::COMES;

/// After being told to end, a carrier has so long to end its sandbox and to write that down.
const GRACE: Duration = Duration::from_secs(10);

/// Why there is no answer to a job.
#[derive(Debug, thiserror::Error)]
pub enum Lost {
    #[error("the job has {0} MiB, and {most} are the most", most = LARGEST_JOB >> 20)]
    TooLarge(usize),
    #[error("whoever carried the job out ended before it did")]
    Ended,
    #[error("cannot hand the job over: {0}")]
    Io(#[from] io::Error),
}

#[derive(Clone)]
pub struct Pool(Arc<Inner>);

struct Inner {
    jobs: AsyncFd<OwnedFd>,
    launcher: AsyncFd<OwnedFd>,
    /// Closed with the last of us: then the launcher ends.
    _lifeline: OwnedFd,
}

/// What the payload gets.
pub struct Streams {
    pub input: OwnedFd,
    pub output: OwnedFd,
    pub error: OwnedFd,
}

impl Pool {
    /// Within a runtime.
    pub fn new(launched: Launched) -> io::Result<Pool> {
        let Launched { jobs, lifeline, launcher } = launched;
        rustix::io::ioctl_fionbio(&jobs, true)?;
        let jobs = watched(jobs, Interest::WRITABLE)?;
        let launcher = watched(launcher, Interest::READABLE)?;
        Ok(Pool(Arc::new(Inner { jobs, launcher, _lifeline: lifeline })))
    }

    /// Comes back when the launcher has ended: then nothing can be carried out any more.
    pub async fn ended(&self) -> io::Result<()> {
        self.0.launcher.readable().await.map(drop)
    }

    /// Hands a job over. Whoever drops what comes back before its answer has told the carrier to end.
    pub async fn begin(&self, job: &Job, streams: Option<Streams>) -> Result<Running, Lost> {
        let bytes = serde_json::to_vec(job).map_err(io::Error::other)?;
        if bytes.len() > LARGEST_JOB {
            return Err(Lost::TooLarge(bytes.len() >> 20));
        }
        let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let mut handed = vec![theirs.as_fd()];
        if let Some(Streams { input, output, error }) = &streams {
            handed.extend([input.as_fd(), output.as_fd(), error.as_fd()]);
        }
        self.0.jobs.async_io(Interest::WRITABLE, |jobs| descriptors::send(jobs.as_fd(), HANDED_OVER, &handed)).await?;
        drop(handed);
        drop((theirs, streams));
        let mut talk = UnixStream::from_std(ours)?;
        let own = talk
            .async_io(Interest::READABLE, || {
                let (count, mut own) = descriptors::receive(talk.as_fd(), &mut [0; 1])?;
                match (count, own.pop()) {
                    (1, Some(own)) => Ok(own),
                    _ => Err(io::ErrorKind::UnexpectedEof.into()),
                }
            })
            .await;
        let own = match own {
            Ok(own) => own,
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Err(Lost::Ended),
            Err(error) => return Err(error.into()),
        };
        let carrier = Arc::new(watched(own, Interest::READABLE)?);
        // From here on: whoever drops this ends it.
        let mut running = Running { talk: None, read: Vec::new(), carrier, over: false };
        talk.write_all(&framed(&bytes)?).await?;
        running.talk = Some(talk);
        Ok(running)
    }

    /// Has something made ready. Whoever drops what comes back has no need of it any more.
    pub async fn make_ready(&self, job: &Job) -> Result<Result<Standby, Answer>, Lost> {
        let mut running = self.begin(job, None).await?;
        loop {
            match running.next().await? {
                Said::Ready(_) => return Ok(Ok(Standby(running))),
                Said::Answer(answer) => return Ok(Err(answer)),
                Said::Notice(_) | Said::Asks { .. } | Said::Asked { .. } => {}
            }
        }
    }

    /// For jobs that say nothing but their answer.
    pub async fn answer(&self, job: &Job) -> Result<Answer, Lost> {
        let mut running = self.begin(job, None).await?;
        loop {
            if let Said::Answer(answer) = running.next().await? {
                return Ok(answer);
            }
        }
    }
}

/// A carrier whose sandbox stands, and that waits for its job.
pub struct Standby(Running);

impl Standby {
    /// Whether it still waits: one that has ended is no use.
    pub fn waits(&self) -> bool {
        !descriptors::is_readable(self.0.carrier.get_ref().as_fd())
    }

    pub async fn begin(mut self, job: &Job, streams: Streams) -> Result<Running, Lost> {
        let bytes = serde_json::to_vec(job).map_err(io::Error::other)?;
        if bytes.len() > LARGEST_JOB {
            return Err(Lost::TooLarge(bytes.len() >> 20));
        }
        let Some(talk) = &mut self.0.talk else { return Err(Lost::Ended) };
        let Streams { input, output, error } = &streams;
        let three = [input.as_fd(), output.as_fd(), error.as_fd()];
        talk.async_io(Interest::WRITABLE, || descriptors::send(talk.as_fd(), COMES, &three)).await?;
        drop(streams);
        talk.write_all(&framed(&bytes)?).await?;
        Ok(self.0)
    }
}

/// A job that is being carried out.
pub struct Running {
    talk: Option<UnixStream>,
    read: Vec<u8>,
    carrier: Arc<AsyncFd<OwnedFd>>,
    /// The answer came.
    over: bool,
}

impl Running {
    /// What it says next; after an answer there is nothing more.
    pub async fn next(&mut self) -> Result<Said, Lost> {
        let Some(talk) = &mut self.talk else { return Err(Lost::Ended) };
        let mut reading = pin!(frame(talk, &mut self.read));
        let said = tokio::select! {
            biased;
            said = &mut reading => said?,
            // Somebody else may still hold the other end; whoever could speak is gone.
            ended = self.carrier.readable() => {
                drop(ended?);
                match tokio::time::timeout(Duration::from_millis(200), reading).await {
                    Ok(said) => said?,
                    Err(_) => return Err(Lost::Ended),
                }
            }
        };
        self.over = matches!(said, Said::Answer(_));
        Ok(said)
    }

    /// Hands a signal on to what is run. Whoever runs nothing yet may end by it.
    pub fn signal(&self, signal: i32) -> io::Result<()> {
        process::signal(self.carrier.get_ref().as_fd(), signal)
    }

    /// Tells the carrier to end; its answer still comes.
    pub fn cancel(&self) {
        end(self.carrier.clone());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.over {
            end(self.carrier.clone());
        }
    }
}

/// A descriptor that is told when it is ready.
#[expect(
    deprecated,
    reason = "what it warns of is a type that changes its descriptor under way; an `OwnedFd` never does"
)]
pub(crate) fn watched(descriptor: OwnedFd, interest: Interest) -> io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::with_interest(descriptor, interest)
}

/// By SIGTERM, which a run takes as the wish to end it; and if that is not heard, by SIGKILL, with which its sandbox ends too.
fn end(carrier: Arc<AsyncFd<OwnedFd>>) {
    // One that has ended already can't be signalled, and need not be.
    drop(process::signal(carrier.get_ref().as_fd(), rustix::process::Signal::TERM.as_raw()));
    let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
    runtime.spawn(async move {
        if tokio::time::timeout(GRACE, carrier.readable()).await.is_err() {
            drop(process::signal(carrier.get_ref().as_fd(), rustix::process::Signal::KILL.as_raw()));
        }
    });
}

/// Most answers are shorter.
const USUAL_ANSWER: usize = 8 << 10;

/// The next frame. What was read of one stays in `read`, so whoever waits for it may stop waiting and come back.
async fn frame(talk: &mut UnixStream, read: &mut Vec<u8>) -> Result<Said, Lost> {
    loop {
        if let Some((length, rest)) = read.split_first_chunk::<LENGTH>() {
            let length = u32::from_le_bytes(*length) as usize;
            if length > LARGEST_ANSWER {
                return Err(io::Error::other("an answer that is too large").into());
            }
            if let Some(bytes) = rest.get(..length) {
                let said = serde_json::from_slice(bytes).map_err(io::Error::other)?;
                read.drain(..LENGTH + length);
                return Ok(said);
            }
        }
        read.reserve(USUAL_ANSWER);
        match talk.read_buf(read).await {
            Ok(0) => return Err(Lost::Ended),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return Err(Lost::Ended),
            Err(error) => return Err(error.into()),
        }
    }
}
