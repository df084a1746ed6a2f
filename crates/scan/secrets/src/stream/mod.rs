//! Where secrets are in a stream, however it is cut into pieces.
//!
//! What is a secret depends on the stream alone: every place where a literal of a value stands, and every place where a
//! format's keyword stands and its expression matches the rest of the line, within its window. Places that overlap are one.
//! What comes too early to be judged waits, and so does what may still become part of it; nothing else does.

mod block;
mod cluster;

use std::sync::Arc;

use crate::formats::{BEFORE, Format, Formats};
use crate::needles::{Breaks, Needle, Needles, Reach, UNNOTICED, WRAPPED};
use crate::values::{SHORTEST, Values};
use block::Block;
use cluster::{Cluster, Extension, Interval};

/// Larger pieces are taken in parts: the buffer stays in the cache.
const PART: usize = 64 * 1024;
/// Bytes that are kept though they are given out: what stands before a keyword or a break may matter.
const CONTEXT: usize = BEFORE + WRAPPED + 2 * UNNOTICED;

/// What is looked for.
pub(crate) struct Index {
    needles: Needles,
    tags: Vec<Tag>,
    names: Vec<String>,
    formats: Option<Arc<Vec<Format>>>,
}

#[derive(Clone, Copy)]
enum Tag {
    Value { name: u32, open_end: bool },
    Format(u32),
}

/// Who says that something is a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Label {
    Value(u32),
    Format(u32),
}

/// Gets a stream in its order: what may be shown, and where something is left out.
pub(crate) trait Sink {
    fn text(&mut self, bytes: &[u8]);
    fn secret(&mut self, start: u64, end: u64, label: Label);
}

pub(crate) struct Stream {
    index: Arc<Index>,
    /// The end of what was given; its first byte has the number `base`.
    buffer: Vec<u8>,
    base: u64,
    /// Up to here literals were looked for, and up to here everything is given out or left out.
    scanned: usize,
    cursor: usize,
    /// Up to here ends of lines were looked at.
    folded: usize,
    pending: Vec<Pending>,
    hits: Vec<(usize, u32, usize)>,
    intervals: Vec<Interval>,
    cluster: Option<Cluster>,
}

/// Something that can't be judged yet.
#[derive(Debug)]
struct Pending {
    start: usize,
    what: What,
    /// The first byte that must wait for it, once that is known.
    hold: Option<usize>,
}

#[derive(Debug)]
enum What {
    /// A literal that goes on as far as the buffer does.
    Literal(u32),
    /// A keyword whose line goes on.
    Keyword(u32),
    Block(u32, Block),
}

impl Index {
    pub fn of(values: &Values, formats: Option<&Formats>) -> Index {
        let mut list = Vec::new();
        let mut tags = Vec::new();
        for form in &values.forms {
            let tag = tags.len() as u32;
            tags.push(Tag::Value { name: form.name, open_end: form.open_end });
            let bytes = form.bytes.clone().into_boxed_slice();
            list.push(Needle { bytes, breaks: form.breaks, tag, held: true, starts_word: false });
        }
        for (at, format) in formats.iter().flat_map(|formats| formats.iter()).enumerate() {
            let tag = tags.len() as u32;
            tags.push(Tag::Format(at as u32));
            for word in &format.keywords {
                list.push(Needle {
                    bytes: word.as_bytes().into(),
                    breaks: Breaks::Never,
                    tag,
                    held: !format.has_lead(),
                    starts_word: format.starts_word(),
                });
            }
        }
        Index {
            needles: Needles::of(list),
            tags,
            names: values.names().to_vec(),
            formats: formats.map(|formats| Arc::clone(formats.list())),
        }
    }

    pub fn name(&self, label: Label) -> &str {
        match label {
            Label::Value(name) => self.names.get(name as usize).map_or("secret", String::as_str),
            Label::Format(format) => self.format(format).map_or("secret", |format| &format.id),
        }
    }

    /// Nothing is looked for.
    pub fn is_empty(&self) -> bool {
        self.tags.is_empty()
    }

    /// Which of two that overlap gives the name: the lower one.
    pub fn precedence(&self, label: Label, length: u64) -> (u8, u64, Label) {
        let rank = match label {
            Label::Value(_) => 0,
            Label::Format(format) => self.format(format).map_or(u8::MAX, |format| format.rank),
        };
        (rank, u64::MAX - length, label)
    }

    pub fn format(&self, at: u32) -> Option<&Format> {
        self.formats.as_ref().and_then(|formats| formats.get(at as usize))
    }
}

impl Stream {
    pub fn new(index: Arc<Index>) -> Stream {
        Stream {
            index,
            buffer: Vec::new(),
            base: 0,
            scanned: 0,
            cursor: 0,
            folded: 0,
            pending: Vec::new(),
            hits: Vec::new(),
            intervals: Vec::new(),
            cluster: None,
        }
    }

    pub fn push(&mut self, bytes: &[u8], sink: &mut impl Sink) {
        for part in bytes.chunks(PART) {
            let new = self.buffer.len();
            self.buffer.extend_from_slice(part);
            self.work(new, false, sink);
        }
    }

    /// Nothing follows: what waits is judged by what there is. Afterwards a new stream can begin.
    pub fn finish(&mut self, sink: &mut impl Sink) {
        let new = self.buffer.len();
        self.work(new, true, sink);
        *self = Stream::new(Arc::clone(&self.index));
    }

    pub fn index(&self) -> &Arc<Index> {
        &self.index
    }

    fn work(&mut self, new: usize, last: bool, sink: &mut impl Sink) {
        self.judge_pending(new, last);
        self.look_for_literals(last);
        // Judged only at the end, a literal may turn out to be a keyword, and that to be followed by a block.
        let frontier = if last { self.buffer.len() } else { self.frontier() };
        self.give_out(frontier, last, sink);
        self.forget();
    }

    fn judge_pending(&mut self, new: usize, last: bool) {
        if self.pending.is_empty() {
            return;
        }
        let breaks = memchr::memchr2(b'\n', b'\r', &self.buffer[new..]).is_some();
        for pending in std::mem::take(&mut self.pending) {
            let goes_on = match &pending.what {
                What::Keyword(format) => {
                    let window = self.index.format(*format).map_or(0, |format| format.window);
                    !breaks && !last && pending.start + window > self.buffer.len()
                }
                _ => false,
            };
            if goes_on {
                self.pending.push(pending);
            } else {
                self.judge(pending, last);
            }
        }
    }

    fn look_for_literals(&mut self, last: bool) {
        let mut hits = std::mem::take(&mut self.hits);
        self.index.needles.each(&self.buffer, self.scanned, |at, needle, offset| hits.push((at, needle, offset)));
        self.index.needles.each_folded(&self.buffer, self.folded, |start, needle| hits.push((start, needle, 0)));
        self.folded = self.buffer.len();
        self.scanned = (self.buffer.len() + 1).saturating_sub(crate::needles::GRAM).max(self.scanned);
        for (at, number, offset) in hits.drain(..) {
            let needle = self.index.needles.get(number);
            let Some(start) = self.index.needles.beginning(&self.buffer, at, needle, offset) else { continue };
            self.judge(Pending { start, what: What::Literal(number), hold: None }, last);
        }
        self.hits = hits;
    }

    fn judge(&mut self, pending: Pending, last: bool) {
        match pending.what {
            What::Literal(number) => self.judge_literal(pending.start, number, last),
            What::Keyword(format) => self.judge_keyword(pending.start, format, last),
            What::Block(format, block) => self.judge_block(format, block, last),
        }
    }

    fn judge_literal(&mut self, start: usize, number: u32, last: bool) {
        let needle = self.index.needles.get(number);
        let tag = self.index.tags[needle.tag as usize];
        match (self.index.needles.reach(&self.buffer, start, needle), tag) {
            (Reach::No, _) => {}
            (Reach::Whole(end), Tag::Value { name, open_end }) => {
                let more = open_end.then_some(Extension::Base64 { at: end, left: 3 });
                self.intervals.push(Interval { start, end, label: Label::Value(name), rank: 0, more });
            }
            (Reach::Whole(_), Tag::Format(format)) => self.judge_keyword(start, format, last),
            (Reach::Partly(_), _) if !last => {
                let hold = if needle.held { Some(start) } else { Some(usize::MAX) };
                self.pending.push(Pending { start, what: What::Literal(number), hold });
            }
            // Cut by the end of the stream: half of it is too much.
            (Reach::Partly(count), Tag::Value { name, .. }) if count >= SHORTEST && count * 2 >= needle.bytes.len() => {
                let end = self.buffer.len();
                self.intervals.push(Interval { start, end, label: Label::Value(name), rank: 0, more: None });
            }
            (Reach::Partly(_), _) => {}
        }
    }

    fn judge_keyword(&mut self, at: usize, number: u32, last: bool) {
        let index = Arc::clone(&self.index);
        let Some(format) = index.format(number).filter(|format| format.may_be(&self.buffer[at..])) else { return };
        let most = at.saturating_add(format.window).min(self.buffer.len());
        let line = memchr::memchr2(b'\n', b'\r', &self.buffer[at..most]);
        let is_cut = line.is_none() && most == at + format.window;
        if line.is_none() && !is_cut && !last {
            self.pending.push(Pending { start: at, what: What::Keyword(number), hold: None });
            return;
        }
        let end = line.map_or(most, |line| at + line);
        let Some((start, secret_end)) = format.secret_at(&self.buffer, at, end) else { return };
        if format.block {
            self.judge_block(number, Block::after(secret_end), last);
            return;
        }
        // A token that is longer than the window goes on.
        let more = (is_cut && secret_end == end).then_some(Extension::Token { at: end });
        let label = Label::Format(number);
        self.intervals.push(Interval { start, end: secret_end, label, rank: format.rank, more });
    }

    fn judge_block(&mut self, number: u32, mut block: Block, last: bool) {
        block.read(&self.buffer, last);
        let (start, end) = (block.start, block.end);
        if block.is_body() {
            let more = (!block.finished).then_some(Extension::Block(block));
            self.intervals.push(Interval { start, end, label: Label::Format(number), rank: 1, more });
        } else if !block.finished {
            self.pending.push(Pending { start, what: What::Block(number, block), hold: Some(start) });
        }
    }

    /// The first byte that may still become part of something that is not known yet.
    fn frontier(&mut self) -> usize {
        let mut frontier = self.index.needles.may_begin(&self.buffer);
        for pending in &mut self.pending {
            let hold = pending.hold.unwrap_or_else(|| match &pending.what {
                What::Keyword(format) => {
                    let format = self.index.format(*format);
                    let start = format.map_or(pending.start, |format| format.may_start(&self.buffer, pending.start));
                    if start < self.buffer.len() {
                        pending.hold = Some(start);
                    }
                    start
                }
                _ => pending.start,
            });
            frontier = frontier.min(hold);
        }
        frontier
    }

    fn give_out(&mut self, frontier: usize, last: bool, sink: &mut impl Sink) {
        // The first one last, where it is taken from.
        self.intervals.sort_by_key(|interval| std::cmp::Reverse(interval.start));
        loop {
            if let Some(cluster) = &mut self.cluster {
                cluster.extend(&self.buffer, last);
                self.cursor = self.cursor.max(cluster.end());
                if let Some(interval) = self.intervals.pop_if(|interval| interval.start < cluster.end()) {
                    cluster.take(interval, self.base);
                    continue;
                }
                if !cluster.goes_on() && cluster.end() <= frontier {
                    sink.secret(cluster.start, self.base + cluster.end() as u64, cluster.label());
                    self.cluster = None;
                    continue;
                }
                return;
            }
            let next = self.intervals.pop_if(|interval| interval.start <= frontier);
            let text_end = next.as_ref().map_or(frontier, |interval| interval.start);
            if text_end > self.cursor {
                sink.text(&self.buffer[self.cursor..text_end]);
                self.cursor = text_end;
            }
            let Some(interval) = next else { return };
            self.cluster = Some(Cluster::of(interval, self.base));
        }
    }

    /// Drops what nobody will look at again.
    fn forget(&mut self) {
        let waiting = self.pending.iter().map(|pending| pending.start).min();
        let intervals = self.intervals.iter().map(|interval| interval.start).min();
        let cluster = self.cluster.as_ref().map(Cluster::needs);
        let needed =
            [waiting, intervals, cluster, Some(self.scanned)].into_iter().flatten().fold(self.cursor, usize::min);
        let gone = needed.saturating_sub(CONTEXT);
        // Moving costs as much as what stays: not for every byte that comes alone.
        if gone < self.buffer.len() / 2 || gone == 0 {
            return;
        }
        self.buffer.drain(..gone);
        self.base += gone as u64;
        self.scanned -= gone;
        self.cursor -= gone;
        self.folded -= gone;
        for pending in &mut self.pending {
            pending.start -= gone;
            pending.hold = pending.hold.map(|hold| if hold == usize::MAX { hold } else { hold.saturating_sub(gone) });
            if let What::Block(_, block) = &mut pending.what {
                block.moved(gone);
            }
        }
        for interval in &mut self.intervals {
            interval.moved(gone);
        }
        if let Some(cluster) = &mut self.cluster {
            cluster.moved(gone);
        }
    }
}
