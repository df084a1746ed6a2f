//! Places outside that are told each checkpoint, so that the end of the record can't be cut off unseen.
//!
//! What an anchor could not take is kept, and told again with the next one.

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use model::Anchor;
use serde::{Deserialize, Serialize};

use crate::checkpoint::Checkpoint;
use crate::error::{Error, Result, cannot};
use crate::place::{Place, options, put};
use crate::writer::Ledger;

/// For a command that hangs.
const PATIENCE: Duration = Duration::from_secs(10);
/// Of what could not be told: the newest are enough, as each is about all before it.
const MOST_WAITING: usize = 100;

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
        if anchors.anchors.iter().all(|known| known.anchor != anchor) {
            anchors.anchors.push(Waiting { anchor, waiting: Vec::new() });
        }
        write(&self.place, &anchors)
    }

    /// Whether there was such a one.
    pub fn remove_anchor(&self, anchor: &Anchor) -> Result<bool> {
        let _lock = self.lock()?;
        let mut anchors = read(&self.place)?;
        let before = anchors.anchors.len();
        anchors.anchors.retain(|known| known.anchor != *anchor);
        write(&self.place, &anchors)?;
        Ok(anchors.anchors.len() < before)
    }
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

pub(crate) fn tell(place: &Place, checkpoint: &Checkpoint) -> Result<()> {
    // Most have none, and find out with one call.
    if !place.anchors().exists() {
        return Ok(());
    }
    let mut anchors = read(place)?;
    let before = anchors.clone();
    let mut failed = Ok(());
    for Waiting { anchor, waiting } in &mut anchors.anchors {
        waiting.push(checkpoint.clone());
        match tell_one(anchor, waiting) {
            Ok(()) => waiting.clear(),
            Err(why) => {
                waiting.drain(..waiting.len().saturating_sub(MOST_WAITING));
                failed = Err(Error::Anchor { anchor: anchor.to_string(), why });
            }
        }
    }
    if anchors != before {
        write(place, &anchors)?;
    }
    failed
}

fn tell_one(anchor: &Anchor, checkpoints: &[Checkpoint]) -> std::result::Result<(), String> {
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
            write().map_err(|error| error.to_string())
        }
        Anchor::Command(command) => run(command, lines.as_bytes()),
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
