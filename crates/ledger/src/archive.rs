//! Moves whole segments elsewhere. They still verify there, and the record says up to where it was moved.

use std::path::Path;

use model::Archived;
use serde_json::json;

use crate::error::{Result, cannot};
use crate::kinds;
use crate::line::{Draft, Line, hex};
use crate::place::{Place, options};
use crate::segments::each_line;
use crate::writer::{Durable, Ledger};

impl Ledger {
    /// Every segment whose entries are all older, but for the one that is written to.
    pub fn archive(&self, older_than: &str, folder: &Path, only_tell: bool) -> Result<Archived> {
        let target = Place::new(folder.to_owned());
        if !only_tell {
            target.make()?;
        }
        let mut archived = Archived::default();
        let mut segments = self.place.segments()?;
        segments.pop();
        for segment in segments {
            let path = self.place.segment(segment);
            let Some(last) = last_entry(&path)? else { break };
            if last.at.as_str() >= older_than {
                break;
            }
            archived.bytes += std::fs::metadata(&path).map_err(cannot("read", &path))?.len();
            archived.to = last.number;
            archived.segments.push(target.segment(segment));
            if only_tell {
                continue;
            }
            // Said first: what is then found in both places is one that was being moved.
            let data = json!({"segment": segment, "to": last.number, "head": last.hash});
            let draft = Draft::now(kinds::ARCHIVED, data.to_string());
            self.append(&[draft], Durable { on_disk: true, checkpoint: true, last_words: false })?;
            copy(&path, &target.segment(segment))?;
            target.sync()?;
            std::fs::remove_file(&path).map_err(cannot("move", &path))?;
            // Made from the segment alone, and of no use without it.
            std::fs::remove_file(self.place.index(segment)).ok();
        }
        if let (false, Ok(key)) = (only_tell, self.public_key()) {
            crate::place::put(&target.public_key(), key.pem().as_bytes(), 0o644)?;
        }
        Ok(archived)
    }
}

struct Last {
    number: u64,
    hash: String,
    at: String,
}

fn last_entry(path: &Path) -> Result<Option<Last>> {
    let log = options().open(path).map_err(cannot("open", path))?;
    let size = log.metadata().map_err(cannot("read", path))?.len();
    let mut last: Option<Last> = None;
    // The end of it is enough, unless one entry is larger.
    for from in [size.saturating_sub(64 << 10), 0] {
        each_line(&log, path, from, size, |piece| {
            let line = Line::read(piece.line).filter(Line::holds);
            if let Some((line, fields)) = line.and_then(|line| Some((line, line.fields()?))) {
                let at = String::from_utf8_lossy(fields.at).into_owned();
                last = Some(Last { number: line.number, hash: hex(&line.hash), at });
            }
            true
        })?;
        if last.is_some() {
            break;
        }
    }
    Ok(last)
}

/// The copy is whole and on disk before the other is gone.
fn copy(from: &Path, to: &Path) -> Result<()> {
    let bytes = std::fs::read(from).map_err(cannot("read", from))?;
    crate::place::put(to, &bytes, 0o600)?;
    let copied = std::fs::read(to).map_err(cannot("read", to))?;
    if copied != bytes {
        return Err(cannot("copy to", to)(std::io::Error::other("what is there is not what was written")));
    }
    Ok(())
}
