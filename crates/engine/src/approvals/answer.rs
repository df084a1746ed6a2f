//! An answer: a file that a person's `belljar approve` makes, and that whoever waits believes only after every check.

use std::time::{Duration, Instant};

use model::{Answer, Decision, Given, LONGEST_REASON, Parked, Trouble};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::folder::{self, Folder, unusable};
use super::question::{self, Held};
use super::session;
use super::users::{Approvers, Users};
use super::wait::Changes;

const VERSION: u32 = 1;
const MOST: u64 = 16 << 10;
/// Whoever waits looks at once; somebody who was stopped may not.
const PATIENCE: Duration = Duration::from_secs(2);

/// The file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Written {
    version: u32,
    id: String,
    nonce: String,
    digest: String,
    session: Option<String>,
    pub decision: Decision,
    pub reason: String,
}

/// What an answer must be to.
pub struct Expected<'a> {
    pub digest: &'a str,
    pub session: Option<&'a str>,
    /// Id and nonce; nothing for answers that outlived their question.
    pub question: Option<(&'a str, &'a str)>,
}

impl<'a> Expected<'a> {
    /// From what whoever waits remembers, never from the file: that may have been changed.
    pub fn of(held: &'a Held<'_>, digest: &'a str) -> Expected<'a> {
        let written = &held.written;
        Expected { digest, session: written.session.as_deref(), question: Some((&written.id, &written.nonce)) }
    }
}

/// The answer that bytes are, or why they are none.
pub fn read(bytes: &[u8]) -> Result<Written, String> {
    let written: Written = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    if written.version != VERSION {
        return Err(format!("it has version {}, and this belljar knows {VERSION}", written.version));
    }
    if written.reason.chars().count() > LONGEST_REASON {
        return Err(format!("its reason has more than {LONGEST_REASON} characters"));
    }
    Ok(written)
}

/// The answer of this name and whose it is; nothing if there is none; and if it is not one to believe, why.
pub fn look(
    folder: &Folder,
    name: &str,
    expected: &Expected<'_>,
    approvers: &Approvers,
) -> Result<Option<(Written, u32)>, String> {
    let mut opened = match folder.open(name) {
        Ok(opened) => opened,
        Err(Errno::NOENT) => return Ok(None),
        Err(Errno::LOOP) => return Err("it is a link".to_owned()),
        Err(error) => return Err(format!("it can't be opened: {error}")),
    };
    // The kernel's word for who made it.
    let owner = opened.stat.st_uid;
    if !approvers.contains(owner) {
        return Err(format!("it is of user {owner}, who may not answer"));
    }
    let written = read(&opened.read(MOST)?)?;
    if expected.question.is_some_and(|(id, nonce)| id != written.id || nonce != written.nonce) {
        return Err("it answers another question".to_owned());
    }
    if written.digest != expected.digest {
        return Err("it answers something else than what was asked".to_owned());
    }
    if written.session.as_deref() != expected.session {
        return Err("it is of another session".to_owned());
    }
    Ok(Some((written, owner)))
}

/// Whether this user may give this answer. Whoever waits decides that for itself; this is to be told early.
pub fn may_be_given(parked: &Parked, answer: &Answer, users: &Users, us: u32) -> Result<(), Trouble> {
    let no = |message: String, fix: &str| Err(Trouble { message, fix: fix.to_owned() });
    if !parked.approvers.contains(&users.name(us)) {
        let who = parked.approvers.join(" or ");
        return no(format!("{} may not answer this; {who} may", users.name(us)), "ask one of them");
    }
    if answer.reason.chars().count() > LONGEST_REASON {
        return no(format!("the reason has more than {LONGEST_REASON} characters"), "say it in fewer");
    }
    let fix = "answer with `--once`, or `--deny`";
    match answer.decision {
        Decision::Session if !parked.offers.session => {
            no("the asker has no session that an answer could hold for".to_owned(), fix)
        }
        Decision::Always if !parked.offers.always || parked.of.is_some() => {
            no("the policy does not let answers stand, or not yours".to_owned(), fix)
        }
        Decision::Once | Decision::Session | Decision::Always if parked.question.too_long().is_some() => {
            no("this is too long to be shown, so it can't be approved".to_owned(), "answer with `--deny`")
        }
        Decision::Once | Decision::Session | Decision::Always | Decision::Deny => Ok(()),
    }
}

/// Keeps an answer to our own question, that was said to us, for the session. Without a session it was for once.
pub fn keep(folder: &Folder, held: &Held<'_>, digest: &str, answer: &Answer) -> Result<(), Trouble> {
    let (Some(session), Some(sessions)) = (&held.written.session, folder.sessions()?) else { return Ok(()) };
    let (temporary, _file) = write(folder, &held.written, digest, answer)?;
    let kept = folder.take(&temporary, &sessions, &session::name(session, digest));
    kept.map_err(|error| cannot(folder, error.into()))
}

/// Leaves the answer where whoever waits looks, and waits until it is taken.
pub fn give(folder: &Folder, parked: &Parked, answer: &Answer) -> Result<Given, Trouble> {
    let Some(asked) = question::live(folder, &parked.id) else { return Ok(Given::TooLate) };
    // The digest is of what was shown, whatever is in the file by now: whoever waits compares it with what they asked.
    let (temporary, file) = write(folder, &asked, &parked.digest, answer)?;
    let cannot = |error: Errno| cannot(folder, error.into());
    let ours = rustix::fs::fstat(&file).map_err(cannot)?;
    let changes = Changes::of(folder)?;
    let name = format!("{}.answer", parked.id);
    match folder.publish(&temporary, &name) {
        Ok(()) => {}
        // Somebody else's answer is there, and not yet looked at.
        Err(Errno::EXIST) => return Ok(Given::TooLate),
        Err(error) => return Err(cannot(error)),
    }
    let deadline = Instant::now() + PATIENCE;
    let question = format!("{}.question", parked.id);
    let is_ours = || folder.stat(&name).is_some_and(|stat| (stat.st_dev, stat.st_ino) == (ours.st_dev, ours.st_ino));
    loop {
        // In this order: an answer that is taken loses its name before its question does.
        let waited_for = folder.has(&question);
        let left = is_ours();
        match (waited_for, left) {
            (false, false) => return Ok(Given::Taken),
            (false, true) => {
                folder.remove(&name);
                return Ok(Given::TooLate);
            }
            (true, _) => {}
        }
        if !changes.wait(None, deadline).map_err(cannot)?.is_in_time() {
            if left {
                folder.remove(&name);
            }
            return Ok(Given::NotAccepted);
        }
    }
}

/// Under a name that nobody looks at yet.
fn write(
    folder: &Folder,
    asked: &question::Written,
    digest: &str,
    answer: &Answer,
) -> Result<(String, std::fs::File), Trouble> {
    let written = Written {
        version: VERSION,
        id: asked.id.clone(),
        nonce: asked.nonce.clone(),
        digest: digest.to_owned(),
        session: asked.session.clone(),
        decision: answer.decision,
        reason: answer.reason.clone(),
    };
    let bytes = serde_json::to_vec(&written).map_err(|error| cannot(folder, error.into()))?;
    let random = folder::random::<16>().map_err(|error| cannot(folder, error.into()))?;
    let temporary = format!("tmp-{random}");
    // Whoever waits may be another user than whoever answers, and has to read it.
    let file = folder.write(&temporary, 0o644, &bytes).map_err(|error| cannot(folder, error))?;
    Ok((temporary, file))
}

fn cannot(folder: &Folder, error: std::io::Error) -> Trouble {
    unusable(folder.path(), format!("an answer can't be written: {error}"))
}
