//! `cargo xtask bench native`: belljar beside its peers in one run, interleaved so that noise hits all alike.
//! `bench workspace`, in a folder of its own, does the same with layers over small and large projects.
//! `bench policy` measures verdicts, loading, and what a policy adds to a start.
//! `bench scan` measures the scanner beside its peers, and what the release gate costs.
//! `bench ledger` measures the record: what it costs a run, writing, searching, verifying.
//! `bench egress` measures the way out beside other people's proxies.
//! `bench backends` measures each kind of isolation beside what it is made of.
//! `bench service` measures runs that are asked for over HTTP beside the same programs without a sandbox.
//! They measure and report; a threshold that is not met is said, not failed.

pub mod backends;
pub mod egress;
mod field;
mod inside;
mod jobs;
pub mod ledger;
mod memory;
pub mod policy;
mod runners;
mod samples;
pub mod scan;
pub mod service;
mod start;
mod step_table;
mod throughput;
pub mod workspace;

use crate::{place, release};
use field::Field;
use samples::{Samples, Table};

pub struct Amounts {
    /// Starts of everything quick.
    pub starts: usize,
    /// Starts of peers that take a tenth of a second and more.
    pub slow_starts: usize,
    pub throughput_seconds: f64,
    pub throughput_rounds: usize,
    pub inside_rounds: usize,
    pub traces: usize,
    pub files_in_tree: usize,
}

const FULL: Amounts = Amounts {
    starts: 200,
    slow_starts: 20,
    throughput_seconds: 2.0,
    throughput_rounds: 3,
    inside_rounds: 10,
    traces: 50,
    files_in_tree: 20_000,
};
const QUICK: Amounts = Amounts {
    starts: 10,
    slow_starts: 2,
    throughput_seconds: 0.3,
    throughput_rounds: 1,
    inside_rounds: 1,
    traces: 5,
    files_in_tree: 500,
};

/// What every benchmark is asked for.
struct Wish {
    quick: bool,
    markdown: bool,
    runs: Option<usize>,
}

impl Wish {
    fn read(bench: &str, flags: &[&str]) -> Result<Wish, String> {
        let mut wish = Wish { quick: false, markdown: false, runs: None };
        let mut rest = flags.iter();
        while let Some(flag) = rest.next() {
            match *flag {
                "--quick" => wish.quick = true,
                "--markdown" => wish.markdown = true,
                "--runs" => {
                    let number = rest.next().and_then(|number| number.parse().ok()).filter(|number| *number > 0);
                    wish.runs = Some(number.ok_or("--runs needs a number, such as 500")?);
                }
                unknown => return Err(format!("`bench {bench}` has no flag `{unknown}`; see `cargo xtask --help`")),
            }
        }
        match place::are_we_root() {
            true => Ok(wish),
            false => Err("the benchmark needs root: it measures as root and as an ordinary user".to_owned()),
        }
    }
}

pub fn native(flags: &[&str]) -> Result<(), String> {
    let Wish { quick, markdown, runs } = Wish::read("native", flags)?;
    let mut amounts = if quick { QUICK } else { FULL };
    amounts.starts = runs.unwrap_or(amounts.starts);
    release::everything()?;

    let field = Field::make()?;
    let mut samples = Samples::open("native")?;
    let mut tables = Vec::new();
    tables.extend(start::measure(&field, &amounts, &mut samples)?);
    tables.push(throughput::measure(&field, &amounts, &mut samples)?);
    tables.extend(inside::measure(&field, &amounts, &mut samples)?);
    tables.push(memory::measure(&field, &mut samples)?);
    tables.push(step_table::measure(&field, &amounts, &mut samples)?);
    report(tables, quick, markdown, &samples);
    Ok(())
}

fn report(mut tables: Vec<Table>, quick: bool, markdown: bool, samples: &Samples) {
    println!("\n{}", host());
    if quick {
        println!("a quick run: it shows that all can be measured; the numbers prove nothing");
        tables.iter_mut().for_each(Table::leave_out_wanted);
    }
    for table in &tables {
        println!("\n{}", if markdown { table.to_markdown() } else { table.to_plain() });
    }
    println!("\nraw samples: {}", samples.path.display());
}

/// Numbers mean little without the machine they are from.
fn host() -> String {
    let cpus = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model =
        cpus.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": ")).map_or("", |(_, name)| name);
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let processors = std::thread::available_parallelism().map_or(1, |number| number.get());
    format!(
        "{processors} × {}, Linux {}, load {} at the end",
        model.trim(),
        kernel.trim(),
        load.split_whitespace().next().unwrap_or_default()
    )
}
