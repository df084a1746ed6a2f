//! Entries in the form that is wanted, gathered until there are enough of them for one message.

use export::metrics::Metrics;
use export::traces::OpenRuns;
use export::{Origin, cloud_events, ocsf, syslog};
use ledger::Ledger;
use model::{Entry, EntryQuery, ExportFormat, Trouble};
use serde_json::Value;

use crate::records::trouble;

const MOST_ITEMS: usize = 500;
/// Of entries as they are in the record, roughly. What comes out is a few times as much.
const MOST_BYTES: usize = 1 << 20;

/// What goes together.
pub struct Batch {
    pub items: Vec<Value>,
    /// The number of the newest entry that it is about.
    pub last: u64,
}

impl Batch {
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }
}

pub struct Shape {
    format: ExportFormat,
    items: Vec<Value>,
    bytes: usize,
    last: Option<u64>,
    runs: OpenRuns,
    metrics: Metrics,
}

impl Shape {
    pub fn of(format: ExportFormat) -> Shape {
        let (runs, metrics) = (OpenRuns::default(), Metrics::default());
        Shape { format, items: Vec::new(), bytes: 0, last: None, runs, metrics }
    }

    pub fn take(&mut self, origin: &Origin, entry: Entry) {
        self.last = Some(entry.number);
        self.bytes += size(&entry.data);
        match self.format {
            ExportFormat::Ndjson => self.items.extend(serde_json::to_value(&entry).ok()),
            ExportFormat::Ocsf => self.items.push(ocsf::event(origin, &entry)),
            ExportFormat::CloudEvents => self.items.push(cloud_events::event(origin, &entry)),
            ExportFormat::Syslog => self.items.push(syslog::line(origin, &entry).into()),
            ExportFormat::Otlp => self.items.extend(self.runs.observe(entry)),
            ExportFormat::Prometheus => self.metrics.observe(&entry),
        }
    }

    pub fn is_full(&self) -> bool {
        // Metrics are one text in the end, however many entries they count.
        self.format != ExportFormat::Prometheus && (self.items.len() >= MOST_ITEMS || self.bytes >= MOST_BYTES)
    }

    /// What was gathered since the last one; nothing, if there was no entry.
    pub fn batch(&mut self) -> Option<Batch> {
        let last = self.last.take()?;
        self.bytes = 0;
        let mut items = std::mem::take(&mut self.items);
        if self.format == ExportFormat::Prometheus {
            items.push(self.metrics.text().into());
        }
        Some(Batch { items, last })
    }

    /// There will be no more: what waited for an end is told without one.
    pub fn end(&mut self) {
        self.items.extend(self.runs.rest());
        // A record without any such entry has metrics too: they say nothing happened.
        if self.format == ExportFormat::Prometheus || !self.items.is_empty() {
            self.last.get_or_insert(0);
        }
    }

    /// Runs whose entries were taken, and not told yet.
    pub fn open_runs(&self) -> Vec<String> {
        self.runs.names().map(str::to_owned).collect()
    }

    /// Reads again what an earlier one had taken of runs that had no end then.
    pub fn resume(&mut self, ledger: &Ledger, query: &EntryQuery, runs: &[String]) -> Result<(), Trouble> {
        for run in runs {
            let query_of_run = EntryQuery { run: Some(run.clone()), after: 0, ..query.clone() };
            let read = ledger.each(&query_of_run, |entry| {
                let old = entry.number <= query.after;
                if old {
                    self.items.extend(self.runs.observe(entry));
                }
                old
            });
            read.map_err(trouble)?;
        }
        Ok(())
    }
}

fn size(data: &Value) -> usize {
    match data {
        Value::String(text) => text.len() + 8,
        Value::Array(list) => list.iter().map(size).sum::<usize>() + 8,
        Value::Object(fields) => fields.iter().map(|(name, value)| name.len() + size(value) + 8).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 8,
    }
}
