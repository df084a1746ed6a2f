//! A stream without its secrets, as early as possible.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::formats::Formats;
use crate::stream::{Index, Label, Sink, Stream};
use crate::values::Values;

/// Takes secrets out of a stream: known values in all their forms, and what has a known format.
///
/// What comes out does not depend on how the stream is cut into pieces. Held back is only what may still become a secret.
pub struct Redactor {
    stream: Stream,
    counts: BTreeMap<Label, u64>,
}

/// How often something was taken out, by the name of a value or the id of a format.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Redacted {
    pub counts: BTreeMap<String, u64>,
}

impl Redacted {
    pub fn total(&self) -> u64 {
        self.counts.values().sum()
    }
}

impl Redactor {
    pub fn new(values: &Values, formats: Option<&Formats>) -> Redactor {
        match formats {
            Some(formats) if values.is_empty() => Redactor::over(Arc::clone(formats.index())),
            _ => Redactor::over(Arc::new(Index::of(values, formats))),
        }
    }

    /// One for another stream that looks for the same; costs nothing.
    pub fn another(&self) -> Redactor {
        Redactor::over(Arc::clone(self.stream.index()))
    }

    fn over(index: Arc<Index>) -> Redactor {
        Redactor { stream: Stream::new(index), counts: BTreeMap::new() }
    }

    /// Appends to `out` what may be shown.
    pub fn push(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        let index = Arc::clone(self.stream.index());
        self.stream.push(bytes, &mut Output { out, index: &index, counts: &mut self.counts });
    }

    /// The rest, and what was taken out of all of it. Afterwards another stream can begin.
    pub fn finish(&mut self, out: &mut Vec<u8>) -> Redacted {
        let index = Arc::clone(self.stream.index());
        self.stream.finish(&mut Output { out, index: &index, counts: &mut self.counts });
        let mut redacted = Redacted::default();
        for (label, count) in std::mem::take(&mut self.counts) {
            *redacted.counts.entry(index.name(label).to_owned()).or_default() += count;
        }
        redacted
    }

    /// How many bytes wait for what follows.
    pub fn held(&self) -> usize {
        self.stream.held()
    }
}

struct Output<'a> {
    out: &'a mut Vec<u8>,
    index: &'a Index,
    counts: &'a mut BTreeMap<Label, u64>,
}

impl Sink for Output<'_> {
    fn text(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    fn secret(&mut self, _: u64, _: u64, label: Label) {
        *self.counts.entry(label).or_default() += 1;
        self.out.extend_from_slice(b"[redacted:");
        self.out.extend_from_slice(self.index.name(label).as_bytes());
        self.out.push(b']');
    }
}
