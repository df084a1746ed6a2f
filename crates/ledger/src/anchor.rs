//! Places outside that are told each checkpoint, so that the end of the record can't be cut off unseen.
//!
//! What an anchor could not take is kept, and told again with the next one.

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use model::{Anchor, HttpsAnchor};
use serde::{Deserialize, Serialize};

use crate::checkpoint::Checkpoint;
use crate::error::{Error, Result, cannot};
use crate::place::{Place, options, put};
use crate::writer::Ledger;

/// For a command that hangs.
const PATIENCE: Duration = Duration::from_secs(10);
/// For all posts to one place.
const PATIENCE_WITH_POSTS: Duration = Duration::from_secs(5);
/// Of what could not be told: the newest are enough, as each is about all before it.
const MOST_WAITING: usize = 100;

/// Posts a checkpoint in so much time. The network is not ours: whoever has it hands this in.
pub type Post<'a> = &'a dyn Fn(&HttpsAnchor, &str, Duration) -> std::result::Result<(), String>;

/// Whether somebody waits for what comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// All are told.
    AtTheEnd,
    /// A run is about to begin or goes on: only files are told, others hear it with the next one.
    InTheMiddle,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Anchors {
    anchors: Vec<Waiting>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Waiting {
    anchor: Anchor,
    #[serde(default)]
    waiting: Vec<Checkpoint>,
}

impl Ledger {
    pub fn anchors(&self) -> Result<Vec<(Anchor, usize)>> {
        let Anchors { anchors } = read(&self.place)?;
        Ok(anchors.into_iter().map(|Waiting { anchor, waiting }| (anchor, waiting.len())).collect())
    }

    pub fn add_anchor(&self, anchor: Anchor) -> Result<()> {
        let _lock = self.lock()?;
        let mut anchors = read(&self.place)?;
        match anchors.anchors.iter_mut().find(|known| known.anchor.is_at_the_place_of(&anchor)) {
            Some(known) => known.anchor = anchor,
            None => anchors.anchors.push(Waiting { anchor, waiting: Vec::new() }),
        }
        write(&self.place, &anchors)
    }

    /// Whether there was such a one.
    pub fn remove_anchor(&self, anchor: &Anchor) -> Result<bool> {
        let _lock = self.lock()?;
        let mut anchors = read(&self.place)?;
        let before = anchors.anchors.len();
        anchors.anchors.retain(|known| !known.anchor.is_at_the_place_of(anchor));
        write(&self.place, &anchors)?;
        Ok(anchors.anchors.len() < before)
    }

    /// Tells anchors of a checkpoint. Apart from `append`: they may be slow, and nobody waits for them with the lock held.
    pub fn tell_anchors(&self, checkpoint: &Checkpoint, moment: Moment, post: Post<'_>) -> Result<()> {
        // Most have none, and find out with one call.
        if !self.place.anchors().exists() {
            return Ok(());
        }
        let (mut failed, mut news) = (Ok(()), Vec::new());
        for Waiting { anchor, waiting } in read(&self.place)?.anchors {
            let mut told = waiting.clone();
            told.push(checkpoint.clone());
            let count = match (moment, &anchor) {
                (Moment::InTheMiddle, Anchor::Command(_) | Anchor::Https(_)) => 0,
                _ => tell_one(&anchor, &told, post).map_or_else(
                    |(count, why)| {
                        failed = Err(Error::Anchor { anchor: anchor.to_string(), why });
                        count
                    },
                    |()| told.len(),
                ),
            };
            let left = told.split_off(count);
            if !waiting.is_empty() || !left.is_empty() {
                news.push(News { anchor, told, left });
            }
        }
        if !news.is_empty() {
            self.note(&news)?;
        }
        failed
    }

    /// Into the list as it is by now: while we told, others may have told too, or somebody changed it.
    fn note(&self, news: &[News]) -> Result<()> {
        let _lock = self.lock()?;
        let mut anchors = read(&self.place)?;
        for Waiting { anchor, waiting } in &mut anchors.anchors {
            let Some(News { told, left, .. }) = news.iter().find(|news| news.anchor == *anchor) else { continue };
            waiting.retain(|known| !told.contains(known));
            let new: Vec<Checkpoint> = left.iter().filter(|new| !waiting.contains(new)).cloned().collect();
            waiting.extend(new);
            waiting.sort_by_key(|checkpoint| checkpoint.entries);
            waiting.drain(..waiting.len().saturating_sub(MOST_WAITING));
        }
        write(&self.place, &anchors)
    }
}

/// What came of telling one.
struct News {
    anchor: Anchor,
    told: Vec<Checkpoint>,
    left: Vec<Checkpoint>,
}

/// The checkpoints that a file got.
pub fn kept_in(path: &Path) -> Result<Vec<Checkpoint>> {
    let mut text = String::new();
    File::open(path).and_then(|mut file| file.read_to_string(&mut text)).map_err(cannot("read", path))?;
    let lines = text.lines().filter(|line| !line.trim().is_empty()).enumerate();
    let read = lines.map(|(number, line)| {
        serde_json::from_str(line).map_err(|error| Error::Bad {
            path: path.to_owned(),
            what: "file of checkpoints",
            why: format!("line {}: {error}", number + 1),
        })
    });
    read.collect()
}

/// All of them, or how many it took and why no more.
fn tell_one(anchor: &Anchor, checkpoints: &[Checkpoint], post: Post<'_>) -> std::result::Result<(), (usize, String)> {
    let lines: String = checkpoints.iter().map(|checkpoint| checkpoint.json() + "\n").collect();
    match anchor {
        Anchor::File(path) => {
            // Anybody's file may be meant here, a link too; but a pipe without a reader must not keep us waiting.
            let nonblocking = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
            let mut options = File::options();
            std::os::unix::fs::OpenOptionsExt::custom_flags(options.append(true).create(true), nonblocking);
            let write = || -> std::io::Result<()> {
                let mut file = options.open(path)?;
                file.write_all(lines.as_bytes())?;
                if file.metadata()?.is_file() { file.sync_data() } else { Ok(()) }
            };
            write().map_err(|error| (0, error.to_string()))
        }
        Anchor::Command(command) => run(command, lines.as_bytes()).map_err(|why| (0, why)),
        Anchor::Https(https) => {
            let until = Instant::now() + PATIENCE_WITH_POSTS;
            for (count, checkpoint) in checkpoints.iter().enumerate() {
                let left = until.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return Err((count, format!("it took more than {} seconds", PATIENCE_WITH_POSTS.as_secs())));
                }
                // With an end of line: whoever only puts one after the other has a file that we can read.
                post(https, &(checkpoint.json() + "\n"), left).map_err(|why| (count, why))?;
            }
            Ok(())
        }
    }
}

fn run(command: &str, input: &[u8]) -> std::result::Result<(), String> {
    let mut shell = Command::new("/bin/sh");
    shell.arg("-c").arg(command).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
    let mut child = shell.spawn().map_err(|error| error.to_string())?;
    if let Some(mut stdin) = child.stdin.take() {
        // Smaller than a pipe holds, so this does not wait; one that does not read says so with its status.
        stdin.write_all(input).ok();
    }
    let began = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(status)) => return Err(format!("it ended with {status}")),
            Ok(None) if began.elapsed() < PATIENCE => std::thread::sleep(Duration::from_millis(2)),
            Ok(None) => {
                let group = rustix::process::Pid::from_child(&child);
                rustix::process::kill_process_group(group, rustix::process::Signal::KILL).ok();
                child.wait().ok();
                return Err(format!("it took more than {} seconds", PATIENCE.as_secs()));
            }
            Err(error) => return Err(error.to_string()),
        }
    }
}

fn read(place: &Place) -> Result<Anchors> {
    let path = place.anchors();
    let mut text = String::new();
    match options().open(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Anchors::default()),
        file => file.and_then(|mut file| file.read_to_string(&mut text)).map_err(cannot("read", &path))?,
    };
    serde_json::from_str(&text).map_err(|error| Error::Bad { path, what: "list of anchors", why: error.to_string() })
}

fn write(place: &Place, anchors: &Anchors) -> Result<()> {
    let text = serde_json::to_string_pretty(anchors).unwrap_or_default();
    put(&place.anchors(), text.as_bytes(), 0o600)
}
