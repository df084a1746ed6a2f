//! The binary: chooses the parts and joins them.

mod parts;

use std::process::ExitCode;

use engine::Engine;

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
    let watch = Box::new(cli::Terminal::default());
    let engine = Engine::new(parts::parts(None, watch, Some(Box::new(cli::Prompt))));
    ExitCode::from(cli::answer(std::env::args_os(), &engine, env!("CARGO_PKG_VERSION")))
}
