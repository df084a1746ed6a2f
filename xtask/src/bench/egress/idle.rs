//! What a connection costs that does nothing: memory of whoever is between, with many less with one.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use testkit::Who;

use super::super::memory::proportional_size;
use super::super::samples::{Table, met};
use super::contest::{Contestant, Lane};
use super::figures::{What, shown};
use super::{BOTH, Bench};

/// Kibibytes.
pub const MOST: f64 = 64.0;

pub fn measure(bench: &mut Bench<'_>) -> Result<Table, String> {
    println!("idle: {} connections", bench.amounts.idle);
    for who in BOTH {
        for (contestant, lane) in bench.contest.all(who) {
            if contestant == Contestant::Direct {
                continue;
            }
            match once(bench, contestant, lane, who) {
                Ok(each) => bench.figures.note((What::Idle, lane, contestant, who), each, bench.samples)?,
                Err(error) if contestant == Contestant::Belljar => return Err(error),
                Err(error) => println!("left out: {contestant:?} as {}, {}: {error}", who.name(), lane.name()),
            }
        }
    }
    let title = format!("Memory of a connection that is idle (PSS, of {})", bench.amounts.idle);
    let mut table = Table::new(title, &["", "KiB", "times ours", "wanted"]);
    for who in BOTH {
        for (contestant, lane) in bench.contest.all(who) {
            let Some(each) = bench.figures.middle(What::Idle, lane, contestant, who) else { continue };
            let ours = bench.figures.middle(What::Idle, lane, Contestant::Belljar, who).unwrap_or(f64::NAN);
            let (title, user) = (bench.contest.title(contestant).unwrap_or_default(), who.name());
            let is_ours = contestant == Contestant::Belljar;
            table.rows.push(vec![
                format!("as {user}, {}: {title}", lane.name()),
                shown(Some(each), 1),
                if is_ours { String::new() } else { format!("{:.1} ×", each / ours) },
                if is_ours { met(each < MOST, &format!("< {MOST} KiB")) } else { String::new() },
            ]);
        }
    }
    Ok(table)
}

fn once(bench: &Bench<'_>, contestant: Contestant, lane: Lane, who: Who) -> Result<f64, String> {
    let count = bench.amounts.idle;
    let mut command = bench.contest.command(bench.field, contestant, lane, who, &["hold", &count.to_string()]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().map_err(|error| format!("cannot run {contestant:?}: {error}"))?;
    let mut output = BufReader::new(child.stdout.take().ok_or("no output")?);
    let mut input = child.stdin.take().ok_or("no input")?;
    let mut looks = || -> Result<[u64; 2], String> {
        let mut sizes = [0, 0];
        for size in &mut sizes {
            let mut line = String::new();
            output.read_line(&mut line).map_err(|error| error.to_string())?;
            if line.is_empty() {
                return Err("it ended before all were open".to_owned());
            }
            let between = bench.contest.between(contestant, lane, &child);
            *size = between.into_iter().filter_map(proportional_size).sum();
            input.write_all(b"\n").map_err(|error| error.to_string())?;
        }
        Ok(sizes)
    };
    let sizes = looks();
    drop(input);
    child.wait().map_err(|error| error.to_string())?;
    let [one, many] = sizes?;
    Ok((many as f64 - one as f64) / count as f64)
}
