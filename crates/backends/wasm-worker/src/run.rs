//! One run, with this program's own input, output and end.

use std::io::Write;

use wasmtime::error::Context;
use wasmtime::{Result, Trap};

use crate::engine;
use crate::guest::{self, Guest};
use crate::limits::Limits;
use crate::precompiled;
use crate::program::{Code, End};
use crate::words::{Job, Source};

/// A module that did what it may not ends as an aborted program does.
const ABORTED: u8 = 134;

pub fn run(job: Job) -> Result<u8> {
    let Job { program, surroundings, arguments } = job;
    let engine = engine::engine()?;
    let code = match &program {
        Source::Module(file) => Code::compile(&engine, file)?,
        Source::Compiled(file) => precompiled::load(&engine, file)?,
    };
    let program = code.link(&engine)?;
    let mut context = Guest::prepare(&surroundings)?;
    for word in &arguments {
        context.arg(guest::text(word)?);
    }
    context.envs(&guest::variables(std::env::vars_os())?);
    context.inherit_stdio();
    let mut store = Guest { wasi: context.build_p1(), limits: Limits::new(surroundings.memory) }.store(&engine);
    // Nobody counts here: whoever watches the jar ends all of it, in the middle of a call or not.
    store.set_epoch_deadline(u64::MAX / 2);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot begin")?;
    let ended = runtime.block_on(program.run(&mut store))?;
    std::io::stdout().flush().unwrap_or_default();
    // A thread may still wait for input that nobody wants any more.
    runtime.shutdown_background();
    Ok(match ended {
        End::Code(code) => u8::try_from(code).unwrap_or(u8::MAX),
        End::Trap(error) => {
            writeln!(std::io::stderr(), "{}", trap(&error)).unwrap_or_default();
            ABORTED
        }
    })
}

/// For people: what happened, and where in the module.
pub fn trap(error: &wasmtime::Error) -> String {
    match error.downcast_ref::<Trap>() {
        Some(trap) => format!("belljar-wasm: the module was ended: {trap}\n{error}"),
        None => format!("belljar-wasm: the module was ended: {error:#}"),
    }
}
