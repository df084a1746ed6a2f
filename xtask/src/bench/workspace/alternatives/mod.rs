//! Other ways to a copy that can be written to and thrown away, beside belljar's.

mod btrfs;
mod docker;
mod git;

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use testkit::Who;
use testkit::contestant::belljar;

use super::Amounts;
use super::trees::Tree;
use crate::bench::field::Field;
use crate::bench::runners::{quiet, time};
use crate::bench::samples::{Samples, Table, median, milliseconds};
use crate::steps;

/// One way: how to get a copy, and how to throw it away.
struct Way {
    name: &'static str,
    get: Command,
    throw_away: Command,
    remark: &'static str,
    times: [Vec<Duration>; 2],
}

impl Way {
    fn new(name: &'static str, get: Command, throw_away: Command, remark: &'static str) -> Way {
        Way { name, get, throw_away, remark, times: [Vec::new(), Vec::new()] }
    }
}

pub fn measure(field: &Field, tree: &Tree, amounts: &Amounts, samples: &mut Samples) -> Result<Table, String> {
    let copy = field.root.join("copy");
    let mut ways = vec![
        ours(field, tree),
        Way::new("cp -a", command("cp", &["-a"], &[&tree.path, &copy]), command("rm", &["-rf"], &[&copy]), ""),
    ];
    let mut missed = Vec::new();
    match git::way(tree, &copy) {
        Ok(way) => ways.push(way),
        Err(why) => missed.push((git::NAME, why)),
    }
    // These two hold a mount and an image until the end.
    let mounted = btrfs::mount(tree);
    match &mounted {
        Ok(mounted) => ways.extend(mounted.ways()),
        Err(why) => missed.extend(btrfs::NAMES.map(|name| (name, why.clone()))),
    }
    let image = docker::image(tree);
    match &image {
        Ok(image) => ways.push(image.way()),
        Err(why) => missed.push((docker::NAME, why.clone())),
    }
    for round in 0..amounts.alternatives {
        for way in &mut ways {
            println!("alternatives: {}, {} of {}", way.name, round + 1, amounts.alternatives);
            for (times, command, what) in
                [(0, &mut way.get, "get a copy"), (1, &mut way.throw_away, "throw a copy away")]
            {
                // What was written before is not to be paid for here.
                settle(&tree.path)?;
                let took = time(command)?;
                samples.keep(what, way.name, "root", took.as_nanos() as f64 / 1e3, "µs")?;
                way.times[times].push(took);
            }
        }
    }
    Ok(table(tree, &ways, &missed))
}

fn ours(field: &Field, tree: &Tree) -> Way {
    let with = |words: &[&str]| {
        let mut command = Command::new(belljar());
        quiet(command.args(words), field, Who::Root, &tree.path);
        command
    };
    Way::new("belljar create, rm", with(&["create", "--name", "copy"]), with(&["rm", "copy"]), "")
}

fn table(tree: &Tree, ways: &[Way], missed: &[(&str, String)]) -> Table {
    let title = format!("A copy of {} to write to, and throwing it away, as root, medians", tree.size());
    let mut table = Table::new(title, &["", "runs", "get it ms", "throw it away ms", "both vs belljar", "remark"]);
    let both = |way: &Way| (median(&way.times[0]) + median(&way.times[1])).as_secs_f64();
    let ours = ways.first().map_or(0.0, both);
    for way in ways {
        table.rows.push(vec![
            way.name.to_owned(),
            way.times[0].len().to_string(),
            milliseconds(median(&way.times[0])),
            milliseconds(median(&way.times[1])),
            format!("{:.1} ×", both(way) / ours),
            way.remark.to_owned(),
        ]);
    }
    for (name, why) in missed {
        let nothing = || "–".to_owned();
        let remark = format!("not tried: {why}");
        table.rows.push(vec![(*name).to_owned(), "0".to_owned(), nothing(), nothing(), nothing(), remark]);
    }
    table
}

fn command(program: &str, words: &[&str], paths: &[&Path]) -> Command {
    let mut command = Command::new(program);
    command.args(words).args(paths).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

fn settle(path: &Path) -> Result<(), String> {
    time(&mut command("sync", &["--file-system"], &[path])).map(drop)
}

/// Something that is done before the measuring.
fn first(mut command: Command) -> Result<(), String> {
    let output = command.stdout(Stdio::null()).stderr(Stdio::piped()).output();
    let output = output.map_err(|error| format!("cannot run `{}`: {error}", steps::words(&command)))?;
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    if output.status.success() { Ok(()) } else { Err(format!("`{}` failed: {said}", steps::words(&command))) }
}
