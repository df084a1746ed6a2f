//! How much goes through one connection in a second.

use super::super::samples::{Table, met};
use super::contest::{Contestant, Lane};
use super::figures::{What, shown};
use super::latency::milliseconds;
use super::{BOTH, Bench};

/// Of what goes through with nothing between; or so many megabytes in a second, if that is less.
pub fn wanted(lane: Lane) -> f64 {
    match lane {
        Lane::Tcp | Lane::Tls => 0.6,
        Lane::ReadTls => 0.3,
    }
}
pub const ENOUGH: f64 = 1000.0;

pub fn measure(bench: &mut Bench<'_>) -> Result<Table, String> {
    let bytes = bench.amounts.bulk_bytes;
    for round in 0..bench.amounts.bulk_rounds {
        println!("bulk: round {} of {}", round + 1, bench.amounts.bulk_rounds);
        for who in BOTH {
            for (contestant, lane) in bench.contest.all(who) {
                let bytes = contestant.part_of(bytes);
                let words = ["bulk", &bytes.to_string(), "2"];
                let said = bench.contest.said_if_it_can(bench.field, contestant, lane, who, &words)?;
                let Some(said) = said else { continue };
                for time in milliseconds(&said["bulk"])? {
                    let rate = bytes as f64 / 1e3 / time;
                    bench.figures.note((What::Bulk, lane, contestant, who), rate, bench.samples)?;
                }
            }
        }
    }
    let mut table = Table::new(
        format!("A download of {} MiB (of peers a quarter of that), medians", bytes >> 20),
        &["", "samples", "MB/s", "of that with nothing between", "wanted"],
    );
    for who in BOTH {
        for (contestant, lane) in bench.contest.all(who) {
            let figures = &bench.figures;
            let rate = figures.middle(What::Bulk, lane, contestant, who);
            let share = figures.share(What::Bulk, lane, contestant, who);
            let (title, user) = (bench.contest.title(contestant).unwrap_or_default(), who.name());
            table.rows.push(vec![
                format!("as {user}, {}: {title}", lane.name()),
                figures.count(What::Bulk, lane, contestant, who).to_string(),
                shown(rate, 0),
                if contestant == Contestant::Direct { String::new() } else { shown(share, 2) },
                match (contestant, rate, share) {
                    (Contestant::Belljar, Some(rate), Some(share)) => {
                        let least = wanted(lane);
                        met(share >= least || rate >= ENOUGH, &format!("≥ {least}, or {ENOUGH} MB/s"))
                    }
                    _ => String::new(),
                },
            ]);
        }
    }
    Ok(table)
}
