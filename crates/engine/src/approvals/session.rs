//! Answers that hold as long as the asker's session does: the files that people made, kept under the session's name.
//!
//! They stay files of whoever answered, so the kernel still says who that was.

use model::Decision;

use super::answer::{self, Expected};
use super::folder::Folder;
use super::users::Approvers;

/// Seconds in which a yes that was asked for first is used, or is none.
const FOR_ONCE: i64 = 600;

/// The session we are in. Nothing if its leader has ended or can't be seen from here: nothing would tell its end.
pub fn current() -> Option<String> {
    // Not by getsid: of a leader outside of our process namespace it says 0, which rustix takes for a process.
    led_by(field("self", SESSION)?)
}

/// The session that a process leads: its number and start, and this start of the machine.
pub fn led_by(leader: u64) -> Option<String> {
    Some(format!("{leader}-{}-{}", started(leader)?, boot()?))
}

/// Whether the same was answered in this session already, and by whom.
pub fn answered(folder: &Folder, session: Option<&str>, digest: &str, approvers: &Approvers) -> Option<u32> {
    let session = session?;
    let sessions = folder.sessions().ok()??;
    let expected = Expected { digest, session: Some(session), question: None };
    let (answer, by) = answer::look(&sessions, &name(session, digest), &expected, approvers).ok()??;
    (answer.decision == Decision::Session).then_some(by)
}

/// Whether a yes for once was given to the same before, by whom; from now on it is worth nothing more.
pub fn spent(folder: &Folder, session: Option<&str>, digest: &str, approvers: &Approvers) -> Option<u32> {
    let session = session?;
    let sessions = folder.sessions().ok()??;
    let name = name_for_once(session, digest);
    let expected = Expected { digest, session: Some(session), question: None };
    let (answer, by) = answer::look(&sessions, &name, &expected, approvers).ok()??;
    let given = sessions.stat(&name)?.st_ctime;
    let now = i64::try_from(std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).ok()?.as_secs()).ok()?;
    // Under a name that nobody looks for: of several who come for it at once, one gets it.
    let own = format!("{session}.taken-{}", super::folder::random::<16>().ok()?);
    sessions.take(&name, &sessions, &own).ok()?;
    let gone = sessions.remove(&own);
    let in_time = (0..=FOR_ONCE).contains(&now.saturating_sub(given));
    (gone && in_time && answer.decision == Decision::Once).then_some(by)
}

/// The name of an answer that holds for the same question once.
pub fn name_for_once(session: &str, digest: &str) -> String {
    format!("{session}.{digest}.once")
}

/// The name of an answer that holds for a session.
pub fn name(session: &str, digest: &str) -> String {
    format!("{session}.{digest}")
}

/// Removes answers of sessions that have ended.
pub fn sweep(folder: &Folder) {
    let Ok(Some(sessions)) = folder.sessions() else { return };
    let Ok(names) = sessions.names() else { return };
    for name in names {
        let session = name.split('.').next().unwrap_or_default();
        if !goes_on(session) {
            sessions.remove(&name);
        }
    }
}

fn goes_on(session: &str) -> bool {
    let mut parts = session.splitn(3, '-');
    let mut next = || parts.next().unwrap_or_default();
    let (leader, start, booted) = (next(), next(), next());
    let now = leader.parse().ok().and_then(started).map(|start| start.to_string());
    now.as_deref() == Some(start) && boot().as_deref() == Some(booted)
}

/// Where `/proc/PROCESS/stat` has them, counted from behind the name.
const SESSION: usize = 3;
const STARTED: usize = 19;

/// When a process began, in the kernel's ticks since the machine did: with it, its number can't mean another.
fn started(process: u64) -> Option<u64> {
    field(&process.to_string(), STARTED)
}

fn field(process: &str, field: usize) -> Option<u64> {
    number(&std::fs::read(format!("/proc/{process}/stat")).ok()?, field)
}

fn number(record: &[u8], field: usize) -> Option<u64> {
    // Its name may have anything in it, spaces and parentheses too; after it there are only numbers.
    let after = record.iter().rposition(|byte| *byte == b')')?;
    std::str::from_utf8(&record[after + 1..]).ok()?.split_ascii_whitespace().nth(field)?.parse().ok()
}

fn boot() -> Option<String> {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let id: String = id.chars().filter(char::is_ascii_hexdigit).collect();
    (id.len() == 32).then_some(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_session_goes_on_and_others_have_ended() {
        let session = led_by(std::process::id().into()).expect("we run");
        assert!(goes_on(&session), "{session}");
        let (leader, rest) = session.split_once('-').expect("three parts");
        let (start, boot) = rest.split_once('-').expect("three parts");
        let next: u64 = start.parse::<u64>().expect("a number") + 1;
        for ended in [
            format!("{leader}-{next}-{boot}"),
            format!("{leader}-{start}-{}", "0".repeat(32)),
            format!("2147483647-{start}-{boot}"),
            String::new(),
            "--".to_owned(),
        ] {
            assert!(!goes_on(&ended), "{ended}");
        }
        assert_eq!(led_by(0), None, "a leader that can't be seen from here");
    }

    #[test]
    fn the_session_is_read_where_the_kernel_tells_it() {
        let record = std::process::Command::new("setsid").args(["--wait", "cat", "/proc/self/stat"]).output();
        let record = record.expect("setsid is there").stdout;
        let process = record.split(|byte| *byte == b' ').next().expect("a number");
        assert_eq!(number(&record, SESSION).expect("it is there").to_string().as_bytes(), process, "it leads its own");
    }
}
