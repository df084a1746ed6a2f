//! `cargo xtask bench backends`: each backend beside what it is built on, in the same run. A backend is a file and a line.

mod gvisor;

use super::samples::{Samples, Table};
use super::{Wish, build, report};

/// Measures so many times.
type Part = fn(usize, &mut Samples) -> Result<Vec<Table>, String>;

const PARTS: &[(&str, Part)] = &[("gvisor", gvisor::measure)];

pub fn backends(flags: &[&str]) -> Result<(), String> {
    let Wish { quick, markdown, runs } = Wish::read("backends", flags)?;
    let runs = runs.unwrap_or(if quick { 3 } else { 30 });
    build()?;
    let mut samples = Samples::open("backends")?;
    let mut tables = Vec::new();
    for (name, part) in PARTS {
        println!("{name}: {runs} runs");
        tables.extend(part(runs, &mut samples)?);
    }
    report(tables, quick, markdown, &samples);
    Ok(())
}
