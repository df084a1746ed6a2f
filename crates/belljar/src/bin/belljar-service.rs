//! The binary that serves: the same parts as `belljar`, behind the HTTP API.

#[path = "../parts.rs"]
mod parts;

use std::path::PathBuf;
use std::process::ExitCode;

use engine::Engine;
use model::{Service, Watch};

#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;

fn main() -> ExitCode {
    // Inside gVisor, where this same program is the first process.
    if std::env::args_os().next().is_some_and(|name| name == guest::usher::NAME) {
        return guest::usher::begin();
    }
    ExitCode::from(http::answer(std::env::args_os(), env!("CARGO_PKG_VERSION"), make))
}

/// Nobody sits here: who is asked answers elsewhere.
fn make(state: Option<PathBuf>, watch: Box<dyn Watch>) -> Box<dyn Service> {
    Box::new(Engine::new(parts::parts(state, watch, None)))
}
