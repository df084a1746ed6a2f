//! `guests/module.rs`, built for whoever runs it. A tool-chain builds it in a second or two, once for all tests.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::contestant::{belljar, built};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// For the machine itself: what an attack does where there is no sandbox.
    Machine,
    /// WASI preview 1.
    Plain,
    /// A component, of preview 2.
    Component,
}

impl Kind {
    pub const MODULES: [Kind; 2] = [Kind::Plain, Kind::Component];

    fn target(self) -> Option<&'static str> {
        match self {
            Kind::Machine => None,
            Kind::Plain => Some("wasm32-wasip1"),
            Kind::Component => Some("wasm32-wasip2"),
        }
    }

    pub fn file(self) -> &'static str {
        match self {
            Kind::Machine => "module",
            Kind::Plain => "plain.wasm",
            Kind::Component => "component.wasm",
        }
    }
}

/// The program, built anew if it is older than what it is built from.
pub fn guest(kind: Kind) -> Result<PathBuf, String> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("guests/module.rs");
    let folder = built("guests");
    fs::create_dir_all(&folder).map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
    let ready = folder.join(kind.file());
    // Tests are processes of their own, and all begin at once.
    let lock = File::create(folder.join(format!("{}.lock", kind.file()))).map_err(|error| error.to_string())?;
    lock.lock().map_err(|error| error.to_string())?;
    let age = |path: &Path| fs::metadata(path).and_then(|stat| stat.modified()).ok();
    if age(&ready) > age(&source) {
        return Ok(ready);
    }
    let beside = folder.join(format!("{}.new", kind.file()));
    let mut rustc = Command::new("rustc");
    rustc.args(["--edition", "2024", "-O", "-C", "panic=abort", "-C", "strip=symbols"]);
    kind.target().map(|target| rustc.args(["--target", target]));
    let said = rustc.arg("-o").arg(&beside).arg(&source).output().map_err(|error| format!("rustc: {error}"))?;
    if !said.status.success() {
        return Err(format!("cannot build the guest: {}", String::from_utf8_lossy(&said.stderr)));
    }
    fs::rename(&beside, &ready).map_err(|error| error.to_string())?;
    Ok(ready)
}

/// Why modules can't be tried here, if they can't.
pub fn why_not() -> Option<String> {
    let worker = belljar().with_file_name("belljar-wasm");
    if !worker.exists() {
        return Some(format!("there is no {}", worker.display()));
    }
    Kind::MODULES.iter().find_map(|kind| {
        let target = kind.target()?;
        let said = Command::new("rustc").args(["--print", "target-libdir", "--target", target]).output().ok()?;
        let folder = String::from_utf8_lossy(&said.stdout).trim().to_owned();
        (!Path::new(&folder).is_dir()).then(|| format!("the Rust target {target} is not installed"))
    })
}

/// Where an interpreter would be.
pub fn interpreter(language: &str) -> PathBuf {
    belljar().with_file_name("interpreters").join(language).join("installed.json")
}
