//! The binary: chooses the parts and joins them.

use std::process::ExitCode;

use engine::{Engine, Parts};
use model::{Backend, RuleLanguage};

/// musl's own gives every few pages back to the kernel and asks for them again: a tenth of all calls of a start.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;

/// Every backend, the cheapest first. A new one is a line here.
fn backends() -> Vec<Box<dyn Backend>> {
    vec![
        Box::new(native::Native::new()),
        Box::new(wasm::Wasm::new(workspace::state_folder())),
        Box::new(gvisor::Gvisor::new(workspace::state_folder())),
        Box::new(container::Container::new(workspace::state_folder())),
    ]
}

/// Every language that rules may be written in, besides our own. A new one is a line here.
fn languages() -> Vec<Box<dyn RuleLanguage>> {
    vec![
        #[cfg(feature = "cedar")]
        Box::new(cedar::Cedar),
    ]
}

fn main() -> ExitCode {
    // Inside gVisor, where this same program is the first process.
    if std::env::args_os().next().is_some_and(|name| name == guest::usher::NAME) {
        return guest::usher::begin();
    }
    let version = env!("CARGO_PKG_VERSION");
    let engine = Engine::new(Parts {
        backends: backends(),
        languages: languages(),
        watch: Box::new(cli::Terminal::default()),
        person: Some(Box::new(cli::Prompt)),
        comparisons: Box::new(comparison::Bench {
            belljar: std::env::current_exe().unwrap_or_else(|_| "belljar".into()),
        }),
        version,
    });
    ExitCode::from(cli::answer(std::env::args_os(), &engine, version))
}
