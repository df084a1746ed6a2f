//! A parked question: a file that whoever waits holds a lock on. When they are gone, so is the lock, and the question
//! is nobody's.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use model::{Offers, Parked, Question, Standing, Trouble};
use rustix::fs::FlockOperation;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::When;
use super::folder::{self, Folder, Opened, unusable};

const VERSION: u32 = 1;
/// More than the longest question can have, with every character escaped.
const MOST: u64 = 4 << 20;
/// What was begun and not finished is nobody's after this.
const FORGOTTEN: u64 = 3600;

/// What is to be parked.
pub struct Parking<'a> {
    pub question: &'a Question,
    pub digest: String,
    pub approvers: Vec<String>,
    pub session: Option<&'a str>,
    pub offers: Offers,
    pub timeout: Duration,
    /// What `always` would write down.
    pub standing: Vec<Standing>,
    pub when: When,
}

/// The file, as it is read by whoever answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Written {
    version: u32,
    pub id: String,
    /// Only whoever waits and whoever can read this file know it: an answer to an earlier question can't have it.
    pub nonce: String,
    /// The session in which it was asked; see [`super::session`].
    pub session: Option<String>,
    approvers: Vec<String>,
    asked: u64,
    until: u64,
    offers: Offers,
    pub question: Question,
}

/// A question that we wait for. It can't be answered any more when this is gone.
pub struct Held<'a> {
    folder: &'a Folder,
    pub written: Written,
    /// The lock is on this.
    _file: std::fs::File,
}

pub fn park<'a>(folder: &'a Folder, parking: &Parking<'_>) -> Result<Held<'a>, Trouble> {
    let cannot = |error: std::io::Error| unusable(folder.path(), format!("a question can't be written: {error}"));
    let nonce = folder::random::<16>().map_err(|error| cannot(error.into()))?;
    let asked = now();
    let timeout = u64::try_from(parking.timeout.as_millis()).unwrap_or(u64::MAX);
    loop {
        let id = folder::random::<4>().map_err(|error| cannot(error.into()))?;
        let written = Written {
            version: VERSION,
            id: id.clone(),
            nonce: nonce.clone(),
            session: parking.session.map(str::to_owned),
            approvers: parking.approvers.clone(),
            asked,
            // One more, as `asked` lost its fraction: nobody is told that it is over while we still wait.
            until: asked.saturating_add(timeout).saturating_add(1),
            offers: parking.offers,
            question: parking.question.clone(),
        };
        let bytes = serde_json::to_vec(&written).map_err(|error| cannot(error.into()))?;
        let temporary = format!("tmp-{nonce}");
        let file = folder.write(&temporary, folder.question_mode(), &bytes).map_err(cannot)?;
        // Before it has its name: whoever sees it sees that somebody waits.
        rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|error| cannot(error.into()))?;
        // A leftover of the same name would look like an answer to this.
        if !folder.has(&format!("{id}.answer")) {
            match folder.publish(&temporary, &format!("{id}.question")) {
                Ok(()) => return Ok(Held { folder, written, _file: file }),
                Err(Errno::EXIST) => continue,
                Err(error) => return Err(cannot(error.into())),
            }
        }
        folder.remove(&temporary);
    }
}

impl Held<'_> {
    pub fn parked(&self, digest: &str) -> Parked {
        parked(self.written.clone(), digest.to_owned())
    }

    pub fn answer_name(&self) -> String {
        format!("{}.answer", self.written.id)
    }

    pub fn taken_name(&self) -> String {
        format!("{}.taken", self.written.id)
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.folder.remove(&format!("{}.question", self.written.id));
        self.folder.remove(&self.taken_name());
    }
}

/// The question that bytes are, or why they are none.
pub fn read(bytes: &[u8]) -> Result<Written, String> {
    let written: Written = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    match written.version {
        VERSION => Ok(written),
        other => Err(format!("it has version {other}, and this belljar knows {VERSION}")),
    }
}

/// The one with this id, if somebody waits for it.
pub fn live(folder: &Folder, id: &str) -> Option<Written> {
    let mut opened = folder.open(&format!("{id}.question")).ok()?;
    if opened.stat.st_uid != folder.owner() || !is_held(&opened) {
        return None;
    }
    // What can't be understood can't be answered either.
    let written = read(&opened.read(MOST).ok()?).ok()?;
    (written.id == id && now() < written.until).then_some(written)
}

/// The oldest first.
pub fn list(folder: &Folder) -> Result<Vec<Parked>, Trouble> {
    let names = folder.names().map_err(|error| unusable(folder.path(), error.to_string()))?;
    let ids = names.iter().filter_map(|name| name.strip_suffix(".question")).filter(|id| is_id(id));
    let mut list: Vec<Parked> = ids
        .filter_map(|id| live(folder, id))
        .map(|written| {
            let digest = written.question.compute_digest();
            parked(written, digest)
        })
        .collect();
    list.sort_by(|one, other| (one.asked, &one.id).cmp(&(other.asked, &other.id)));
    Ok(list)
}

/// Removes what nobody waits for: questions without a lock, answers without a question.
pub fn sweep(folder: &Folder) {
    let Ok(names) = folder.names() else { return };
    for name in &names {
        let Some((id, kind)) = name.split_once('.') else {
            let begun = folder.stat(name).map_or(u64::MAX, |stat| u64::try_from(stat.st_mtime).unwrap_or(0));
            if name.starts_with("tmp-") && begun.saturating_add(FORGOTTEN) < now() / 1000 {
                folder.remove(name);
            }
            continue;
        };
        let question = format!("{id}.question");
        let stale = match kind {
            _ if !is_id(id) => false,
            "question" | "answer" | "taken" => match folder.open(&question) {
                Ok(opened) => !is_held(&opened),
                Err(Errno::NOENT) => true,
                Err(_) => false,
            },
            _ => false,
        };
        if stale {
            folder.remove(name);
        }
    }
}

/// Whether somebody waits. Who asks this does not keep others from asking, and lets go at once.
fn is_held(opened: &Opened) -> bool {
    matches!(rustix::fs::flock(&opened.file, FlockOperation::NonBlockingLockShared), Err(Errno::WOULDBLOCK))
}

fn parked(written: Written, digest: String) -> Parked {
    let Written { version: _, id, nonce: _, session: _, approvers, asked, until, offers, question } = written;
    Parked { id, digest, approvers, asked, until, offers, of: None, question }
}

/// As we make them.
pub fn is_id(text: &str) -> bool {
    text.len() == 8 && text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

/// Milliseconds since 1970.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
}
