//! Where the time of one start goes, step by step, as belljar itself traces it.

use std::fs;
use std::time::Duration;

use testkit::Who;
use testkit::contestant::belljar;

use super::Amounts;
use super::field::Field;
use super::runners::{quiet, time};
use super::samples::{Samples, Table, median};

/// How often a kind of step is taken in one start, and how long all of them took in each.
type Times = (usize, Vec<Duration>);

pub fn measure(field: &Field, amounts: &Amounts, samples: &mut Samples) -> Result<Table, String> {
    let title = format!("Steps of one start, medians of {} traces", amounts.traces);
    let mut table = Table::new(title, &["step", "root times", "root µs", "user times", "user µs"]);
    let mut kinds: Vec<(String, [Times; 2])> = Vec::new();
    for (column, who) in [Who::Root, Who::Ordinary].into_iter().enumerate() {
        println!("steps: as {}", who.name());
        for _ in 0..amounts.traces {
            let mut sums: Vec<(String, usize, u64)> = Vec::new();
            for (step, nanoseconds) in trace(field, who)? {
                samples.keep("step", &step, who.name(), nanoseconds as f64 / 1e3, "µs")?;
                let kind = kind(&step);
                match sums.iter_mut().find(|(known, ..)| *known == kind) {
                    Some((_, times, sum)) => (*times, *sum) = (*times + 1, *sum + nanoseconds),
                    None => sums.push((kind, 1, nanoseconds)),
                }
            }
            for (kind, times, sum) in sums {
                let at = kinds.iter().position(|(known, _)| *known == kind).unwrap_or_else(|| {
                    kinds.push((kind, Default::default()));
                    kinds.len() - 1
                });
                let cell = &mut kinds[at].1[column];
                cell.0 = times;
                cell.1.push(Duration::from_nanos(sum));
            }
        }
    }
    for (kind, cells) in kinds {
        let [root, user] = cells.map(|(times, sums)| match sums.is_empty() {
            true => ["–".to_owned(), "–".to_owned()],
            false => [times.to_string(), format!("{:.1}", median(&sums).as_nanos() as f64 / 1e3)],
        });
        table.rows.push([vec![kind], root.to_vec(), user.to_vec()].concat());
    }
    Ok(table)
}

/// Steps are named by their first word; what the parent does meanwhile has a name of its own each.
fn kind(step: &str) -> String {
    let first = step.split_whitespace().next().unwrap_or_default();
    if first.ends_with(':') { step.to_owned() } else { first.to_owned() }
}

fn trace(field: &Field, who: Who) -> Result<Vec<(String, u64)>, String> {
    let result = field.home(who).join("trace.json");
    let mut command = std::process::Command::new(belljar());
    command.args(["run", "-q", "--trace", "--result-file"]).arg(&result).args(["--", "/bin/true"]);
    time(quiet(&mut command, field, who, &field.project(who)))?;
    let text = fs::read(&result).map_err(|error| format!("cannot read {}: {error}", result.display()))?;
    let value: serde_json::Value = serde_json::from_slice(&text).map_err(|error| format!("a bad result: {error}"))?;
    let steps = value["timing"].as_array().ok_or("the result has no timing")?;
    Ok(steps
        .iter()
        .filter_map(|step| Some((step["step"].as_str()?.to_owned(), step["nanoseconds"].as_u64()?)))
        .collect())
}
