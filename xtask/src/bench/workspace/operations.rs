//! What belljar does with layers, each timed as a whole process over projects of different size.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use testkit::Who;
use testkit::contestant::belljar;

use super::Amounts;
use super::growth::{self, Operation};
use super::trees::{Change, Tree};
use crate::bench::field::Field;
use crate::bench::runners::{quiet, time};
use crate::bench::samples::{Samples, Table};

const NAME: &str = "bench";
/// What belljar calls a fork of it.
const FORK: &str = "bench-1";
const FEW: usize = 5;
const MANY: usize = 100;

pub struct Bench<'a> {
    pub field: &'a Field,
    pub who: Who,
}

impl Bench<'_> {
    pub fn belljar(&self, folder: &Path, words: &[&str]) -> Result<Duration, String> {
        time(quiet(Command::new(belljar()).args(words), self.field, self.who, folder))
    }

    /// A kept sandbox over a tree, with so many files changed.
    fn prepare(&self, tree: &Tree, files: usize) -> Result<Change, String> {
        let change = Change::new();
        self.belljar(&tree.path, &["create", "--name", NAME])?;
        self.belljar(&tree.path, &["exec", "-q", NAME, "--", "/bin/sh", "-c", &change.command(files)])?;
        Ok(change)
    }

    fn remove(&self, names: &[&str]) -> Result<(), String> {
        self.belljar(&self.field.root, &[&["rm"], names].concat()).map(drop)
    }
}

/// Everything as one user. The trees are a tiny, a small and a large one.
pub fn measure(
    bench: &Bench<'_>,
    [tiny, small, large]: [&Tree; 3],
    amounts: &Amounts,
    samples: &mut Samples,
) -> Result<Table, String> {
    let who = bench.who;
    let mut table = growth::table(who, large);

    // Without layers as well: the difference is what they cost at any size.
    let starts: [(_, &[_]); 2] = [("run", &[]), ("run --workspace-mode direct", &["--workspace-mode", "direct"])];
    for (name, flags) in starts {
        let operation = Operation { name, most_ratio: 1.2, most_ms: None };
        let words = [&["run", "-q"], flags, &["--", "/bin/true"]].concat();
        let once = |tree: &Tree| bench.belljar(&tree.path, &words);
        table.rows.push(growth::measure(&operation, who, [tiny, large], amounts.starts, samples, once)?);
    }

    // A sandbox of its own for each: snapshots and forks add layers to what they are made of.
    let leaves: [(_, &[_]); 3] = [("snapshot", &[NAME]), ("fork", &[NAME, FORK]), ("discard", &[NAME])];
    for (name, leaves) in leaves {
        let operation = Operation { name, most_ratio: 1.5, most_ms: Some(10.0) };
        let once = |tree: &Tree| {
            bench.prepare(tree, FEW)?;
            let took = bench.belljar(&tree.path, &[name, NAME])?;
            bench.remove(leaves)?;
            Ok(took)
        };
        table.rows.push(growth::measure(&operation, who, [tiny, large], amounts.operations, samples, once)?);
    }

    for (name, word) in [("diff of 100 changed files", "diff"), ("apply of 100 changed files", "apply")] {
        let operation = Operation { name, most_ratio: 2.0, most_ms: None };
        let once = |tree: &Tree| {
            let change = bench.prepare(tree, MANY)?;
            let took = bench.belljar(&tree.path, &[word, NAME])?;
            if change.is_in(tree)? != (word == "apply") {
                return Err(format!("`{word}` did not do what it is for in {}", tree.path.display()));
            }
            bench.remove(&[NAME])?;
            Ok(took)
        };
        table.rows.push(growth::measure(&operation, who, [small, large], amounts.changes, samples, once)?);
    }
    Ok(table)
}
