//! Many connections at once: whether all get through, how long that takes, and what it costs.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use serde_json::Value;
use testkit::Who;

use super::super::memory::largest_size;
use super::super::samples::{Table, met};
use super::contest::{Contestant, Lane};
use super::figures::{What, shown};
use super::{BOTH, Bench};

/// For each.
const BYTES: u64 = 64 << 10;

pub fn measure(bench: &mut Bench<'_>) -> Result<Table, String> {
    for round in 0..bench.amounts.crowd_rounds {
        println!("{} at once: round {} of {}", bench.amounts.crowd, round + 1, bench.amounts.crowd_rounds);
        for who in BOTH {
            for (contestant, lane) in taking_part(bench, who) {
                // Once is enough where the client has to give up.
                if round > 0 && Contestant::PEERS.contains(&contestant) {
                    continue;
                }
                match once(bench, contestant, lane, who) {
                    Ok(()) => {}
                    Err(error) if Contestant::PEERS.contains(&contestant) => println!("failed: {error}"),
                    Err(error) => return Err(error),
                }
            }
        }
    }
    let title = format!("{} connections at once, {} KiB over each", bench.amounts.crowd, BYTES >> 10);
    let mut table = Table::new(title, &["", "runs", "ms until all have theirs", "failed", "memory MiB", "wanted"]);
    for who in BOTH {
        for (contestant, lane) in taking_part(bench, who) {
            let figures = &bench.figures;
            let failed = figures.at(1.0, What::Failed, lane, contestant, who);
            let (title, user) = (bench.contest.title(contestant).unwrap_or_default(), who.name());
            table.rows.push(vec![
                format!("as {user}, {}: {title}", lane.name()),
                figures.count(What::Crowd, lane, contestant, who).to_string(),
                shown(figures.middle(What::Crowd, lane, contestant, who), 0),
                shown(failed, 0),
                shown(figures.middle(What::Peak, lane, contestant, who), 1),
                if contestant == Contestant::Belljar { met(failed == Some(0.0), "none fails") } else { String::new() },
            ]);
        }
    }
    Ok(table)
}

fn taking_part(bench: &Bench<'_>, who: Who) -> Vec<(Contestant, Lane)> {
    let mut all = bench.contest.all(who);
    all.retain(|(contestant, _)| bench.amounts.crowds_of_peers || !Contestant::PEERS.contains(contestant));
    all
}

fn once(bench: &mut Bench<'_>, contestant: Contestant, lane: Lane, who: Who) -> Result<(), String> {
    let words = ["crowd", &bench.amounts.crowd.to_string(), &BYTES.to_string()];
    let mut command = bench.contest.command(bench.field, contestant, lane, who, &words);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().map_err(|error| format!("cannot run {contestant:?}: {error}"))?;
    let mut line = String::new();
    let output = child.stdout.take().ok_or("no output")?;
    BufReader::new(output).read_line(&mut line).map_err(|error| error.to_string())?;
    // All are still open now.
    let between = bench.contest.between(contestant, lane, &child);
    let most: u64 = between.into_iter().filter_map(largest_size).sum();
    drop(child.stdin.take());
    child.wait().map_err(|error| error.to_string())?;
    let said: Value = serde_json::from_str(&line)
        .map_err(|error| format!("{contestant:?} as {}, {}: {error}", who.name(), lane.name()))?;
    let number = |name: &str| said[name].as_f64().ok_or_else(|| format!("no {name} in {said}"));
    if said["why"].is_string() {
        println!("{contestant:?} as {}, {}: {}", who.name(), lane.name(), said["why"]);
    }
    bench.figures.note((What::Crowd, lane, contestant, who), number("crowd")? / 1e6, bench.samples)?;
    bench.figures.note((What::Failed, lane, contestant, who), number("failed")?, bench.samples)?;
    if contestant != Contestant::Direct {
        bench.figures.note((What::Peak, lane, contestant, who), most as f64 / 1024.0, bench.samples)?;
    }
    Ok(())
}
