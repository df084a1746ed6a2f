//! Answers that stand: a file of the user's, with an entry for each rule and exactly what it asked about.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use model::{Question, Reason, Ruling, Standing, Trouble};
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::folder;
use super::users::{self, Approvers};

const FILE: &str = "approved.toml";
const VERSION: i64 = 1;
const MOST: u64 = 1 << 20;
const HEAD: &str =
    "# Answers that stand, written by `belljar approve --always`; take one back: `belljar approve revoke ID`.\n";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    version: i64,
    #[serde(default)]
    approved: Vec<Standing>,
}

/// What would be written down for a question: one entry a reason.
pub fn entries(question: &Question, by: &str) -> Vec<Standing> {
    let principal = question.principal.to_string();
    let workspaces = workspaces(question);
    let entry = |reason: &Reason| {
        // The same is always called the same: what is shown first is what is written, and once.
        let exactly = exactly(question, reason);
        let said = (&reason.rule, reason.action, &reason.about, &principal, &workspaces, &exactly);
        let hash = blake3::hash(&serde_json::to_vec(&said).unwrap_or_default());
        Standing {
            id: hash.to_hex()[..8].to_owned(),
            rule: reason.rule.clone(),
            action: reason.action,
            about: reason.about.clone(),
            principal: principal.clone(),
            workspaces: workspaces.clone(),
            exactly,
            on: today(),
            by: by.to_owned(),
        }
    };
    question.reasons.iter().map(entry).collect()
}

/// Everything else that the answer was about: what was shown, and what the rule said and where.
fn exactly(question: &Question, reason: &Reason) -> String {
    let said = (&question.shown, &reason.place, &reason.why);
    blake3::hash(&serde_json::to_vec(&said).unwrap_or_default()).to_hex()[..32].to_owned()
}

/// Who said yes to all of it before; nothing if any reason of it is new, or something was found that nobody has seen.
pub fn covering(entries: &[Standing], question: &Question) -> Option<String> {
    if !question.findings.is_empty() {
        return None;
    }
    let principal = question.principal.to_string();
    let workspaces = workspaces(question);
    let covers = |entry: &Standing, reason: &Reason| {
        let Standing { id: _, rule, action, about, principal: who, workspaces: places, exactly: all, on: _, by: _ } =
            entry;
        let same =
            (rule, *action, about) == (&reason.rule, reason.action, &reason.about) && *all == exactly(question, reason);
        same && *who == principal && *places == workspaces && reason.ruling == Ruling::Ask
    };
    let mut found = Vec::new();
    for reason in &question.reasons {
        found.push(entries.iter().find(|entry| covers(entry, reason))?);
    }
    let first = found.first()?;
    Some(format!("{} on {}, standing answer {}", first.by, first.on, first.id))
}

/// The entries that count: in a file that only an approver could have written.
pub fn load(settings: &Path, approvers: &Approvers) -> Result<Vec<Standing>, Trouble> {
    Ok(open(settings)?.map_or_else(Vec::new, |(entries, owner)| match approvers.contains(owner) {
        true => entries,
        false => Vec::new(),
    }))
}

/// The entries of our own file, to be shown or written again.
pub fn load_to_change(settings: &Path) -> Result<Vec<Standing>, Trouble> {
    match open(settings)? {
        None => Ok(Vec::new()),
        Some((entries, owner)) if owner == users::us() => Ok(entries),
        Some((_, owner)) => Err(unusable(settings, format!("it is of user {owner}"))),
    }
}

/// What text says, or what is wrong with it.
pub fn read(text: &str) -> Result<Vec<Standing>, String> {
    let written: Written = toml::from_str(text).map_err(|error| error.message().to_owned())?;
    match written.version {
        VERSION => Ok(written.approved),
        other => Err(format!("it has version {other}, and this belljar knows {VERSION}")),
    }
}

pub fn add(settings: &Path, entries: &[Standing]) -> Result<(), Trouble> {
    change(settings, |all| {
        // Said again, it is the newer word.
        all.retain(|known| entries.iter().all(|entry| entry.id != known.id));
        all.extend_from_slice(entries);
    })
}

/// Takes one back; nothing if there is none that `which` begins.
pub fn revoke(settings: &Path, which: &str) -> Result<Option<Standing>, Trouble> {
    let meant = |entry: &Standing| !which.is_empty() && entry.id.starts_with(which);
    let found: Vec<Standing> = load_to_change(settings)?.into_iter().filter(meant).collect();
    match found.as_slice() {
        [] => Ok(None),
        [one] => {
            change(settings, |all| all.retain(|entry| entry != one))?;
            Ok(Some(one.clone()))
        }
        several => {
            let ids: Vec<&str> = several.iter().map(|entry| entry.id.as_str()).collect();
            Err(Trouble {
                message: format!("`{which}` may be {}", ids.join(" or ")),
                fix: "write more of it".to_owned(),
            })
        }
    }
}

/// Reads, changes and writes it again, while nobody else does. What can't be understood is left as it is.
fn change(settings: &Path, how: impl FnOnce(&mut Vec<Standing>)) -> Result<(), Trouble> {
    let cannot = |error: std::io::Error| unusable(settings, format!("it can't be written: {error}"));
    let make = || -> std::io::Result<std::os::fd::OwnedFd> {
        use std::os::unix::fs::DirBuilderExt;
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(settings)?;
        let folder = rustix::fs::open(settings, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        rustix::fs::flock(&folder, FlockOperation::LockExclusive)?;
        Ok(folder)
    };
    let locked = make().map_err(cannot)?;
    let mut approved = load_to_change(settings)?;
    how(&mut approved);
    let written = Written { version: VERSION, approved };
    let text = toml::to_string(&written).map_err(|error| unusable(settings, error.to_string()))?;
    let write = || -> std::io::Result<()> {
        use std::io::Write;
        let temporary = format!(".{FILE}.{}", folder::random::<8>()?);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut file: std::fs::File =
            rustix::fs::openat(&locked, &temporary, flags, Mode::from_raw_mode(0o600))?.into();
        file.write_all(HEAD.as_bytes())?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        rustix::fs::renameat(&locked, &temporary, &locked, FILE)?;
        rustix::fs::fsync(&locked)?;
        Ok(())
    };
    write().map_err(cannot)
}

fn open(settings: &Path) -> Result<Option<(Vec<Standing>, u32)>, Trouble> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let fd = match rustix::fs::open(settings.join(FILE), flags, Mode::empty()) {
        Ok(fd) => fd,
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
        Err(Errno::LOOP) => return Err(unusable(settings, "it is a link".to_owned())),
        Err(error) => return Err(unusable(settings, format!("it can't be opened: {error}"))),
    };
    let stat = rustix::fs::fstat(&fd).map_err(|error| unusable(settings, error.to_string()))?;
    let mut opened = folder::Opened { file: fd.into(), stat };
    let owner = opened.stat.st_uid;
    let entries = opened.read(MOST).and_then(|bytes| {
        let text = std::str::from_utf8(&bytes).map_err(|_| "it is no text".to_owned())?;
        read(text)
    });
    entries.map(|entries| Some((entries, owner))).map_err(|why| unusable(settings, why))
}

fn workspaces(question: &Question) -> Vec<String> {
    question.shown.iter().filter(|(name, _)| name == "workspace").map(|(_, value)| value.clone()).collect()
}

fn unusable(settings: &Path, why: String) -> Trouble {
    Trouble {
        message: format!("the file of standing answers, `{}`, can't be used: {why}", settings.join(FILE).display()),
        fix: "mend it, or move it away".to_owned(),
    }
}

/// As a calendar says it, in UTC.
fn today() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    date(seconds / 86_400)
}

/// The day that is so many days after the first of 1970. Counted in years that begin in March, so that the day which not
/// every year has is the last.
fn date(days: u64) -> String {
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, later) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    format!("{:04}-{month:02}-{day:02}", era * 400 + year + later)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_those_of_the_calendar() {
        for (days, shown) in [(0, "1970-01-01"), (59, "1970-03-01"), (11_016, "2000-02-29"), (20_513, "2026-03-01")] {
            assert_eq!(date(days), shown);
        }
    }
}
