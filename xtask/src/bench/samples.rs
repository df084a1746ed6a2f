//! Raw samples, kept as lines of JSON; percentiles of them; tables.

use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use crate::place;

pub struct Samples {
    file: File,
    pub path: PathBuf,
}

impl Samples {
    /// `bench` is the name of what is measured.
    pub fn open(bench: &str) -> Result<Samples, String> {
        let folder = place::tree().join("bench-results");
        let now = place::said(Command::new("date").args(["-u", "+%Y-%m-%dT%H%M%S"])).ok_or("`date` failed")?;
        let path = folder.join(format!("{now}-{bench}.jsonl"));
        let complain = |error| format!("cannot write {}: {error}", path.display());
        fs::create_dir_all(&folder).map_err(complain)?;
        let file = File::create(&path).map_err(complain)?;
        Ok(Samples { file, path })
    }

    pub fn keep(&mut self, what: &str, name: &str, who: &str, value: f64, unit: &str) -> Result<(), String> {
        let line = serde_json::json!({ "what": what, "name": name, "who": who, "value": value, "unit": unit });
        writeln!(self.file, "{line}").map_err(|error| format!("cannot write {}: {error}", self.path.display()))
    }
}

/// The value below which `share` of all lie: the nearest rank, no value that was not measured.
pub fn percentile(times: &[Duration], share: f64) -> Duration {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or_default()
}

pub fn median(times: &[Duration]) -> Duration {
    percentile(times, 0.5)
}

pub fn milliseconds(time: Duration) -> String {
    format!("{:.2}", time.as_secs_f64() * 1e3)
}

/// Whether a threshold of ours is met, as said in a table.
pub fn met(is: bool, threshold: &str) -> String {
    format!("{} ({threshold})", if is { "met" } else { "NOT met" })
}

/// Rows of words under a title; the first column is left-aligned, numbers to the right.
pub struct Table {
    pub title: String,
    pub head: Vec<String>,
    pub rows: Vec<Vec<String>>,
}

impl Table {
    pub fn new(title: impl Into<String>, head: &[&str]) -> Table {
        Table { title: title.into(), head: head.iter().map(|word| (*word).to_owned()).collect(), rows: Vec::new() }
    }

    /// Too few samples hold no threshold.
    pub fn leave_out_wanted(&mut self) {
        if self.head.last().is_some_and(|word| word == "wanted") {
            let width = self.head.len() - 1;
            self.head.truncate(width);
            self.rows.iter_mut().for_each(|row| row.truncate(width));
        }
    }

    pub fn to_plain(&self) -> String {
        let all = || std::iter::once(&self.head).chain(&self.rows);
        let width = |column: usize| all().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
        let mut text = self.title.clone();
        for row in all() {
            text.push('\n');
            for (column, cell) in row.iter().enumerate() {
                let pad = " ".repeat(width(column).unwrap_or(0).saturating_sub(cell.chars().count()));
                let words = cell.chars().next().is_some_and(char::is_alphabetic) || column == 0;
                text += &if words { format!("  {cell}{pad}") } else { format!("  {pad}{cell}") };
            }
            text.truncate(text.trim_end().len());
        }
        text
    }

    pub fn to_markdown(&self) -> String {
        let row = |cells: &[String]| format!("| {} |", cells.join(" | "));
        let rules: Vec<String> = self.head.iter().map(|_| ":--".to_owned()).collect();
        let rows = self.rows.iter().map(|cells| row(cells));
        let lines = [format!("**{}**\n", self.title), row(&self.head), row(&rules)].into_iter().chain(rows);
        lines.collect::<Vec<_>>().join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_measured_values() {
        let times: Vec<Duration> = (1..=200).rev().map(Duration::from_millis).collect();
        assert_eq!(percentile(&times, 0.5), Duration::from_millis(100));
        assert_eq!(percentile(&times, 0.99), Duration::from_millis(198));
        assert_eq!(percentile(&times[..1], 0.99), Duration::from_millis(200));
        assert_eq!(percentile(&[], 0.5), Duration::ZERO);
    }
}
