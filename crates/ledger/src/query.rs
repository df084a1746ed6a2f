//! Looks entries up, the newest first, and passes over blocks that can't have any.

use std::fs::File;
use std::path::PathBuf;

use model::{Entry, EntryQuery};

use crate::error::{Result, cannot};
use crate::index::{self, Summary};
use crate::line::{Fields, Line, hex, quoted};
use crate::place::options;
use crate::segments::each_line;
use crate::writer::Ledger;

impl Ledger {
    /// The newest `most`, in the order in which they were written.
    pub fn newest(&self, query: &EntryQuery, most: usize) -> Result<Vec<Entry>> {
        let asked = Asked::new(query);
        // The newest first.
        let mut found: Vec<Entry> = Vec::new();
        for segment in self.place.segments()?.into_iter().rev() {
            let Some(open) = self.open(segment)? else { continue };
            for (from, to) in open.parts(&asked).into_iter().rev() {
                if found.len() >= most {
                    break;
                }
                let mut matching = Vec::new();
                open.each(&asked, from, to, |entry| {
                    matching.push(entry);
                    true
                })?;
                let missing = most - found.len();
                found.extend(matching.into_iter().rev().take(missing));
            }
        }
        found.reverse();
        Ok(found)
    }

    /// All of them, the oldest first, until `each` says no.
    pub fn each(&self, query: &EntryQuery, mut each: impl FnMut(Entry) -> bool) -> Result<()> {
        let asked = Asked::new(query);
        for segment in self.place.segments()? {
            let Some(open) = self.open(segment)? else { continue };
            for (from, to) in open.parts(&asked) {
                if !open.each(&asked, from, to, &mut each)? {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn open(&self, segment: u64) -> Result<Option<Segment>> {
        let path = self.place.segment(segment);
        let log = match options().open(&path) {
            // It was moved to an archive while we looked.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            log => log.map_err(cannot("open", &path))?,
        };
        let size = log.metadata().map_err(cannot("read", &path))?.len();
        let blocks = index::read(&self.place, segment).into_iter();
        let blocks = blocks.take_while(|block| block.offset + block.length <= size).collect();
        Ok(Some(Segment { path, log, size, blocks }))
    }
}

/// A segment with its index.
struct Segment {
    path: PathBuf,
    log: File,
    size: u64,
    blocks: Vec<Summary>,
}

impl Segment {
    /// Where entries may be that are asked for, in their order.
    fn parts(&self, asked: &Asked<'_>) -> Vec<(u64, u64)> {
        let indexed = self.blocks.last().map_or(0, |block| block.offset + block.length);
        let blocks = self.blocks.iter().filter(|block| asked.may_be_in(block));
        let blocks = blocks.map(|block| (block.offset, block.offset + block.length));
        blocks.chain((indexed < self.size).then_some((indexed, self.size))).collect()
    }

    fn each(&self, asked: &Asked<'_>, from: u64, to: u64, mut each: impl FnMut(Entry) -> bool) -> Result<bool> {
        let mut more = true;
        each_line(&self.log, &self.path, from, to, |piece| {
            if let Some(entry) = asked.entry(piece.line) {
                more = each(entry);
            }
            more
        })?;
        Ok(more)
    }
}

/// A query with its words as they stand in entries.
struct Asked<'a> {
    query: &'a EntryQuery,
    run: Option<String>,
    user: Option<String>,
    agent: Option<String>,
}

impl<'a> Asked<'a> {
    fn new(query: &'a EntryQuery) -> Asked<'a> {
        let form = |value: &Option<String>| value.as_deref().map(quoted);
        Asked { query, run: form(&query.run), user: form(&query.user), agent: form(&query.agent) }
    }

    fn may_be_in(&self, block: &Summary) -> bool {
        let EntryQuery { denied, kinds, since, until, run, .. } = self.query;
        // Only whole ids are in an index.
        let whole_run = self.run.as_ref().filter(|_| run.as_ref().is_some_and(|run| run.len() == WHOLE_RUN));
        block.last > self.query.after
            && (!denied || block.denied > 0)
            && (kinds.is_empty() || kinds.iter().any(|kind| block.may_have_kind(kind)))
            && since.as_ref().is_none_or(|since| block.latest[..] >= *since.as_bytes())
            && until.as_ref().is_none_or(|until| block.earliest[..] <= *until.as_bytes())
            && whole_run.is_none_or(|run| block.may_have_name(b'r', run.as_bytes()))
            && self.user.as_ref().is_none_or(|user| block.may_have_name(b'u', user.as_bytes()))
            && self.agent.as_ref().is_none_or(|agent| block.may_have_name(b'a', agent.as_bytes()))
    }

    fn entry(&self, line: &[u8]) -> Option<Entry> {
        let line = Line::read(line)?;
        if line.number <= self.query.after || !self.wants(&line.fields()?) {
            return None;
        }
        entry(&line)
    }

    fn wants(&self, fields: &Fields<'_>) -> bool {
        let EntryQuery { denied, kinds, except, since, until, .. } = self.query;
        let same = |wanted: &Option<String>, is: Option<&[u8]>| {
            wanted.as_ref().is_none_or(|wanted| is == Some(wanted.as_bytes()))
        };
        let run = self.run.as_deref().and_then(|run| run.strip_suffix('"'));
        (!denied || fields.denied)
            && (kinds.is_empty() || kinds.iter().any(|kind| is_kind(kind.as_bytes(), fields.kind)))
            && !except.iter().any(|kind| is_kind(kind.as_bytes(), fields.kind))
            && since.as_ref().is_none_or(|since| fields.at >= since.as_bytes())
            && until.as_ref().is_none_or(|until| fields.at <= until.as_bytes())
            && run.is_none_or(|run| fields.run.is_some_and(|is| is.starts_with(run.as_bytes())))
            && same(&self.user, fields.user)
            && same(&self.agent, fields.agent)
    }
}

pub fn entry(line: &Line<'_>) -> Option<Entry> {
    let mut entry: Entry = serde_json::from_slice(line.json).ok()?;
    entry.hash = hex(&line.hash);
    Some(entry)
}

/// Digits of the id of a run.
const WHOLE_RUN: usize = 32;

fn is_kind(wanted: &[u8], is: &[u8]) -> bool {
    is.strip_prefix(wanted).is_some_and(|rest| rest.is_empty() || rest.starts_with(b"."))
}
