//! Where the record ends, found by reading it: after a crash, or when the note of it is gone.

use serde_json::{Value, json};

use crate::error::{Result, cannot};
use crate::head::Head;
use crate::line::{Draft, Line, hex};
use crate::place::{Place, options};
use crate::segments::each_line;
use crate::writer::End;
use crate::{index, kinds};

/// Whoever calls holds the lock. `noted`: where the last writer said that it ended.
pub fn end(place: &Place, noted: Option<Head>) -> Result<End> {
    let mut head = Head::NONE;
    let mut torn = None;
    // The last one may have been begun without an entry.
    for segment in place.segments()?.into_iter().rev() {
        let found = read(place, segment)?;
        if torn.is_none() {
            torn = found.torn;
        }
        let empty = found.head.number == 0;
        match head.segment {
            0 => head = found.head,
            _ => head = Head { segment: head.segment, length: head.length, block: head.block, ..found.head },
        }
        if !empty {
            break;
        }
    }
    let mut said = Vec::new();
    let mut lost = None;
    if let Some(noted) = noted.filter(|noted| noted.number > head.number) {
        // They were there: the chain goes on from them, so that what is missing can be told.
        lost = Some((head.number + 1, noted.number));
        let Head { installation, number, hash, segment, .. } = noted;
        head = Head { installation, number, hash, segment: head.segment.max(segment), ..head };
        if !place.segment(head.segment).exists() {
            (head.length, head.block) = (0, Head::NONE.block);
        }
    }
    if torn.is_some() || lost.is_some() {
        let (bytes, digest) = torn.map_or((0, Value::Null), |(bytes, digest)| (bytes, digest.into()));
        let data = json!({
            "torn_bytes": bytes, "torn_blake3": digest,
            "lost_from": lost.map(|(from, _)| from), "lost_to": lost.map(|(_, to)| to),
        });
        said.push(Draft::now(kinds::RECOVERED, data.to_string()));
    }
    Ok(End { head, said })
}

struct Found {
    head: Head,
    /// How many bytes of an entry that was never whole were at the end, and their digest.
    torn: Option<(u64, String)>,
}

fn read(place: &Place, segment: u64) -> Result<Found> {
    let path = place.segment(segment);
    let log = options().write(true).open(&path).map_err(cannot("open", &path))?;
    let size = log.metadata().map_err(cannot("read", &path))?.len();
    let mut head = Head { segment, length: size, ..Head::NONE };
    let mut torn = None;
    each_line(&log, &path, 0, size, |piece| {
        if !piece.whole {
            head.length = piece.offset;
            torn = Some((piece.line.len() as u64, hex(blake3::hash(piece.line).as_bytes())));
            return true;
        }
        // What does not hold stays where it is: `verify` names it, and the chain goes on from what does.
        let Some(line) = Line::read(piece.line).filter(Line::holds) else { return true };
        (head.number, head.hash) = (line.number, line.hash);
        let kind = line.fields().map(|fields| fields.kind).unwrap_or_default();
        head.unsigned = if kind == kinds::CHECKPOINT.as_bytes() { 0 } else { head.unsigned + 1 };
        if head.installation.is_empty() && [kinds::BEGUN, kinds::SEGMENT].iter().any(|first| kind == first.as_bytes()) {
            let json: Value = serde_json::from_slice(line.json).unwrap_or_default();
            head.installation = json["data"]["installation"].as_str().unwrap_or_default().to_owned();
        }
        true
    })?;
    if torn.is_some() {
        // It was never an entry: nobody was told that it was written.
        log.set_len(head.length).map_err(cannot("write", &path))?;
    }
    head.block = index::rebuild(place, segment, &log, head.length)?;
    Ok(Found { head, torn })
}
