//! `belljar bench`: backends beside each other, as a table.

use std::path::{Path, PathBuf};

use clap::ArgMatches;
use model::{Benchmark, BenchmarkWish, Compared, Service};

use crate::kept;
use crate::words::{self, Layout};

pub fn bench(matches: &ArgMatches, service: &dyn Service) -> u8 {
    let wish = BenchmarkWish {
        candidates: Vec::new(),
        backends: matches.get_many::<String>("backends").into_iter().flatten().cloned().collect(),
        language: matches.get_one::<String>("lang").cloned(),
        rounds: matches.get_one::<u64>("rounds").copied().unwrap_or(20) as usize,
        longest: matches.get_one("longest").copied().unwrap_or_default(),
        image: matches.get_one::<String>("image").cloned(),
    };
    let chart = matches.get_one::<PathBuf>("chart");
    // Before minutes are spent on it.
    if let Some(file) = chart.filter(|file| !is_svg(file)) {
        return kept::complain(&no_svg(file));
    }
    let comparison = match service.compare(&wish) {
        Ok(comparison) => comparison,
        Err(trouble) => return kept::complain(&trouble),
    };
    if let Some(file) = chart
        && let Err(error) = std::fs::write(file, service.chart(&comparison))
    {
        return kept::complain(&cannot_write(file, &error));
    }
    let text = match matches.get_flag("json") {
        true => words::json(&comparison, Layout::Page),
        false => Ok(words::page(lines(&comparison))),
    };
    let measured = comparison.rows.iter().any(|row| !row.peer && row.start.is_some());
    if words::print(text) && measured { 0 } else { 1 }
}

fn is_svg(file: &Path) -> bool {
    file.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("svg"))
}

fn no_svg(file: &Path) -> model::Trouble {
    model::Trouble {
        message: format!("`{}` would not be what its name says: charts are SVG", file.display()),
        fix: "name a file that ends in `.svg`; other programs make other pictures of it, such as `rsvg-convert`"
            .to_owned(),
    }
}

fn cannot_write(file: &Path, error: &std::io::Error) -> model::Trouble {
    model::Trouble {
        message: format!("cannot write `{}`: {error}", file.display()),
        fix: "name a file in a folder that can be written to".to_owned(),
    }
}

/// One row a contestant; what was not measured is a dash.
pub fn lines(comparison: &Benchmark) -> Vec<String> {
    let headings = ["", "first", "p50", "p99", "×", "starts/s", "memory", "64 MiB", "a call", "programs", "attacks"];
    let bare = comparison.rows.first().and_then(|row| row.start.as_ref()).map(|spread| spread.p50);
    let mut table = vec![headings.map(str::to_owned).to_vec()];
    table.extend(comparison.rows.iter().filter(|row| row.skipped.is_none()).map(|row| cells(row, bare)));
    let widths: Vec<usize> = (0..headings.len())
        .map(|column| table.iter().map(|row| row[column].chars().count()).max().unwrap_or(0))
        .collect();
    let mut lines = vec![comparison.machine.clone(), String::new()];
    for row in &table {
        let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, width))| match column {
            0 => format!("{cell:<width$}"),
            _ => format!("{cell:>width$}"),
        });
        lines.push(cells.collect::<Vec<_>>().join("  ").trim_end().to_owned());
    }
    for row in &comparison.rows {
        if let Some(why) = &row.skipped {
            lines.push(format!("{}: skipped: {}", row.name, why.escape_debug()));
        }
    }
    let differ: Vec<String> = comparison
        .programs
        .iter()
        .filter_map(|tried| {
            let not: Vec<String> = tried
                .results
                .iter()
                .filter(|(_, result)| result != "runs")
                .map(|(name, result)| format!("{name}: {}", result.escape_debug()))
                .collect();
            (!not.is_empty()).then(|| format!("  {:<36} {}", tried.program, not.join("; ")))
        })
        .collect();
    if !differ.is_empty() {
        lines.extend([String::new(), "programs that do not run everywhere".to_owned()]);
        lines.extend(differ);
    }
    lines.push(String::new());
    lines.push(format!(
        "first, p50, p99: milliseconds from start to end; ×: of no sandbox; 64 MiB: milliseconds to write and read them in the \
         workspace; a call: of the program to the outside; {:.0} s in all{}",
        comparison.seconds,
        if comparison.cut_short { ", cut short by `--longest`" } else { "" }
    ));
    lines
}

fn cells(row: &Compared, bare: Option<f64>) -> Vec<String> {
    let dash = || "–".to_owned();
    let milliseconds = |value: Option<f64>| value.map_or_else(dash, |value| format!("{value:.1}"));
    let of = |pair: Option<(usize, usize)>| pair.map_or_else(dash, |(some, all)| format!("{some}/{all}"));
    let p50 = row.start.as_ref().map(|spread| spread.p50);
    vec![
        row.name.clone(),
        milliseconds(row.first),
        milliseconds(p50),
        milliseconds(row.start.as_ref().map(|spread| spread.p99)),
        p50.zip(bare).map_or_else(dash, |(own, bare)| format!("{:.1}", own / bare)),
        row.throughput.map_or_else(dash, |value| format!("{value:.0}")),
        row.memory.map_or_else(dash, |bytes| format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))),
        milliseconds(row.files),
        row.call.map_or_else(dash, |value| format!("{value:.0} ns")),
        of(row.programs),
        of(row.attacks),
    ]
}
