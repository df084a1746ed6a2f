//! How many sandboxes a second two workers start and end.

use std::time::{Duration, Instant};

use testkit::Who;

use super::Amounts;
use super::field::Field;
use super::runners::{Runner, quiet, time};
use super::samples::{Samples, Table, met};

const WORKERS: usize = 2;

pub fn measure(field: &Field, amounts: &Amounts, samples: &mut Samples) -> Result<Table, String> {
    let title = format!("Throughput of {WORKERS} workers, sandboxes a second");
    let mut table = Table::new(title, &["", "belljar", "bwrap", "ratio", "wanted"]);
    for who in [Who::Root, Who::Ordinary] {
        println!("throughput: as {}", who.name());
        let mut sums = [0.0, 0.0];
        for _ in 0..amounts.throughput_rounds {
            for (sum, runner) in sums.iter_mut().zip([Runner::Belljar, Runner::Bubblewrap]) {
                let rate = rate(field, runner, who, Duration::from_secs_f64(amounts.throughput_seconds))?;
                samples.keep("throughput", &format!("{runner:?}"), who.name(), rate, "1/s")?;
                *sum += rate / amounts.throughput_rounds as f64;
            }
        }
        let ratio = sums[0] / sums[1];
        table.rows.push(vec![
            format!("as {}", who.name()),
            format!("{:.0}", sums[0]),
            format!("{:.0}", sums[1]),
            format!("{ratio:.2} ×"),
            met(ratio >= 1.3, "≥ 1.3 ×"),
        ]);
    }
    Ok(table)
}

fn rate(field: &Field, runner: Runner, who: Who, long: Duration) -> Result<f64, String> {
    let started = Instant::now();
    let worker = || -> Result<u32, String> {
        let mut done = 0;
        while started.elapsed() < long {
            time(quiet(&mut runner.command(field, &["/bin/true"]), field, who, &field.project(who)))?;
            done += 1;
        }
        Ok(done)
    };
    let done = std::thread::scope(|scope| -> Result<u32, String> {
        let workers: Vec<_> = (0..WORKERS).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().map(|one| one.join().unwrap_or_else(|_| Err("a worker ended early".to_owned()))).sum()
    })?;
    Ok(f64::from(done) / started.elapsed().as_secs_f64())
}
