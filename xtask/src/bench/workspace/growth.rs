//! The same thing done over a small and a large project in turn: whether its cost grows with the size.

use std::time::Duration;

use testkit::Who;

use super::trees::Tree;
use crate::bench::samples::{Samples, Table, median, met, milliseconds, percentile};

/// Something that is to cost as much over a large project as over a small one.
pub struct Operation {
    pub name: &'static str,
    /// Over the large project it may take so many times as long.
    pub most_ratio: f64,
    /// It may take so many milliseconds over the large project.
    pub most_ms: Option<f64>,
}

pub fn table(who: Who, large: &Tree) -> Table {
    let (who, large) = (who.name(), large.size());
    let title = format!("Commands as {who}, over a small project and one of {large}; `run` is of /bin/true");
    let head = ["", "runs of each", "small", "p50 ms", "p99 ms", "large p50 ms", "large p99 ms", "ratio", "wanted"];
    Table::new(title, &head)
}

/// Measures `once` over both in turn, `rounds` times.
pub fn measure(
    operation: &Operation,
    who: Who,
    [small, large]: [&Tree; 2],
    rounds: usize,
    samples: &mut Samples,
    mut once: impl FnMut(&Tree) -> Result<Duration, String>,
) -> Result<Vec<String>, String> {
    println!("{}: {rounds} samples of each size, as {}", operation.name, who.name());
    let mut times = [Vec::new(), Vec::new()];
    // The first of each warms caches.
    for round in 0..=rounds {
        for which in [round % 2, (round + 1) % 2] {
            let tree = [small, large][which];
            let took = once(tree)?;
            if round > 0 {
                let what = format!("{} over {}", operation.name, tree.name());
                samples.keep("operation", &what, who.name(), took.as_nanos() as f64 / 1e3, "µs")?;
                times[which].push(took);
            }
        }
    }
    Ok(row(operation, small, &times))
}

fn row(operation: &Operation, small: &Tree, [over_small, over_large]: &[Vec<Duration>; 2]) -> Vec<String> {
    let Operation { name, most_ratio, most_ms } = operation;
    let ratio = median(over_large).as_secs_f64() / median(over_small).as_secs_f64();
    let mut wanted = met(ratio <= *most_ratio, &format!("≤ {most_ratio} ×"));
    if let Some(most) = most_ms {
        let large = median(over_large).as_secs_f64() * 1e3;
        wanted += &format!(", p50 {}", met(large < *most, &format!("< {most} ms")));
    }
    vec![
        (*name).to_owned(),
        over_large.len().to_string(),
        small.name(),
        milliseconds(median(over_small)),
        milliseconds(percentile(over_small, 0.99)),
        milliseconds(median(over_large)),
        milliseconds(percentile(over_large, 0.99)),
        format!("{ratio:.2} ×"),
        wanted,
    ]
}
