//! The binary that serves: the same parts as `belljar`, behind the HTTP API and MCP.

#[path = "../parts.rs"]
mod parts;

use std::path::PathBuf;
use std::process::ExitCode;

use engine::Engine;
use model::{Service, Watch};

#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: sys::allocator::Allocator = sys::allocator::Allocator::new();

fn main() -> ExitCode {
    #[cfg(target_env = "musl")]
    sys::allocator::keep_small_blocks();
    // Inside gVisor, where this same program is the first process.
    if std::env::args_os().next().is_some_and(|name| name == guest::usher::NAME) {
        return guest::usher::begin();
    }
    let words: Vec<_> = std::env::args_os().collect();
    let version = env!("CARGO_PKG_VERSION");
    ExitCode::from(match mcp::is_meant(&words) {
        true => mcp::answer(words, version, make, warm),
        false => http::answer(words, version, make, warm),
    })
}

/// Nobody sits here: who is asked answers elsewhere.
fn make(state: Option<PathBuf>, watch: Box<dyn Watch>) -> Box<dyn Service> {
    Box::new(Engine::new(parts::parts(state, watch, None)))
}

fn warm(interpreter: &service::Interpreter, door: std::os::fd::OwnedFd) -> std::process::Command {
    native::warm::zygote(&interpreter.program, &interpreter.preload, door)
}
