//! `cargo xtask test`: what CI runs, in the order in which failures are cheapest to find.

use std::path::PathBuf;
use std::process::Command;

use testkit::contestant::{TEST_USER, belljar, peers_folder};

use crate::steps::Steps;
use crate::{bench, interpreters, needs, place, release, structure, threats};

pub fn test() -> Result<(), String> {
    let root = place::are_we_root();
    let mut steps = Steps::default();
    if root {
        steps.check("what the tests need", needs::install);
    } else {
        say_what_is_skipped();
    }
    steps.run("format", cargo().args(["fmt", "--all", "--check"]));
    // In the profile of all else, so that dependencies are not looked at twice.
    steps.run("lints", cargo().args(["clippy", "--release", "--workspace", "--all-targets", "--", "-D", "warnings"]));
    dependencies(&mut steps);
    steps.check("laws of the architecture", structure::check);
    steps.check("build", release::everything);
    steps.check("interpreters", || interpreters::install(belljar().parent().and_then(std::path::Path::to_str)));
    tests(&mut steps);
    if root {
        steps.check("matrix in THREATS.md", threats::check);
        steps.check("benchmark, a few samples", || bench::native(&["--quick"]));
        steps.check("benchmark of policies, a few samples", || bench::policy::policy(&["--quick"]));
        steps.check("benchmark of the record, a few samples", || bench::ledger::ledger(&["--quick"]));
        steps.check("benchmark of the way out, a few samples", || bench::egress::egress(&["--quick"]));
        steps.check("benchmark of scanners, a few samples", || bench::scan::scan(&["--quick"]));
    }
    steps.summary()
}

fn say_what_is_skipped() {
    println!("not root: nothing is installed, and these are skipped:");
    println!("- escapes and tool-chains as root and as another user, the matrix, the benchmark: they need root");
    for need in needs::missing() {
        println!("- {}: {} missing", need.without, need.what);
    }
}

fn dependencies(steps: &mut Steps) {
    let Some(program) = needs::cargo_deny() else {
        println!("\n== dependencies\nskipped: cargo-deny is not installed");
        return;
    };
    println!("\nadvisories are not checked: their database is a git repository that CI can't reach");
    // Also what only other systems need: nothing of that was built here, and it is looked at all the same.
    let mut fetch = cargo();
    fetch.args(["fetch", "--locked", "--quiet"]);
    steps.run("what dependencies are", &mut fetch);
    let mut command = Command::new(program);
    command
        .current_dir(place::tree())
        .args(["--offline", "--workspace", "check", "--hide-inclusion-graph", "bans", "licenses", "sources"]);
    steps.run("dependencies", &mut command);
}

/// Unit, golden, CLI and escape tests, each in a process of its own.
fn tests(steps: &mut Steps) {
    let copy = copy_for_the_test_user();
    if let Some(copy) = &copy {
        println!("\n{TEST_USER} can't reach the build: testing a copy, {}", copy.display());
    }
    let parts = [
        ("tests", release::own(), &["--workspace", "--exclude", release::WORKER, "--no-fail-fast"][..]),
        ("tests of the worker for modules", release::usual(), &["--package", release::WORKER][..]),
    ];
    for (heading, target, which) in parts {
        let mut command = cargo();
        command.args(["nextest", "run", "--release", "--target", &target]).args(which);
        command.envs(copy.iter().map(|copy| ("BELLJAR", copy)));
        let (mut passed, mut failed) = (0, 0);
        let held = steps.run_and_see(heading, &mut command, |line| {
            if let Some(counts) = counts(line) {
                (passed, failed) = counts;
            }
        });
        // The step itself counts for one; it must not hide or double the tests in it.
        steps.passed += if held { u64::saturating_sub(passed, 1) } else { passed };
        steps.failed += failed;
    }
}

/// `Summary [   1.2s] 12 tests run: 10 passed (1 slow), 1 failed, 1 timed out, 3 skipped`
fn counts(line: &str) -> Option<(u64, u64)> {
    let line = without_colours(line);
    let (_, counts) = line.trim_start().strip_prefix("Summary")?.split_once("run:")?;
    let of = |kind: &str| -> u64 {
        let part = counts.split(',').find(|part| part.contains(kind));
        part.and_then(|part| part.split_whitespace().next()?.parse().ok()).unwrap_or(0)
    };
    Some((of("passed"), of("failed") + of("timed out") + of("exec")))
}

fn without_colours(line: &str) -> String {
    let mut plain = String::new();
    let mut rest = line.chars();
    while let Some(letter) = rest.next() {
        match letter {
            '\u{1b}' => drop(rest.by_ref().find(|end| *end == 'm')),
            other => plain.push(other),
        }
    }
    plain
}

/// The build may lie below a home that only its owner may enter.
fn copy_for_the_test_user() -> Option<PathBuf> {
    let built = belljar();
    if !place::are_we_root() || place::open_to_all(&built) {
        return None;
    }
    let copy = peers_folder().join("belljar");
    std::fs::create_dir_all(peers_folder()).ok()?;
    // Removed first: one that still runs can't be written to.
    drop(std::fs::remove_file(&copy));
    std::fs::copy(&built, &copy).ok()?;
    // What runs modules, and what serves, is found beside it.
    for beside in ["belljar-service", "belljar-wasm", "interpreters"] {
        let mut command = Command::new("cp");
        command.args(["--recursive", "--remove-destination"]).arg(built.with_file_name(beside)).arg(peers_folder());
        if !command.status().is_ok_and(|status| status.success()) {
            println!("cannot copy {beside}: tests of modules, or of the service, are left out");
        }
    }
    Some(copy)
}

fn cargo() -> Command {
    let mut command = Command::new("cargo");
    command.current_dir(place::tree());
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counts_of_a_summary_are_read_with_and_without_colours() {
        assert_eq!(counts("     Summary [   0.3s] 12 tests run: 12 passed, 3 skipped"), Some((12, 0)));
        let coloured = "\u{1b}[31;1m     Summary\u{1b}[0m [ 1s] \u{1b}[1m9\u{1b}[0m/12 tests run: \u{1b}[1m6\u{1b}[0m passed (1 slow), 2 failed, 1 timed out, 0 skipped";
        assert_eq!(counts(coloured), Some((6, 3)));
        assert_eq!(counts("PASS something"), None);
    }
}
