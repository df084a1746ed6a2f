//! `cargo xtask bench egress`: the way out, beside none at all and beside other people's proxies, on the same work in one run.
//!
//! Servers and proxies are on this machine's loopback. The client is one small program for all (`egress_speed`), which is run
//! outside, inside a sandbox, or with a proxy; what it takes without anything between is taken off.

mod bulk;
mod contest;
mod crowd;
mod figures;
mod idle;
mod latency;
mod start;
mod summary;
mod world;

use testkit::Who;

use super::field::Field;
use super::samples::{Samples, Table};
use contest::Contest;
use figures::Figures;

/// As whom all is measured.
const BOTH: [Who; 2] = [Who::Ordinary, Who::Root];

struct Amounts {
    rounds: usize,
    /// In each round, of each.
    connections: usize,
    requests: usize,
    bulk_rounds: usize,
    bulk_bytes: u64,
    crowd: usize,
    crowd_rounds: usize,
    /// Some of them leave connections hanging until the client gives up.
    crowds_of_peers: bool,
    idle: usize,
    starts: usize,
}

const FULL: Amounts = Amounts {
    rounds: 10,
    connections: 100,
    requests: 300,
    bulk_rounds: 5,
    bulk_bytes: 256 << 20,
    crowd: 500,
    crowd_rounds: 3,
    crowds_of_peers: true,
    idle: 200,
    starts: 200,
};
const QUICK: Amounts = Amounts {
    rounds: 1,
    connections: 10,
    requests: 30,
    bulk_rounds: 1,
    bulk_bytes: 8 << 20,
    crowd: 100,
    crowd_rounds: 1,
    crowds_of_peers: false,
    idle: 20,
    starts: 5,
};

/// What every part needs.
struct Bench<'a> {
    field: &'a Field,
    amounts: Amounts,
    contest: Contest,
    figures: Figures,
    samples: &'a mut Samples,
}

pub fn egress(flags: &[&str]) -> Result<(), String> {
    let super::Wish { quick, markdown, runs } = super::Wish::read("egress", flags)?;
    let mut amounts = if quick { QUICK } else { FULL };
    amounts.starts = runs.unwrap_or(amounts.starts);
    crate::release::everything()?;
    let field = Field::make()?;
    let mut samples = Samples::open("egress")?;
    let tables = {
        let contest = Contest::make(&field)?;
        let mut bench = Bench { field: &field, amounts, contest, figures: Figures::default(), samples: &mut samples };
        let mut tables: Vec<Table> = Vec::new();
        tables.extend(latency::measure(&mut bench)?);
        tables.push(bulk::measure(&mut bench)?);
        // Before there are many: who has had many keeps some room.
        tables.push(idle::measure(&mut bench)?);
        tables.push(crowd::measure(&mut bench)?);
        tables.push(start::measure(&mut bench)?);
        let mut summary = summary::table(&bench.figures, &bench.contest);
        if quick {
            // Whether goals are met: too few samples say nothing about that.
            summary.rows.iter_mut().chain([&mut summary.head]).for_each(|row| row.truncate(4));
        }
        tables.push(summary);
        tables
    };
    super::report(tables, quick, markdown, &samples);
    Ok(())
}
