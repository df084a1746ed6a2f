//! The binary as it is released: one static file that runs on any Linux of its processor. It is what the tests and
//! the benchmarks look at.
//!
//! Built against musl: glibc asks the processor some forty questions at every start, and each is a trip to the
//! hypervisor where there is one: a twentieth of a whole sandbox.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{needs, place, steps};

/// The engine of modules brings features into libraries that belljar uses too. Built for itself, it does not have all of
/// these built a second time; and belljar is tried as it is released.
pub const WORKER: &str = "belljar-wasm-worker";

/// `cargo xtask release`: builds it and says where it is.
pub fn build() -> Result<(), String> {
    let target = released();
    install(&target)?;
    make(&target, &["--package", "belljar"])?;
    make(&target, &["--package", WORKER])?;
    for name in ["belljar", "belljar-service", "belljar-wasm"] {
        let built = folder(&target).join(name);
        let size = std::fs::metadata(&built).map_err(|error| format!("{}: {error}", built.display()))?.len();
        println!("{} ({:.1} MiB)", built.display(), size as f64 / f64::from(1 << 20));
    }
    Ok(())
}

/// The binary with the names of its functions, and the linker's map of them.
pub fn with_symbols(map: &Path) -> Result<PathBuf, String> {
    let target = released();
    install(&target)?;
    let mut cargo = Command::new("cargo");
    cargo.current_dir(place::tree()).args(["rustc", "--release", "--target", &target]);
    cargo.args(["--package", "belljar", "--bin", "belljar", "--", "-C", "strip=none", "-C"]);
    steps::run(cargo.arg(format!("link-arg=-Wl,-Map={}", map.display())))?;
    Ok(folder(&target).join("belljar"))
}

/// Does a task again in a process for which the binary under test is the released one, and which is itself built like it,
/// so that everything is built once. `None` if it is to be done here: then the default build is the one under test.
pub fn instead(words: &[&str]) -> Option<Result<(), String>> {
    if std::env::var_os("BELLJAR").is_some() {
        return None;
    }
    let target = released();
    if let Err(why) = install(&target).and_then(|()| make(&target, &["--package", "belljar", "--package", "xtask"])) {
        println!("the default build is looked at, not the one that is released: {why}");
        return None;
    }
    let built = folder(&target);
    Some(steps::run(Command::new(built.join("xtask")).args(words).env("BELLJAR", built.join("belljar"))))
}

/// Everything, tests and examples included, for what this program is built for itself.
pub fn everything() -> Result<(), String> {
    let target = own();
    make(&target, &["--workspace", "--exclude", WORKER, "--all-targets"])?;
    worker()
}

/// The worker does the same whatever it is linked against: tests and benchmarks look at the usual build of it.
fn worker() -> Result<(), String> {
    make(&usual(), &["--package", WORKER, "--all-targets"])?;
    let [built, beside] = [usual(), own()].map(|target| folder(&target).join("belljar-wasm"));
    if built == beside {
        return Ok(());
    }
    // Removed first: one that still runs can't be written to.
    drop(std::fs::remove_file(&beside));
    std::fs::copy(&built, &beside).map(drop).map_err(|error| format!("{}: {error}", beside.display()))
}

/// What the worker is built for where it is tried.
pub fn usual() -> String {
    target("gnu")
}

/// What this program is built for.
pub fn own() -> String {
    target(if cfg!(target_env = "musl") { "musl" } else { "gnu" })
}

fn released() -> String {
    target("musl")
}

fn target(library: &str) -> String {
    format!("{}-unknown-linux-{library}", std::env::consts::ARCH)
}

fn make(target: &str, what: &[&str]) -> Result<(), String> {
    let mut cargo = Command::new("cargo");
    cargo.current_dir(place::tree()).args(["build", "--release", "--target", target]).args(what);
    steps::run(&mut cargo)
}

fn folder(target: &str) -> PathBuf {
    place::targets().join(target).join("release")
}

/// The compiler and the standard library for musl, which a stock tool-chain can fetch.
fn install(target: &str) -> Result<(), String> {
    needs::compiler()?;
    let fix = format!("install the Rust target {target}");
    let rustup = place::program("rustup").ok_or_else(|| format!("there is no rustup; {fix}"))?;
    let installed = place::said(Command::new(&rustup).args(["target", "list", "--installed"])).unwrap_or_default();
    if installed.lines().any(|line| line == target) {
        return Ok(());
    }
    println!("installing the Rust target {target}");
    steps::run(Command::new(rustup).args(["target", "add", target])).map_err(|error| format!("{error}; {fix}"))
}
