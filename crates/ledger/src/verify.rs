//! Reads the whole record and names every entry that is not what was written.
//!
//! Segments are read side by side: each says what is wrong within it, and where it begins and ends; then they are joined.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use model::{Fault, Soundness};

use crate::checkpoint::{Checkpoint, MOST_UNSIGNED};
use crate::error::{Error, Result, cannot};
use crate::head::Head;
use crate::index::{self, Blocks};
use crate::key::PublicKey;
use crate::kinds;
use crate::line::{Hash, Line, NO_HASH, hex};
use crate::place::{Place, options};
use crate::segments::each_line;
use crate::writer::Ledger;

/// What is told of; more of them are counted.
const MOST_FAULTS: usize = 1000;

/// What is brought from outside.
#[derive(Clone, Debug, Default)]
pub struct Outside {
    /// The key that must have signed; else the one that lies beside the record, or that its first entry names.
    pub key: Option<PublicKey>,
    /// Checkpoints that an anchor kept.
    pub anchored: Vec<Checkpoint>,
    /// Folders with segments that were moved away.
    pub archives: Vec<std::path::PathBuf>,
}

/// `progress` is told bytes read and bytes in all.
pub fn verify(ledger: &Ledger, outside: &Outside, progress: &(dyn Fn(u64, u64) + Sync)) -> Result<Soundness> {
    // Before the segments: whoever writes meanwhile makes them longer than what was noted, never shorter.
    let noted = options()
        .open(ledger.place.head())
        .ok()
        .and_then(|file| crate::writer::Lock::none(file).noted(&ledger.place).ok()?);
    let mut parts = Vec::new();
    for place in outside.archives.iter().cloned().map(Place::new).chain([ledger.place.clone()]) {
        for segment in place.segments()? {
            parts.push((place.clone(), segment));
        }
    }
    // One that is both here and in an archive was being moved when something ended it: either will do, if they are alike.
    parts.sort_by_key(|(_, segment)| *segment);
    parts.dedup_by(|(one, number), (other, same)| {
        number == same && are_alike(&one.segment(*number), &other.segment(*same))
    });
    if parts.is_empty() {
        return Err(Error::None { path: ledger.folder().to_owned() });
    }
    let key = match &outside.key {
        Some(key) => Some(key.clone()),
        None => ledger.public_key().ok(),
    };
    let seen = read_all(&parts, key.as_ref(), progress)?;
    Ok(join(&seen, key, noted, outside))
}

fn are_alike(one: &std::path::Path, other: &std::path::Path) -> bool {
    match (std::fs::read(one), std::fs::read(other)) {
        (Ok(one), Ok(other)) => one == other,
        _ => false,
    }
}

fn read_all(
    parts: &[(Place, u64)],
    key: Option<&PublicKey>,
    progress: &(dyn Fn(u64, u64) + Sync),
) -> Result<Vec<Seen>> {
    let total = parts.iter().filter_map(|(place, segment)| std::fs::metadata(place.segment(*segment)).ok());
    let total: u64 = total.map(|metadata| metadata.len()).sum();
    let (next, done) = (AtomicUsize::new(0), Mutex::new(0u64));
    let seen: Mutex<BTreeMap<usize, Result<Seen>>> = Mutex::default();
    // A small one is read sooner than a thread is made.
    let worth = usize::try_from(total / (1 << 20)).unwrap_or(usize::MAX).saturating_add(1);
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(parts.len()).min(worth);
    let work = || {
        loop {
            let which = next.fetch_add(1, Ordering::Relaxed);
            let Some((place, segment)) = parts.get(which) else { break };
            let read = read_segment(place, *segment, key);
            if let (Ok(read), Ok(mut done)) = (&read, done.lock()) {
                *done += read.bytes;
                progress(*done, total);
            }
            if let Ok(mut seen) = seen.lock() {
                seen.insert(which, read);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(work);
        }
        work();
    });
    let seen = seen.into_inner().unwrap_or_default();
    // A thread that ended early leaves a hole, and what was not read is not verified.
    if seen.len() != parts.len() {
        return Err(Error::None { path: parts[0].0.folder().to_owned() });
    }
    seen.into_values().collect()
}

/// One segment, read.
#[derive(Default)]
struct Seen {
    segment: u64,
    bytes: u64,
    entries: u64,
    checkpoints: Vec<(u64, Checkpoint)>,
    installation: String,
    named_key: Option<PublicKey>,
    first: Option<(u64, Hash)>,
    last: Option<(u64, Hash)>,
    /// Whether the last one's hash is as it was written.
    unsure: bool,
    archived: Option<(u64, String)>,
    /// Entries before the first checkpoint, and after the last.
    unsigned_before: u64,
    unsigned_after: u64,
    torn: u64,
    faults: Vec<Fault>,
    faults_not_listed: u64,
    missing: Vec<(u64, u64)>,
}

impl Seen {
    fn fault(&mut self, fault: Fault) {
        if self.faults.len() < MOST_FAULTS {
            self.faults.push(fault);
        } else {
            self.faults_not_listed += 1;
        }
    }

    /// Takes one number out of what is missing; whether it was.
    fn found_again(&mut self, number: u64) -> bool {
        let Some(place) = self.missing.iter().position(|(from, to)| (*from..=*to).contains(&number)) else {
            return false;
        };
        let (from, to) = self.missing.remove(place);
        let rest = [(from, number.wrapping_sub(1)), (number.saturating_add(1), to)];
        self.missing.extend(rest.into_iter().filter(|(from, to)| from <= to && *to != u64::MAX));
        true
    }
}

fn read_segment(place: &Place, segment: u64, key: Option<&PublicKey>) -> Result<Seen> {
    // Before the segment itself, for the same reason.
    let index = index::read(place, segment);
    let path = place.segment(segment);
    let log = options().open(&path).map_err(cannot("open", &path))?;
    let bytes = log.metadata().map_err(cannot("read", &path))?.len();
    let mut seen = Seen { segment, bytes, ..Seen::default() };
    let mut blocks = Blocks::from(0);
    let mut row = 0;
    // A line that can't be read stands for the entry that is missing after it, if one is.
    let mut unread: Option<u64> = None;
    each_line(&log, &path, 0, bytes, |piece| {
        row += 1;
        if !piece.whole {
            seen.torn = piece.line.len() as u64;
            return true;
        }
        let line = Line::read(piece.line);
        blocks.add(piece.offset, piece.line.len(), line.as_ref());
        let Some(line) = line else {
            if unread.is_none() {
                unread = Some(row);
            } else {
                let after = seen.last.map_or(0, |(number, _)| number);
                seen.fault(Fault::Foreign { segment, line: row, after });
            }
            seen.unsure = true;
            return true;
        };
        let expected = seen.last.map(|(number, _)| number + 1);
        if !line.holds() {
            let entry = expected.unwrap_or(line.number);
            if seen.last.is_none() {
                seen.first = Some((line.number, line.before));
            }
            seen.fault(Fault::Edited { entry, segment, line: row });
            // Either its hash or the rest of it was changed: the next one says which hash it had.
            (seen.last, seen.unsure) = (Some((entry, line.hash)), true);
            seen.entries += 1;
            seen.unsigned_after += 1;
            return true;
        }
        take(&mut seen, &line, row, expected, unread.take(), key);
        true
    })?;
    if let Some(row) = unread {
        let after = seen.last.map_or(0, |(number, _)| number);
        seen.fault(Fault::Edited { entry: after + 1, segment, line: row });
        seen.last = Some((after + 1, NO_HASH));
        seen.unsure = true;
    }
    // Less than all is slower, and no harm: the rest is looked at itself. Anything else hides entries.
    if !blocks.whole.starts_with(&index) {
        seen.fault(Fault::Index { segment });
    }
    let missing = std::mem::take(&mut seen.missing);
    for (from, to) in missing {
        seen.fault(Fault::Missing { from, to });
    }
    if seen.checkpoints.is_empty() {
        seen.unsigned_before = seen.unsigned_after;
    }
    Ok(seen)
}

/// An entry that is whole.
fn take(
    seen: &mut Seen,
    line: &Line<'_>,
    row: u64,
    expected: Option<u64>,
    unread: Option<u64>,
    key: Option<&PublicKey>,
) {
    let segment = seen.segment;
    let number = line.number;
    if let Some(expected) = expected {
        if number < expected {
            let fault = if seen.found_again(number) {
                Fault::Moved { entry: number, segment, line: row }
            } else {
                Fault::Repeated { entry: number, segment, line: row }
            };
            seen.fault(fault);
            return;
        }
        if number > expected {
            let mut from = expected;
            if let Some(row) = unread {
                seen.fault(Fault::Edited { entry: expected, segment, line: row });
                from += 1;
            }
            if from < number {
                seen.missing.push((from, number - 1));
            }
        } else if let Some(row) = unread {
            seen.fault(Fault::Foreign { segment, line: row, after: expected - 1 });
        } else if !seen.unsure && seen.last.is_some_and(|(_, hash)| hash != line.before) {
            seen.fault(Fault::Replaced { entry: expected - 1, segment });
        }
    } else {
        if let Some(row) = unread {
            seen.fault(Fault::Edited { entry: number.saturating_sub(1), segment, line: row });
            seen.first = Some((number.saturating_sub(1), NO_HASH));
        }
        seen.first = seen.first.or(Some((number, line.before)));
    }
    (seen.last, seen.unsure) = (Some((number, line.hash)), false);
    seen.entries += 1;
    seen.unsigned_after += 1;
    let Some(fields) = line.fields().filter(|fields| fields.kind.starts_with(b"ledger.")) else { return };
    let data =
        || serde_json::from_slice::<serde_json::Value>(line.json).map(|json| json["data"].clone()).unwrap_or_default();
    match std::str::from_utf8(fields.kind).unwrap_or_default() {
        kinds::CHECKPOINT => {
            if seen.checkpoints.is_empty() {
                seen.unsigned_before = seen.unsigned_after;
            }
            let unsigned = seen.unsigned_after;
            if unsigned > MOST_UNSIGNED && !seen.checkpoints.is_empty() {
                seen.fault(Fault::Unsigned { from: number - unsigned + 1, to: number - 1 });
            }
            seen.unsigned_after = 0;
            match serde_json::from_value::<Checkpoint>(data()) {
                Ok(checkpoint) => {
                    if let Some(why) = wrong(&checkpoint, line, key) {
                        seen.fault(Fault::Signature { entry: number, segment, why });
                    }
                    seen.checkpoints.push((number, checkpoint));
                }
                Err(error) => seen.fault(Fault::Signature { entry: number, segment, why: error.to_string() }),
            }
        }
        kinds::BEGUN | kinds::SEGMENT => {
            let data = data();
            seen.installation = data["installation"].as_str().unwrap_or_default().to_owned();
            seen.named_key = data["public_key"].as_str().and_then(|pem| PublicKey::from_pem(pem).ok());
        }
        kinds::ARCHIVED => {
            let data = data();
            let head = data["head"].as_str().unwrap_or_default().to_owned();
            seen.archived = data["to"].as_u64().map(|to| (to, head)).max(seen.archived.take());
        }
        _ => {}
    }
}

/// What is wrong with a checkpoint, as far as it can be told here.
fn wrong(checkpoint: &Checkpoint, line: &Line<'_>, key: Option<&PublicKey>) -> Option<String> {
    if checkpoint.entries != line.number - 1 {
        return Some(format!("it is about entry {}, not about the one before it", checkpoint.entries));
    }
    if checkpoint.head != hex(&line.before) {
        return Some("it signs another chain than the one it stands in".to_owned());
    }
    match key {
        Some(key) if !checkpoint.holds(key) => Some(format!("key {} did not sign it", key.id())),
        _ => None,
    }
}

fn join(seen: &[Seen], key: Option<PublicKey>, noted: Option<Head>, outside: &Outside) -> Soundness {
    let mut report = Soundness::default();
    let mut faults = Vec::new();
    let mut last: Option<(u64, Hash, bool, u64)> = None;
    let mut unsigned = 0;
    // Without a key beside it, its first entry's is better than none: a chain that was made anew must then say so there.
    let key = key.or_else(|| seen.first().and_then(|first| first.named_key.clone()));
    let mut anchored: BTreeMap<u64, &str> = BTreeMap::new();
    let archived = seen.iter().filter_map(|seen| seen.archived.as_ref()).max();
    for part in seen {
        if report.installation.is_empty() {
            report.installation.clone_from(&part.installation);
        }
        report.segments += 1;
        report.entries += part.entries;
        report.checkpoints += part.checkpoints.len() as u64;
        report.faults_not_listed += part.faults_not_listed;
        faults.extend(part.faults.iter().cloned());
        anchored.extend(part.checkpoints.iter().map(|(_, checkpoint)| (checkpoint.entries, checkpoint.head.as_str())));
        report.torn_bytes = part.torn;
        if let Some((number, before)) = part.first {
            match last {
                None => {
                    report.first = number;
                    let known = archived.is_some_and(|(to, head)| to + 1 == number && *head == hex(&before));
                    if known {
                        report.archived = number - 1;
                    } else if number > 1 {
                        faults.push(Fault::Missing { from: 1, to: number - 1 });
                    } else if before != NO_HASH {
                        faults.push(Fault::Edited { entry: number, segment: part.segment, line: 1 });
                    }
                }
                Some((end, hash, unsure, segment)) => {
                    if number > end + 1 {
                        faults.push(Fault::Missing { from: end + 1, to: number - 1 });
                    } else if number <= end {
                        faults.push(Fault::Repeated { entry: number, segment: part.segment, line: 1 });
                    } else if !unsure && before != NO_HASH && hash != before {
                        faults.push(Fault::Replaced { entry: end, segment });
                    }
                }
            }
        }
        if let Some((number, hash)) = part.last {
            last = Some((number, hash, part.unsure, part.segment));
        }
        unsigned += part.unsigned_before;
        if unsigned > MOST_UNSIGNED {
            let to = part.checkpoints.first().or(None).map_or(last.map_or(0, |last| last.0), |(number, _)| number - 1);
            faults.push(Fault::Unsigned { from: (to + 1).saturating_sub(unsigned), to });
        }
        if !part.checkpoints.is_empty() {
            unsigned = part.unsigned_after;
        }
    }
    let end = last.map_or(0, |(number, ..)| number);
    if let Some((_, hash, ..)) = last {
        report.head = hex(&hash);
    }
    if let Some(noted) = noted.filter(|noted| noted.number > end) {
        faults.push(Fault::Truncated { from: end + 1, to: noted.number });
    }
    for checkpoint in &outside.anchored {
        let entry = checkpoint.entries;
        if key.as_ref().is_some_and(|key| !checkpoint.holds(key)) || checkpoint.installation != report.installation {
            faults.push(Fault::ForeignAnchor { entry });
        } else if entry >= end {
            faults.push(Fault::RolledBack { anchored: entry, last: end });
        } else if entry + 1 < report.first {
            // It is about what lies in an archive.
        } else if anchored.get(&entry) == Some(&checkpoint.head.as_str()) {
            report.anchored += 1;
        } else {
            faults.push(Fault::Rewritten { entry });
        }
    }
    faults.sort();
    faults.dedup();
    report.faults_not_listed += faults.len().saturating_sub(MOST_FAULTS) as u64;
    faults.truncate(MOST_FAULTS);
    report.key = key.map(|key| key.id()).unwrap_or_default();
    (report.last, report.unsigned, report.faults) = (end, unsigned, faults);
    report
}
