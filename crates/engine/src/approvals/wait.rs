//! Waiting for an answer: a file in the folder, or a word of the person who sits here, whichever is first.

use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use model::{Answer, Conversation, Decision, Person, Question, Refusal, Retry, Trouble, Watch};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::inotify;
use rustix::io::Errno;

use super::answer::{self, Expected};
use super::folder::{Folder, unusable};
use super::question::{self, Held, Parking};
use super::users::{Approvers, Users};
use super::{When, session, users};

/// More wrong answers than this are not told one by one.
const TOLD: usize = 5;

/// What a person said, and who it was.
pub struct Heard {
    pub answer: Answer,
    pub by: u32,
    /// Said to us, rather than left in the folder.
    pub here: bool,
}

pub fn until_answered(
    folder: &Folder,
    parking: &Parking<'_>,
    approvers: &Approvers,
    person: Option<&dyn Person>,
    watch: &dyn Watch,
) -> Result<Heard, Refusal> {
    let question = parking.question;
    let trouble = |trouble: Trouble| refusal(question, trouble.message, &trouble.fix, Retry::AfterApproval);
    let deadline = Instant::now().checked_add(parking.timeout);
    // Before anybody can answer: no answer is missed.
    let changes = Changes::of(folder).map_err(trouble)?;
    let held = question::park(folder, parking).map_err(trouble)?;
    let id = held.written.id.clone();
    let mut conversation = person.and_then(|person| person.ask(&held.parked(&parking.digest), &parking.standing));
    if conversation.is_none() {
        let who = parking.approvers.join(" or ");
        // Whoever else may answer must say whose questions they mean.
        let us = users::us();
        let of = match approvers.contains(us) {
            true => String::new(),
            false => format!("--of {} ", Users::read().map_err(trouble)?.name(us)),
        };
        let text = format!("waiting {} for {who} to answer: `belljar approve {of}{id}`", in_words(parking.timeout));
        watch.asks(&id, &text);
    }
    let _over = Over { watch, id: &id };
    let mut wrong = 0;
    let deadline = deadline.unwrap_or_else(|| Instant::now() + Duration::from_secs(u32::MAX.into()));
    loop {
        let looked = answer::look(folder, &held.answer_name(), &Expected::of(&held, &parking.digest), approvers);
        // What came after the time was over does not count, wherever we slept meanwhile.
        if Instant::now() >= deadline {
            break;
        }
        match looked {
            Ok(Some((written, by))) => {
                let answer = Answer { decision: written.decision, reason: written.reason };
                consume(folder, &held, parking, answer.decision).map_err(trouble)?;
                end(conversation, Some("answered elsewhere"));
                return Ok(Heard { answer, by, here: false });
            }
            Ok(None) => {}
            Err(why) => {
                let removed = if folder.remove(&held.answer_name()) { "was removed" } else { "can't be removed" };
                wrong += 1;
                if wrong <= TOLD {
                    watch.warn(&format!("an answer to {id} does not count and {removed}: {why}"));
                }
            }
        }
        let woken = changes.wait(conversation.as_deref(), deadline);
        match woken.map_err(|error| trouble(unusable(folder.path(), error.to_string())))? {
            Woken::Late => break,
            Woken::Folder => {}
            Woken::Person => {
                if let Some(answer) = conversation.as_deref_mut().and_then(|conversation| conversation.heard()) {
                    end(conversation, None);
                    let by = users::us();
                    if answer.decision == Decision::Session {
                        answer::keep(folder, &held, &parking.digest, &answer).map_err(trouble)?;
                    }
                    return Ok(Heard { answer, by, here: true });
                }
            }
        }
    }
    end(conversation, Some("the time is over; this counts as no"));
    let message = format!("nobody answered within {}", in_words(parking.timeout));
    let hint = "ask again, and answer with `belljar approve`; or raise `approvals.timeout`";
    Err(refusal(question, message, hint, Retry::AfterApproval))
}

/// Whoever was told that somebody is asked is told when nobody is any more, whatever came of it.
struct Over<'a> {
    watch: &'a dyn Watch,
    id: &'a str,
}

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.watch.asked(self.id);
    }
}

/// A no for each reason, so that whoever asked knows what to do about it.
pub fn refusal(question: &Question, message: String, hint: &str, retry: Retry) -> Refusal {
    let denied = question.reasons.iter().map(|reason| reason.denied(retry));
    let rule = question.reasons.first().map_or("approvals", |reason| &reason.rule);
    Refusal { denied: denied.collect(), unanswered: true, ..Refusal::new(rule, message, hint) }
}

/// What a person said goes to whoever asked, and to their terminal.
pub fn denied(question: &Question, by: &str, reason: &str) -> Refusal {
    let letter = |letter: char| match letter {
        '\'' | '"' => letter.to_string(),
        letter => letter.escape_debug().to_string(),
    };
    let reason: String = reason.trim().chars().map(letter).collect();
    let message = if reason.is_empty() { format!("{by} said no") } else { format!("{by} said no: {reason}") };
    refusal(question, message, "do without it; the answer to the same would be the same", Retry::No)
}

/// So that nothing can be answered with it again: the answer loses its name first, then the question.
fn consume(folder: &Folder, held: &Held<'_>, parking: &Parking<'_>, decision: Decision) -> Result<(), Trouble> {
    let cannot = |error: Errno| unusable(folder.path(), format!("an answer can't be taken: {error}"));
    let kept = |session: &str| match (decision, parking.when) {
        (Decision::Session, _) => Some(session::name(session, &parking.digest)),
        (Decision::Once, When::Later) => Some(session::name_for_once(session, &parking.digest)),
        (Decision::Once, When::Now) | (Decision::Always | Decision::Deny, _) => None,
    };
    if let Some(name) = held.written.session.as_deref().and_then(kept)
        && let Some(sessions) = folder.sessions()?
    {
        return folder.take(&held.answer_name(), &sessions, &name).map_err(cannot);
    }
    folder.take(&held.answer_name(), folder, &held.taken_name()).map_err(cannot)
}

fn end(conversation: Option<Box<dyn Conversation>>, said: Option<&str>) {
    if let Some(conversation) = conversation {
        conversation.end(said);
    }
}

fn in_words(time: Duration) -> String {
    match time.as_secs() {
        0 => format!("{} ms", time.as_millis()),
        seconds if seconds < 120 => format!("{seconds} s"),
        seconds if seconds < 7200 => format!("{} min", seconds / 60),
        seconds => format!("{} h", seconds / 3600),
    }
}

/// Who woke us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Woken {
    Folder,
    Person,
    /// Nobody, in time.
    Late,
}

impl Woken {
    pub fn is_in_time(self) -> bool {
        self != Woken::Late
    }
}

/// What happens in a folder from now on.
pub struct Changes(OwnedFd);

impl Changes {
    pub fn of(folder: &Folder) -> Result<Changes, Trouble> {
        use inotify::{CreateFlags, WatchFlags};
        let cannot = |error: Errno| unusable(folder.path(), format!("it can't be watched: {error}"));
        let fd = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).map_err(cannot)?;
        let kinds = WatchFlags::CREATE | WatchFlags::MOVED_TO | WatchFlags::MOVED_FROM | WatchFlags::DELETE;
        // By its descriptor: the path may lead elsewhere by now.
        let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&folder.fd()));
        inotify::add_watch(&fd, path, kinds | WatchFlags::ONLYDIR).map_err(cannot)?;
        Ok(Changes(fd))
    }

    /// Until something changes, the person says something, or it is too late.
    pub fn wait(&self, conversation: Option<&dyn Conversation>, deadline: Instant) -> Result<Woken, Errno> {
        let person: Option<BorrowedFd<'_>> = conversation.map(|conversation| conversation.input());
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(Woken::Late);
            }
            let left =
                Timespec { tv_sec: left.as_secs().try_into().unwrap_or(i64::MAX), tv_nsec: left.subsec_nanos().into() };
            let mut sources = vec![PollFd::new(&self.0, PollFlags::IN)];
            sources.extend(person.as_ref().map(|fd| PollFd::new(fd, PollFlags::IN)));
            match rustix::event::poll(&mut sources, Some(&left)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
            let ready = |at: usize| sources.get(at).is_some_and(|source| !source.revents().is_empty());
            // What came after the time was over does not count.
            if Instant::now() >= deadline {
                return Ok(Woken::Late);
            }
            if ready(0) {
                self.forget()?;
                return Ok(Woken::Folder);
            }
            if ready(1) {
                return Ok(Woken::Person);
            }
        }
    }

    /// What exactly happened does not matter: whoever is woken looks.
    fn forget(&self) -> Result<(), Errno> {
        let mut buffer = [MaybeUninit::<u8>::uninit(); 4096];
        loop {
            match rustix::io::read(&self.0, &mut buffer) {
                Ok(_) => {}
                Err(Errno::WOULDBLOCK) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
    }
}
