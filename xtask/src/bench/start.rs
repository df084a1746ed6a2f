//! How long `/bin/true` takes from fork to wait: belljar and its peers in turn.

use std::path::{Path, PathBuf};
use std::time::Duration;

use testkit::Who;

use super::Amounts;
use super::field::Field;
use super::runners::{Runner, quiet, time};
use super::samples::{Samples, Table, met, milliseconds, percentile};

/// One way to run, with its name and what was measured.
type Row = (Runner, String, Vec<Duration>);

pub fn measure(field: &Field, amounts: &Amounts, samples: &mut Samples) -> Result<Vec<Table>, String> {
    let installed: Vec<(Runner, String)> =
        Runner::ALL.iter().filter_map(|runner| Some((*runner, runner.title()?))).collect();
    for runner in Runner::ALL.iter().filter(|runner| runner.title().is_none()) {
        println!("left out: {runner:?} is not installed");
    }
    let mut tables = Vec::new();
    for who in [Who::Root, Who::Ordinary] {
        for (name, folder) in [("an empty project", field.project(who)), ("/", PathBuf::from("/"))] {
            println!("start: {} samples as {}, from {name}", amounts.starts, who.name());
            let rows = rounds(field, amounts, who, &folder, &installed)?;
            for (_, title, times) in &rows {
                for time in times {
                    samples.keep(&format!("start from {name}"), title, who.name(), microseconds(*time), "µs")?;
                }
            }
            tables.push(table(&rows, who, name));
        }
    }
    Ok(tables)
}

fn rounds(
    field: &Field,
    amounts: &Amounts,
    who: Who,
    folder: &Path,
    installed: &[(Runner, String)],
) -> Result<Vec<Row>, String> {
    let mut rows: Vec<Row> = installed.iter().map(|(runner, title)| (*runner, title.clone(), Vec::new())).collect();
    // One of each beforehand: caches are warm for all.
    for (runner, ..) in &rows {
        time(quiet(&mut runner.command(field, &["/bin/true"]), field, who, folder))?;
    }
    // Slow ones are spread over the run, so that they meet the same noise.
    let spread = amounts.starts.div_ceil(amounts.slow_starts).max(1);
    for round in 0..amounts.starts {
        for (runner, _, times) in &mut rows {
            if runner.is_slow() && round % spread != 0 {
                continue;
            }
            times.push(time(quiet(&mut runner.command(field, &["/bin/true"]), field, who, folder))?);
        }
    }
    Ok(rows)
}

fn table(rows: &[Row], who: Who, from: &str) -> Table {
    let title = format!("Start and end of /bin/true as {}, from {from}", who.name());
    let mut table = Table::new(title, &["", "runs", "p50 ms", "p99 ms", "p50 vs belljar", "wanted"]);
    let of = |wanted: Runner, share| {
        rows.iter().find(|(runner, ..)| *runner == wanted).map(|(_, _, times)| percentile(times, share))
    };
    let ours = of(Runner::Belljar, 0.5).unwrap_or_default();
    for (runner, title, times) in rows {
        let p50 = percentile(times, 0.5);
        let ratio = p50.as_secs_f64() / ours.as_secs_f64();
        let at_least = |wanted: f64| met(ratio >= wanted, &format!("≥ {wanted} ×"));
        let wanted = match runner {
            Runner::Bubblewrap => {
                let tail = of(Runner::Belljar, 0.99) <= of(Runner::Bubblewrap, 0.99);
                let ours_of_theirs = format!("p50 {:.2} ×, wanted ≤ 0.75 ×", 1.0 / ratio);
                format!("{}, p99 {}", met(1.0 / ratio <= 0.75, &ours_of_theirs), met(tail, "≤ bwrap's"))
            }
            Runner::Zerobox => at_least(8.0),
            Runner::Codex => at_least(25.0),
            Runner::Srt => at_least(50.0),
            Runner::Bare | Runner::Belljar | Runner::CodexAlone => String::new(),
        };
        table.rows.push(vec![
            title.clone(),
            times.len().to_string(),
            milliseconds(p50),
            milliseconds(percentile(times, 0.99)),
            format!("{ratio:.2} ×"),
            wanted,
        ]);
    }
    table
}

fn microseconds(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1e3
}
