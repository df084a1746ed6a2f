//! `cargo xtask bench workspace`: layers over small and large projects, the same jobs inside and outside, and other
//! ways to get a copy to write to.

mod alternatives;
mod growth;
mod inside;
mod operations;
mod trees;

use std::path::Path;
use std::process::Command;

use testkit::Who;

use super::field::Field;
use super::report;
use super::samples::Samples;
use crate::place;
use operations::Bench;
use trees::Tree;

struct Amounts {
    /// Starts over each size.
    starts: usize,
    /// Snapshots, forks and discards over each size.
    operations: usize,
    /// Looks at and takings of changes over each size.
    changes: usize,
    inside_rounds: usize,
    alternatives: usize,
    /// Files of the large project.
    large: usize,
    /// Files of the project that is copied in other ways.
    copied: usize,
    /// Files of the repository that jobs are done in.
    repository: usize,
}

const FULL: Amounts = Amounts {
    starts: 200,
    operations: 100,
    changes: 50,
    inside_rounds: 10,
    alternatives: 3,
    large: 100_000,
    copied: 100_000,
    repository: 5000,
};
const QUICK: Amounts = Amounts {
    starts: 10,
    operations: 5,
    changes: 3,
    inside_rounds: 1,
    alternatives: 1,
    large: 20_000,
    copied: 1000,
    repository: 1000,
};

pub fn workspace(flags: &[&str]) -> Result<(), String> {
    let super::Wish { quick, markdown, runs } = super::Wish::read("workspace", flags)?;
    let mut amounts = if quick { QUICK } else { FULL };
    if let Some(runs) = runs {
        (amounts.starts, amounts.operations, amounts.changes) = (runs, runs, runs);
    }
    if std::env::var_os("BELLJAR").is_none() {
        crate::release::everything()?;
    }

    let [tiny, small, large] = [Tree::find(10)?, Tree::find(1000)?, Tree::find(amounts.large)?];
    if quick {
        println!("a quick run: the large project has only {}, the copied one {} files", large.size(), amounts.copied);
    }
    let field = Field::make()?;
    let mut samples = Samples::open("workspace")?;
    let mut tables = Vec::new();
    for who in [Who::Root, Who::Ordinary] {
        for tree in [&tiny, &small, &large] {
            tree.hand_to(who)?;
        }
        let bench = Bench { field: &field, who };
        tables.push(operations::measure(&bench, [&tiny, &small, &large], &amounts, &mut samples)?);
    }
    tables.extend(inside::measure(&field, &amounts, &mut samples)?);
    let copied = Tree::find(amounts.copied)?;
    copied.hand_to(Who::Root)?;
    tables.push(alternatives::measure(&field, &copied, &amounts, &mut samples)?);
    println!("\nprojects: {}\nlayers and copies: {}", filesystem(&large.path), filesystem(&field.root));
    report(tables, quick, markdown, &samples);
    Ok(())
}

/// What a path is on: whether removing waits for the disk, as with `discard`, is seen in every number.
fn filesystem(path: &Path) -> String {
    let mut command = Command::new("findmnt");
    command.args(["--noheadings", "--first-only", "--output", "FSTYPE,OPTIONS", "--target"]).arg(path);
    place::said(&mut command).unwrap_or_else(|| "a filesystem that findmnt does not know".to_owned())
}
