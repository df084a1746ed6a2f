//! The record where others look: in their formats, read by their libraries, sent to places that may be away or hostile.

mod anchors;
mod cursors;
#[path = "../policy/desk.rs"]
mod desk;
mod formats;
mod place;
mod places;
mod secrets;

use std::path::PathBuf;

use belljar_testkit::twice;
use libtest_mimic::{Arguments, Trial};

fn main() {
    let mut trials: Vec<Trial> = formats::trials();
    for (name, check) in [places::ALL, cursors::ALL, anchors::ALL, secrets::ALL].concat() {
        trials.extend(twice::trials(name, check));
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

/// Python with the libraries of those who read exports.
pub fn python() -> PathBuf {
    let peers = PathBuf::from(std::env::var_os("BELLJAR_PEERS").unwrap_or_else(|| "/opt/belljar-peers".into()));
    peers.join("exports/bin/python3")
}

pub fn beside(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/exports").join(name)
}

/// Errors of all kinds, as what tests say.
pub fn told<T, E: std::fmt::Display>(result: Result<T, E>) -> Result<T, String> {
    result.map_err(|error| error.to_string())
}
