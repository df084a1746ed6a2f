//! The binary as it is released: one static file that runs on any Linux of its processor. It is what the tests and
//! the benchmarks look at.
//!
//! Built against musl: glibc asks the processor some forty questions at every start, and each is a trip to the
//! hypervisor where there is one: a twentieth of a whole sandbox.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{place, steps};

/// `cargo xtask release`: builds it and says where it is.
pub fn build() -> Result<(), String> {
    let belljar = make(&["belljar-wasm-worker"])?;
    let beside = ["belljar-service", "belljar-wasm"].map(|name| belljar.with_file_name(name));
    for built in std::iter::once(belljar).chain(beside) {
        let size = std::fs::metadata(&built).map_err(|error| format!("{}: {error}", built.display()))?.len();
        println!("{} ({:.1} MiB)", built.display(), size as f64 / f64::from(1 << 20));
    }
    Ok(())
}

/// Does a task again in a process for which the binary under test is the released one, unless one was chosen. `None`
/// if it is to be done here: then the default build is the one under test.
pub fn instead(words: &[&str]) -> Option<Result<(), String>> {
    if std::env::var_os("BELLJAR").is_some() {
        return None;
    }
    let built = match make(&[]) {
        Ok(built) => built,
        Err(why) => {
            println!("the default build is looked at, not the one that is released: {why}");
            return None;
        }
    };
    let own = match std::env::current_exe() {
        Ok(own) => own,
        Err(error) => return Some(Err(format!("cannot find myself: {error}"))),
    };
    Some(steps::run(Command::new(own).args(words).env("BELLJAR", built)))
}

/// belljar itself, and these.
fn make(packages: &[&str]) -> Result<PathBuf, String> {
    let target = format!("{}-unknown-linux-musl", std::env::consts::ARCH);
    install(&target)?;
    let mut cargo = Command::new("cargo");
    cargo.current_dir(place::tree()).args(["build", "--quiet", "--release", "--package", "belljar"]);
    cargo.args(packages.iter().flat_map(|package| ["--package", package]));
    steps::run(cargo.args(["--target", &target]))?;
    Ok(built(&target).join("belljar"))
}

fn built(target: &str) -> PathBuf {
    let targets = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| place::tree().join("target"), PathBuf::from);
    targets.join(target).join("release")
}

/// The worker for modules is the same whatever it is linked against, and takes longer to build than all else: tests and
/// benchmarks look at the one of the default build, which they build anyway.
pub fn with_its_worker(belljar: &Path) -> Result<(), String> {
    let worker = belljar.with_file_name("belljar-wasm");
    let built = built(&format!("{}-unknown-linux-gnu", std::env::consts::ARCH)).join("belljar-wasm");
    if worker == built || !built.exists() {
        return Ok(());
    }
    // Removed first: one that still runs can't be written to.
    drop(std::fs::remove_file(&worker));
    std::fs::copy(&built, &worker).map(drop).map_err(|error| format!("{}: {error}", worker.display()))
}

/// The standard library for musl, which a stock tool-chain can fetch.
fn install(target: &str) -> Result<(), String> {
    let fix = format!("install the Rust target {target}");
    let rustup = place::program("rustup").ok_or_else(|| format!("there is no rustup; {fix}"))?;
    let installed = place::said(Command::new(&rustup).args(["target", "list", "--installed"])).unwrap_or_default();
    if installed.lines().any(|line| line == target) {
        return Ok(());
    }
    println!("installing the Rust target {target}");
    steps::run(Command::new(rustup).args(["target", "add", target])).map_err(|error| format!("{error}; {fix}"))
}
