//! Warm: one worker in its jar that runs many requests, each in an instance of its own that is thrown away after it.
//!
//! Between two requests stand the walls of WebAssembly alone, so one worker serves one grant.

use std::io;
use std::thread;
use std::time::Duration;

use wasmtime::error::Context;
use wasmtime::{Engine, Result, bail};
use wasmtime_wasi::p2::pipe::{MemoryInputPipe, MemoryOutputPipe};

use crate::engine;
use crate::guest::Guest;
use crate::limits::Limits;
use crate::precompiled;
use crate::program::{End, Program};
use crate::run::trap;
use crate::wire::{self, Asking, Ended};
use crate::words::Offer;

/// How often a module that computes lets us look at the clock.
const TICK: Duration = Duration::from_millis(5);
/// Of each stream of one run; a module that says more is ended.
const OUTPUT: usize = 16 << 20;

pub fn serve(offer: &Offer) -> Result<()> {
    let engine = engine::engine()?;
    let load = |file| precompiled::load(&engine, file)?.link(&engine);
    let programs: Vec<Program> = offer.programs.iter().map(|file| load(file)).collect::<Result<_>>()?;
    let ticking = engine.weak();
    thread::spawn(move || {
        while let Some(engine) = ticking.upgrade() {
            engine.increment_epoch();
            drop(engine);
            thread::sleep(TICK);
        }
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot begin")?;
    let (mut input, mut output) = (io::stdin().lock(), io::stdout().lock());
    while let Some(asking) = wire::receive(&mut input)? {
        let Some(given) = wire::receive(&mut input)? else { bail!("a request without its input") };
        let asking: Asking = serde_json::from_slice(&asking).context("a request that is not understood")?;
        let answer = match programs.get(asking.program) {
            Some(program) => runtime.block_on(answer(&engine, program, offer, asking, given)),
            None => Answer::only(Ended::Refused(format!("there is no program {}", asking.program))),
        };
        wire::send(&mut output, &[&serde_json::to_vec(&answer.ended)?, &answer.output, &answer.error])?;
    }
    Ok(())
}

struct Answer {
    ended: Ended,
    output: Vec<u8>,
    error: Vec<u8>,
}

impl Answer {
    fn only(ended: Ended) -> Answer {
        Answer { ended, output: Vec::new(), error: Vec::new() }
    }
}

async fn answer(engine: &Engine, program: &Program, offer: &Offer, asking: Asking, given: Vec<u8>) -> Answer {
    let mut context = match Guest::prepare(&offer.surroundings) {
        Ok(context) => context,
        Err(error) => return Answer::only(Ended::Refused(format!("{error:#}"))),
    };
    let (output, error) = (MemoryOutputPipe::new(OUTPUT), MemoryOutputPipe::new(OUTPUT));
    context.args(&asking.arguments).envs(&asking.variables);
    context.stdin(MemoryInputPipe::new(given)).stdout(output.clone()).stderr(error.clone());
    let guest = Guest { wasi: context.build_p1(), limits: Limits::new(offer.surroundings.memory) };
    let mut store = guest.store(engine);
    store.set_epoch_deadline(1);
    // It goes on, after others had their turn: the clock is one of them.
    store.epoch_deadline_async_yield_and_update(1);
    let asked = asking.milliseconds.map_or(offer.time, Duration::from_millis);
    let ended = match tokio::time::timeout(asked.min(offer.time), program.run(&mut store)).await {
        Err(_) => Ended::Late,
        Ok(Ok(End::Code(code))) => Ended::Code(code),
        Ok(Ok(End::Trap(error))) => Ended::Trap(trap(&error)),
        Ok(Err(error)) => Ended::Refused(format!("{error:#}")),
    };
    Answer { ended, output: output.contents().to_vec(), error: error.contents().to_vec() }
}
