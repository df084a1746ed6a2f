//! A process that does one job and ends: nothing of it is left for the next.

use std::cell::RefCell;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::time::Duration;

use model::Watch;
use rustix::net::RecvFlags;
use serde_json::Value;
use sys::{descriptors, process};

use crate::job::{Answer, Job, LARGEST_JOB, LENGTH, Said, Task, framed};
use crate::launcher::{Interpreter, Maker, Nobody};
use crate::{ready, task};

/// How a job is handed over: these bytes, and descriptors. First the one to talk over; then either none or input, output and
/// error output.
pub const HANDED_OVER: &[u8] = b"job";

/// Waits for one job and does it. `taken` is told that this one waits no more.
pub fn carry(jobs: BorrowedFd<'_>, taken: BorrowedFd<'_>, warm: &[Interpreter], make: Maker) -> io::Result<()> {
    if there_is_time(jobs) {
        make(None, Box::new(Nobody)).limber_up();
    }
    let mut words = [0; HANDED_OVER.len() + 1];
    let (count, mut handed) = descriptors::receive(jobs, &mut words)?;
    if count == 0 {
        return Ok(());
    }
    if &words[..count] != HANDED_OVER || !matches!(handed.len(), 1 | 4) {
        return Err(io::Error::other("what was handed over is no job"));
    }
    let talk = UnixStream::from(handed.remove(0));
    stand_on(&handed)?;
    drop(handed);
    // By this the other side can end us, and nobody who has our number next.
    let own = process::open(process_number())?;
    descriptors::send(talk.as_fd(), b".", &[own.as_fd()])?;
    drop(own);
    let job = frame(&talk);
    // Only now: whoever is woken by it makes another of us, and would do so while we wait for our job.
    rustix::io::write(taken, &process_number().to_le_bytes())?;
    let job: Job = serde_json::from_slice(&job?)?;
    let zygote = match &job.task {
        Task::MakeReady { interpreter, .. } => warm.iter().find(|one| one.name == *interpreter).map(Interpreter::reach),
        _ => None,
    };
    let zygote = zygote.transpose()?;
    // Nothing that we start need know where jobs come from, not even by a copy that it never uses.
    let door = zygote.as_ref().map(|zygote| zygote.door.as_raw_fd());
    let mut kept: Vec<i32> = door.into_iter().chain([talk.as_raw_fd()]).collect();
    process::close_all_but(3, &mut kept)?;
    let talk = Rc::new(RefCell::new(talk));
    // Nobody else waits for that alone.
    let begins = matches!(&job.task, Task::RunIn { wish, .. } if wish.terminal);
    let service = make(job.setting.state.clone(), Box::new(Notices { talk: talk.clone(), begins }));
    service.leave_for_later();
    let (answer, place) = match zygote {
        Some(zygote) => match ready::wait(job, zygote, service.as_ref(), &talk)? {
            Some(done) => done,
            // Nobody needed it.
            None => return Ok(()),
        },
        None => {
            let ready = |stands: Value| {
                // Nobody may be there any more: then we are told to end.
                drop(say(&mut talk.borrow_mut(), &Said::Ready(stands)));
            };
            task::carry_out(job, service.as_ref(), &ready)
        }
    };
    let said = say(&mut talk.borrow_mut(), &Said::Answer(answer));
    // Whoever hands it on goes first.
    rustix::thread::sched_yield();
    // It is answered: what could not be tidied up is swept at the next start, and is nobody's answer.
    drop(service.tidy());
    drop(place.map(task::leave));
    said
}

/// Looked for so often while others want to run, and so far apart: about as long as a command takes that somebody waits for.
const LOOKS: usize = 30;
const PAUSE: Duration = Duration::from_millis(1);

/// Waits until a processor has nothing to do: whoever limbers up takes no time from anybody. Not if there is a job before that.
fn there_is_time(jobs: BorrowedFd<'_>) -> bool {
    let mut none_yet = !descriptors::is_readable_within(jobs, Duration::ZERO);
    for _ in 0..LOOKS {
        if !none_yet || !others_wait() {
            return none_yet;
        }
        none_yet = !descriptors::is_readable_within(jobs, PAUSE);
    }
    false
}

/// Whether more want to run just now than there are processors for.
fn others_wait() -> bool {
    process::who_wants_to_run().is_some_and(|(running, processors)| running > processors)
}

fn process_number() -> i32 {
    rustix::process::getpid().as_raw_nonzero().get()
}

/// What the payload gets as its input and output is what we stand on ourselves.
pub(crate) fn stand_on(streams: &[OwnedFd]) -> io::Result<()> {
    if let [input, output, error] = streams {
        rustix::stdio::dup2_stdin(input)?;
        rustix::stdio::dup2_stdout(output)?;
        rustix::stdio::dup2_stderr(error)?;
    }
    Ok(())
}

pub(crate) fn frame(mut talk: &UnixStream) -> io::Result<Vec<u8>> {
    let mut length = [0; LENGTH];
    // Only looked at, and then taken together with the job: whoever sent it is woken by each part that is taken.
    rustix::io::retry_on_intr(|| rustix::net::recv(talk, &mut length, RecvFlags::PEEK | RecvFlags::WAITALL))?;
    let count = u32::from_le_bytes(length) as usize;
    if count > LARGEST_JOB {
        return Err(io::Error::other("a job that is too large"));
    }
    let mut bytes = vec![0; LENGTH + count];
    talk.read_exact(&mut bytes)?;
    if !bytes.starts_with(&length) {
        return Err(io::Error::other("the other side went away"));
    }
    bytes.drain(..LENGTH);
    Ok(bytes)
}

pub(crate) fn say(talk: &mut UnixStream, said: &Said) -> io::Result<()> {
    let mut bytes = serde_json::to_vec(said)?;
    if bytes.len() > crate::job::LARGEST_ANSWER {
        let message =
            format!("the answer has {} MiB, and {} are the most", bytes.len() >> 20, crate::job::LARGEST_ANSWER >> 20);
        bytes = serde_json::to_vec(&Said::Answer(Answer::Trouble { message, fix: "ask for less at once".to_owned() }))?;
    }
    // Processes that this one forked say things too.
    talk.write_all(&framed(&bytes)?)
}

/// What a person would be told at a terminal goes to whoever waits for the job.
struct Notices {
    talk: Rc<RefCell<UnixStream>>,
    /// That it begins is told, too.
    begins: bool,
}

impl Watch for Notices {
    fn progress(&self, _: &str, _: u64, _: u64) {}

    fn warn(&self, text: &str) {
        self.tell(&Said::Notice(text.to_owned()));
    }

    fn asks(&self, question: &str, text: &str) {
        self.tell(&Said::Asks { question: question.to_owned(), how: text.to_owned() });
    }

    fn asked(&self, question: &str) {
        self.tell(&Said::Asked { question: question.to_owned() });
    }

    fn begins(&self) {
        if self.begins {
            self.tell(&Said::Ready(Value::Null));
        }
    }
}

impl Notices {
    fn tell(&self, said: &Said) {
        // Nobody may be there any more; the job does not end for that.
        if let Ok(mut talk) = self.talk.try_borrow_mut() {
            drop(say(&mut talk, said));
        }
    }
}
