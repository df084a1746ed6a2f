//! What a new connection takes, and a request over one that stays.

use serde_json::Value;
use testkit::Who;

use super::super::samples::{Table, met};
use super::contest::{Contestant, Lane};
use super::figures::{What, shown};
use super::{BOTH, Bench};

/// Milliseconds that may be added at the median.
pub const NEW: f64 = 1.5;
pub const KEPT: f64 = 0.2;

pub fn measure(bench: &mut Bench<'_>) -> Result<Vec<Table>, String> {
    let counts = [bench.amounts.connections, bench.amounts.requests].map(|count| count as u64);
    for round in 0..bench.amounts.rounds {
        println!("connections and requests: round {} of {}", round + 1, bench.amounts.rounds);
        for who in BOTH {
            for (contestant, lane) in bench.contest.all(who) {
                let [connections, requests] = counts.map(|count| contestant.part_of(count).to_string());
                let words = ["latency", &connections, &requests];
                let said = bench.contest.said_if_it_can(bench.field, contestant, lane, who, &words)?;
                let Some(said) = said else { continue };
                // The first connection pays for what is made once; so does the first request over the one that stays.
                let new = milliseconds(&said["new"])?;
                let (first, others) = new.split_first().ok_or("no sample")?;
                bench.figures.note((What::First, lane, contestant, who), *first, bench.samples)?;
                for time in others {
                    bench.figures.note((What::New, lane, contestant, who), *time, bench.samples)?;
                }
                for time in milliseconds(&said["kept"])?.iter().skip(1) {
                    bench.figures.note((What::Kept, lane, contestant, who), *time, bench.samples)?;
                }
            }
            let said = bench.contest.names(bench.field, who, bench.amounts.connections)?;
            for time in milliseconds(&said["names"])? {
                bench.figures.note((What::Name, Lane::Tcp, Contestant::Belljar, who), time, bench.samples)?;
            }
        }
    }
    let mut tables = Vec::new();
    for (what, title, most) in [
        (What::New, "A new connection with one small request", NEW),
        (What::Kept, "A small request over a connection that stays", KEPT),
    ] {
        tables.extend(BOTH.map(|who| table(bench, what, title, most, who)));
    }
    Ok(tables)
}

fn table(bench: &Bench<'_>, what: What, title: &str, most: f64, who: Who) -> Table {
    let head = ["", "samples", "first ms", "p50 ms", "p99 ms", "added at p50, ms", "times ours", "wanted"];
    let mut table = Table::new(format!("{title}, as {}", who.name()), &head);
    let figures = &bench.figures;
    for (contestant, lane) in bench.contest.all(who) {
        let added = figures.added(what, lane, contestant, who);
        let ours = figures.added(what, lane, Contestant::Belljar, who);
        let ratio = added.zip(ours).map(|(theirs, ours)| theirs / ours);
        let first = (what == What::New).then(|| figures.middle(What::First, lane, contestant, who)).flatten();
        table.rows.push(vec![
            format!("{}: {}", lane.name(), bench.contest.title(contestant).unwrap_or_default()),
            figures.count(what, lane, contestant, who).to_string(),
            shown(first, 2),
            shown(figures.middle(what, lane, contestant, who), 3),
            shown(figures.at(0.99, what, lane, contestant, who), 3),
            if contestant == Contestant::Direct { String::new() } else { shown(added, 3) },
            match contestant {
                Contestant::Srt | Contestant::Mitmproxy => ratio.map_or(String::new(), |ratio| format!("{ratio:.1} ×")),
                Contestant::Direct | Contestant::Belljar => String::new(),
            },
            match (contestant, added) {
                (Contestant::Belljar, Some(added)) => met(added < most, &format!("< {most} ms added")),
                _ => String::new(),
            },
        ]);
    }
    if what == What::New {
        let name = |share| figures.at(share, What::Name, Lane::Tcp, Contestant::Belljar, who);
        let count = figures.count(What::Name, Lane::Tcp, Contestant::Belljar, who);
        let cells = ["a name, asked inside: belljar".to_owned(), count.to_string(), String::new()];
        let times = [shown(name(0.5), 3), shown(name(0.99), 3), String::new(), String::new(), String::new()];
        table.rows.push(cells.into_iter().chain(times).collect());
    }
    table
}

pub fn milliseconds(nanoseconds: &Value) -> Result<Vec<f64>, String> {
    let times = nanoseconds.as_array().ok_or_else(|| format!("no samples: {nanoseconds}"))?;
    Ok(times.iter().filter_map(Value::as_f64).map(|time| time / 1e6).collect())
}
