//! How long `/bin/true` takes from fork to wait: belljar and its peers in turn.

use std::path::{Path, PathBuf};
use std::time::Duration;

use testkit::Who;

use super::Amounts;
use super::field::Field;
use super::runners::{Runner, quiet, time};
use super::samples::{Samples, Table, met, milliseconds, percentile};

/// One way to run, with its name and what was measured.
struct Row {
    runner: Runner,
    title: String,
    times: Vec<Duration>,
    /// Peers fail now and then; that is said, and does not end the benchmark.
    failures: usize,
}

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
            for row in &rows {
                for time in &row.times {
                    samples.keep(&format!("start from {name}"), &row.title, who.name(), microseconds(*time), "µs")?;
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
    let once = |runner: Runner| time(quiet(&mut runner.command(field, &["/bin/true"]), field, who, folder));
    let mut rows: Vec<Row> = Vec::new();
    for (runner, title) in installed {
        // One beforehand: caches are warm for all.
        match once(*runner) {
            Ok(_) => rows.push(Row { runner: *runner, title: title.clone(), times: Vec::new(), failures: 0 }),
            Err(error) if *runner == Runner::Belljar => return Err(error),
            Err(error) => println!("left out here: {error}"),
        }
    }
    // Slow ones are spread over the run, so that they meet the same noise.
    let spread = amounts.starts.div_ceil(amounts.slow_starts).max(1);
    for round in 0..amounts.starts {
        for row in &mut rows {
            if row.runner.is_slow() && round % spread != 0 {
                continue;
            }
            match once(row.runner) {
                Ok(took) => row.times.push(took),
                Err(error) if row.runner == Runner::Belljar => return Err(error),
                Err(_) => row.failures += 1,
            }
        }
    }
    Ok(rows)
}

fn table(rows: &[Row], who: Who, from: &str) -> Table {
    let title = format!("Start and end of /bin/true as {}, from {from}", who.name());
    let mut table = Table::new(title, &["", "runs", "p50 ms", "p99 ms", "p50 vs belljar", "wanted"]);
    let of =
        |wanted: Runner, share| rows.iter().find(|row| row.runner == wanted).map(|row| percentile(&row.times, share));
    let ours = of(Runner::Belljar, 0.5).unwrap_or_default();
    for Row { runner, title, times, failures } in rows {
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
            Runner::Bare | Runner::Belljar | Runner::BelljarLayered | Runner::CodexAlone => String::new(),
        };
        table.rows.push(vec![
            title.clone(),
            match failures {
                0 => times.len().to_string(),
                _ => format!("{}, {failures} failed", times.len()),
            },
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
