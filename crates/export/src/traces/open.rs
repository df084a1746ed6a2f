//! Runs that have not ended yet: their entries wait here, bounded, until there is a whole span to tell.

use std::collections::BTreeMap;

use model::Entry;
use serde_json::Value;

use super::spans;
use crate::entry::micros;

/// Runs at once. Of more, the oldest is told as it is.
const MOST_OPEN: usize = 1000;
/// Entries of a run that are kept; more are counted.
const MOST_ENTRIES: usize = 300;
/// A run without an end that said nothing for so long was killed, with its belljar.
const GIVEN_UP: u64 = 24 * 3600 * 1_000_000;

#[derive(Debug, Default)]
pub struct OpenRuns {
    /// By the number of their first entry, so the oldest is the first; and by name, as a damaged record may repeat numbers.
    runs: BTreeMap<(u64, String), Open>,
}

#[derive(Debug)]
struct Open {
    entries: Vec<Entry>,
    left_out: u64,
    last: u64,
}

/// What an entry brought to its end.
pub type Told = Vec<Value>;

impl OpenRuns {
    /// The spans that are whole now.
    pub fn observe(&mut self, entry: Entry) -> Told {
        let Some(run) = entry.run.clone() else { return Vec::new() };
        let (now, ends) = (micros(&entry.at), entry.kind == "run.ended");
        let known = self.runs.iter().rev().map(|(key, _)| key).find(|(_, known)| *known == run).cloned();
        // What comes after the end, its receipt, says nothing that a span has.
        if known.is_none() && entry.kind == "run.receipt" {
            return Vec::new();
        }
        let key = known.unwrap_or((entry.number, run));
        let open = self.runs.entry(key.clone());
        let open = open.or_insert_with(|| Open { entries: Vec::new(), left_out: 0, last: now });
        open.last = open.last.max(now);
        match open.entries.len() < MOST_ENTRIES || ends {
            true => open.entries.push(entry),
            false => open.left_out += 1,
        }
        let mut told = Vec::new();
        if ends {
            told.extend(self.close(&key));
        }
        while self.runs.len() > MOST_OPEN {
            let Some(oldest) = self.runs.keys().next().cloned() else { break };
            told.extend(self.close(&oldest));
        }
        let given_up = |open: &Open| now.saturating_sub(open.last) > GIVEN_UP;
        while let Some(silent) = self.runs.iter().find(|(_, open)| given_up(open)).map(|(key, _)| key.clone()) {
            told.extend(self.close(&silent));
        }
        told
    }

    /// Those that have no end yet, told as they are.
    pub fn rest(&mut self) -> Told {
        let all: Vec<(u64, String)> = self.runs.keys().cloned().collect();
        all.into_iter().flat_map(|key| self.close(&key)).collect()
    }

    /// Whose entries are kept here.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.runs.keys().map(|(_, run)| run.as_str())
    }

    fn close(&mut self, key: &(u64, String)) -> Told {
        let closed = self.runs.remove(key);
        closed.map(|Open { entries, left_out, .. }| spans(&key.1, &entries, left_out)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::entry::samples;

    #[test]
    fn a_run_is_told_once_when_it_has_ended() {
        let mut open = OpenRuns::default();
        let told: Vec<usize> = samples::run().into_iter().map(|entry| open.observe(entry).len()).collect();
        assert_eq!(told, [0, 0, 0, 0, 0, 0, 0, 5, 0]);
        assert_eq!((open.names().count(), open.rest().len()), (0, 0));
    }

    #[test]
    fn what_never_ends_is_told_in_the_end_and_takes_bounded_room() {
        let mut open = OpenRuns::default();
        let mut told = 0;
        for number in 1..=1500 {
            let mut entry = samples::entry(number, "run.asked", false, json!({}));
            entry.run = Some(format!("{number:032x}"));
            told += open.observe(entry).len();
        }
        assert_eq!((told, open.names().count()), (500, 1000));
        for number in 2000..4000 {
            let mut entry = samples::entry(number, "program.started", false, json!({}));
            entry.run = Some(format!("{:032x}", 1500));
            open.observe(entry);
        }
        let spans = open.rest();
        let last = spans.iter().find(|span| span["traceId"] == format!("{:032x}", 1500)).expect("it is told");
        assert_eq!(last["droppedEventsCount"], 1701);
        let mut late = samples::entry(1, "run.asked", false, json!({}));
        open.observe(late.clone());
        late.at = "2026-11-18T14:20:00.000000Z".to_owned();
        late.run = Some("f".repeat(32));
        assert_eq!(open.observe(late).len(), 1);
    }
}
