//! The program that stands in a module's place inside a native sandbox: compiles modules, and runs them.
//!
//! It is told what to do by words that only belljar's backend for modules writes, and believes nothing that a module says.
//! Whatever a module breaks here, it breaks inside the jar.

mod compile;
mod engine;
mod guest;
mod limits;
mod precompiled;
mod program;
mod run;
mod serve;
mod wire;
mod words;

use std::io::Write;
use std::process::ExitCode;

use words::Words;

#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;

/// The module can't be run at all; as a shell has it.
const CANNOT_RUN: u8 = 126;

fn main() -> ExitCode {
    let ended = Words::read(std::env::args_os().skip(1)).map_err(wasmtime::Error::msg).and_then(|words| match words {
        Words::Version => said(&engine::version()),
        Words::Compile { module } => compile::compile(&module).map(|()| 0),
        Words::Run(job) => run::run(job),
        Words::Serve(offer) => serve::serve(&offer).map(|()| 0),
    });
    match ended {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            complain(&error);
            ExitCode::from(CANNOT_RUN)
        }
    }
}

fn said(text: &str) -> wasmtime::Result<u8> {
    writeln!(std::io::stdout(), "{text}")?;
    Ok(0)
}

/// To whoever watches. If nobody does, there is nobody to tell that either.
fn complain(error: &wasmtime::Error) {
    writeln!(std::io::stderr(), "belljar-wasm: {error:#}").unwrap_or_default();
}
