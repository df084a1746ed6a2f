//! How much later a run starts that may go out, and does not.

use std::process::Command;

use testkit::contestant::belljar;

use super::super::runners::{quiet, time};
use super::super::samples::{Table, met};
use super::contest::{Contestant, Lane};
use super::figures::{What, shown};
use super::{BOTH, Bench};

/// Times as long as without.
pub const MOST: f64 = 1.5;

pub const WITHOUT: &str = "no network";
pub const PLAIN: &str = "a host is granted";
pub const READS: &str = "a host is granted whose requests are read";
const CASES: [(&str, &[&str]); 3] =
    [(WITHOUT, &[]), (PLAIN, &["--allow-net=example.org"]), (READS, &["--allow-net=@pypi"])];

pub fn measure(bench: &mut Bench<'_>) -> Result<Table, String> {
    println!("starts: {} of each", bench.amounts.starts);
    for who in BOTH {
        let folder = bench.field.project(who);
        for round in 0..=bench.amounts.starts {
            for (name, flags) in CASES {
                let mut command = Command::new(belljar());
                command.args(["run", "-q", "--workspace-mode", "readonly"]).args(flags).args(["--", "/bin/true"]);
                let took = time(quiet(&mut command, bench.field, who, &folder))?.as_secs_f64() * 1e3;
                // One beforehand: caches are warm for all.
                if round > 0 {
                    let key = (What::Start(name), Lane::Tcp, Contestant::Belljar, who);
                    bench.figures.note(key, took, bench.samples)?;
                }
            }
        }
    }
    let head = ["", "runs", "p50 ms", "p99 ms", "ratio", "wanted"];
    let mut table = Table::new("`belljar run -- true` with a network that is not used", &head);
    for who in BOTH {
        for (name, _) in CASES {
            let at = |share| bench.figures.at(share, What::Start(name), Lane::Tcp, Contestant::Belljar, who);
            let ratio = ratio(&bench.figures, name, who);
            table.rows.push(vec![
                format!("as {}, {name}", who.name()),
                bench.figures.count(What::Start(name), Lane::Tcp, Contestant::Belljar, who).to_string(),
                shown(at(0.5), 2),
                shown(at(0.99), 2),
                ratio.map_or(String::new(), |ratio| format!("{ratio:.2} ×")),
                match ratio {
                    Some(ratio) if name != WITHOUT => met(ratio <= MOST, &format!("≤ {MOST} ×")),
                    _ => String::new(),
                },
            ]);
        }
    }
    Ok(table)
}

pub fn ratio(figures: &super::figures::Figures, name: &'static str, who: testkit::Who) -> Option<f64> {
    let of = |name| figures.middle(What::Start(name), Lane::Tcp, Contestant::Belljar, who);
    Some(of(name)? / of(WITHOUT)?)
}
