//! Prometheus metrics, counted from entries. However many there are, and whatever they name, the room is bounded.

use std::collections::BTreeMap;
use std::fmt::Write;

use model::Entry;

use crate::entry::{list, micros, rule, shortened, text};

pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Values of one label. What comes later is counted as `other`.
const MOST_VALUES: usize = 100;
const LONGEST_VALUE: usize = 64;
const OTHER: &str = "other";

/// Upper ends, in seconds.
const RUN_TIMES: [f64; 14] = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0, 300.0, 1800.0, 7200.0];

#[derive(Clone, Debug, Default)]
pub struct Metrics {
    entries: Counter<1>,
    denied: Counter<1>,
    runs: Counter<2>,
    verdicts: Counter<2>,
    refusals: Counter<1>,
    denied_calls: Counter<1>,
    approvals: Counter<1>,
    alerts: Counter<2>,
    artifacts: Counter<1>,
    redactions: u64,
    processor: f64,
    times: Histogram,
    last: u64,
    /// Microseconds since 1970.
    last_at: u64,
}

impl Metrics {
    pub fn observe(&mut self, entry: &Entry) {
        let data = &entry.data;
        let agent = entry.agent.as_deref().unwrap_or_default();
        self.last = self.last.max(entry.number);
        self.last_at = self.last_at.max(micros(&entry.at));
        self.entries.add([&entry.kind], 1);
        if entry.denied {
            self.denied.add([&entry.kind], 1);
        }
        match entry.kind.as_str() {
            "run.judged" => self.verdicts.add([text(data, "ruling"), agent], 1),
            "call.denied" => self.denied_calls.add([text(data, "call")], data["times"].as_u64().unwrap_or(1)),
            "approval.answered" => self.approvals.add([if data["yes"] == true { "yes" } else { "no" }], 1),
            "monitor.alert" => self.alerts.add([text(data, "detector"), agent], 1),
            "artifact.released" => self.artifacts.add(["released"], 1),
            "artifact.withheld" => self.artifacts.add(["withheld"], 1),
            "run.ended" => {
                let outcome = text(data, "outcome");
                self.runs.add([outcome, agent], 1);
                if outcome == "refused" {
                    self.refusals.add([rule(entry).unwrap_or_default()], 1);
                }
                let redacted = list(data, "redacted").filter_map(|redacted| redacted["times"].as_u64());
                self.redactions = redacted.fold(self.redactions, u64::saturating_add);
                let seconds = |name: &str| data["usage"][name].as_f64().filter(|seconds| *seconds >= 0.0);
                if outcome == "ran"
                    && let Some(time) = seconds("wall_time")
                {
                    self.times.add(time);
                    self.processor += seconds("user_time").unwrap_or(0.0) + seconds("system_time").unwrap_or(0.0);
                }
            }
            _ => {}
        }
    }

    /// As a scraper reads it.
    pub fn text(&self) -> String {
        let mut page = Page(String::new());
        page.counter("belljar_entries_total", "Entries of the record, by kind.", ["kind"], &self.entries);
        page.counter("belljar_denied_total", "Entries that say no, by kind.", ["kind"], &self.denied);
        page.counter("belljar_runs_total", "Runs, by what came of them.", ["outcome", "agent"], &self.runs);
        page.counter("belljar_verdicts_total", "Verdicts on runs.", ["ruling", "agent"], &self.verdicts);
        page.counter("belljar_refusals_total", "Runs that were refused, by rule.", ["rule"], &self.refusals);
        page.counter("belljar_denied_calls_total", "System calls that sandboxes denied.", ["call"], &self.denied_calls);
        page.counter("belljar_approvals_total", "Answers of people.", ["answer"], &self.approvals);
        page.counter("belljar_alerts_total", "Alerts of the monitor.", ["detector", "agent"], &self.alerts);
        page.counter("belljar_artifacts_total", "Artifacts at the release gate.", ["fate"], &self.artifacts);
        page.number("belljar_redactions_total", "counter", "Secrets taken out of output.", &self.redactions);
        let processor = number(self.processor);
        page.number("belljar_processor_seconds_total", "counter", "Processor time of runs.", &processor);
        page.number("belljar_record_last_entry", "gauge", "The number of the newest entry that was read.", &self.last);
        let last_at = number(self.last_at as f64 / 1e6);
        page.number("belljar_record_last_entry_time_seconds", "gauge", "When that was, since 1970.", &last_at);
        page.histogram("belljar_run_seconds", "How long runs took.", &self.times);
        page.0
    }
}

/// Counts by a few words each.
#[derive(Clone, Debug)]
struct Counter<const WORDS: usize> {
    counts: BTreeMap<[String; WORDS], u64>,
}

impl<const WORDS: usize> Default for Counter<WORDS> {
    fn default() -> Self {
        Counter { counts: BTreeMap::new() }
    }
}

impl<const WORDS: usize> Counter<WORDS> {
    fn add(&mut self, words: [&str; WORDS], more: u64) {
        let words = words.map(|word| shortened(word, LONGEST_VALUE).to_owned());
        let is_known = self.counts.contains_key(&words);
        let words = match is_known || self.counts.len() < MOST_VALUES {
            true => words,
            // Whoever makes up names by the thousand shares one.
            false => std::array::from_fn(|_| OTHER.to_owned()),
        };
        let count = self.counts.entry(words).or_default();
        *count = count.saturating_add(more);
    }
}

#[derive(Clone, Debug, Default)]
struct Histogram {
    /// Not more than the upper end; the last has none.
    counts: [u64; RUN_TIMES.len()],
    all: u64,
    sum: f64,
}

impl Histogram {
    fn add(&mut self, value: f64) {
        for (count, end) in self.counts.iter_mut().zip(RUN_TIMES) {
            *count += u64::from(value <= end);
        }
        self.all += 1;
        self.sum += value;
    }
}

struct Page(String);

impl Page {
    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        // Writing to a text does not fail.
        writeln!(self.0, "{line}").ok();
    }

    fn head(&mut self, name: &str, kind: &str, help: &str) {
        self.line(format_args!("# HELP {name} {help}"));
        self.line(format_args!("# TYPE {name} {kind}"));
    }

    fn number(&mut self, name: &str, kind: &str, help: &str, value: &dyn std::fmt::Display) {
        self.head(name, kind, help);
        self.line(format_args!("{name} {value}"));
    }

    fn counter<const WORDS: usize>(&mut self, name: &str, help: &str, labels: [&str; WORDS], of: &Counter<WORDS>) {
        self.head(name, "counter", help);
        for (words, count) in &of.counts {
            let pairs: Vec<String> =
                labels.iter().zip(words).map(|(label, word)| format!("{label}=\"{}\"", escaped(word))).collect();
            self.line(format_args!("{name}{{{}}} {count}", pairs.join(",")));
        }
    }

    fn histogram(&mut self, name: &str, help: &str, of: &Histogram) {
        self.head(name, "histogram", help);
        for (end, count) in RUN_TIMES.iter().zip(of.counts) {
            self.line(format_args!("{name}_bucket{{le=\"{end}\"}} {count}"));
        }
        self.line(format_args!("{name}_bucket{{le=\"+Inf\"}} {}", of.all));
        self.line(format_args!("{name}_sum {}", number(of.sum)));
        self.line(format_args!("{name}_count {}", of.all));
    }
}

fn escaped(word: &str) -> String {
    let mut written = String::new();
    for letter in word.chars() {
        match letter {
            '\\' => written += "\\\\",
            '"' => written += "\\\"",
            '\n' => written += "\\n",
            // A reader may take any of these for the end of a line.
            letter if crate::entry::commands(letter) => written.push('\u{fffd}'),
            letter => written.push(letter),
        }
    }
    written
}

/// Numbers beyond all bounds are written as they want it.
fn number(value: f64) -> String {
    if value.is_finite() { format!("{value}") } else { "+Inf".to_owned() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::entry::samples;

    fn text_of(entries: &[Entry]) -> String {
        let mut metrics = Metrics::default();
        entries.iter().for_each(|entry| metrics.observe(entry));
        metrics.text()
    }

    #[test]
    fn a_run_is_counted_by_what_came_of_it() {
        let text = text_of(&samples::run());
        for line in [
            "belljar_entries_total{kind=\"run.ended\"} 1", "belljar_runs_total{outcome=\"ran\",agent=\"tester\"} 1",
            "belljar_verdicts_total{ruling=\"ask\",agent=\"tester\"} 1",
            "belljar_denied_calls_total{call=\"unshare\"} 2", "belljar_approvals_total{answer=\"yes\"} 1",
            "belljar_run_seconds_bucket{le=\"1\"} 0", "belljar_run_seconds_bucket{le=\"2.5\"} 1",
            "belljar_run_seconds_sum 1.5", "belljar_processor_seconds_total 1.25", "belljar_record_last_entry 9",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
    }

    #[test]
    fn names_by_the_thousand_take_bounded_room_and_none_is_lost() {
        let entries: Vec<Entry> =
            (1..5000).map(|n| samples::entry(n, &format!("kind.{n}"), true, json!({"outcome": n}))).collect();
        let text = text_of(&entries);
        assert!(text.len() < 32 << 10, "{}", text.len());
        let counted = text.lines().filter(|line| line.starts_with("belljar_entries_total{"));
        let sum: u64 = counted.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum();
        assert_eq!(sum, 4999);
    }

    #[test]
    fn no_name_ends_its_line() {
        let mut entry = samples::entry(1, "run.judged", true, json!({"ruling": "a\"} 7\nb\\\r\u{85}"}));
        entry.agent = None;
        assert!(text_of(&[entry]).contains("ruling=\"a\\\"} 7\\nb\\\\\u{fffd}\u{fffd}\",agent=\"\"} 1"));
    }
}
