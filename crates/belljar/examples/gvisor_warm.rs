//! How long a command takes behind gVisor, from nothing and in a guest that waits for it: `gvisor_warm COUNT` prints a line
//! for each, with nanoseconds. `cargo xtask bench backends` runs it.
//!
//! Only a verdict mints a grant: so this is belljar itself, with a backend that measures where others would begin.

#![allow(clippy::print_stdout)]

use std::process::ExitCode;
use std::time::Instant;

use engine::{Engine, Parts};
use gvisor::{Gvisor, Warm};
use model::{
    Backend, BackendReport, Enforcement, Grant, GroundKind, Outcome, Plan, Sandbox, SetupFailure, Stack, Streams,
    Strength,
};

struct Measured {
    inner: Gvisor,
    count: usize,
}

impl Backend for Measured {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn ground(&self) -> GroundKind {
        self.inner.ground()
    }

    fn strength(&self, grant: &Grant) -> Strength {
        self.inner.strength(grant)
    }

    fn assess(&self, grant: &Grant) -> Enforcement {
        self.inner.assess(grant)
    }

    fn plan(&self, grant: &Grant, stacks: &[Stack]) -> Result<Plan, SetupFailure> {
        self.inner.plan(grant, stacks)
    }

    fn open(
        &self,
        grant: &Grant,
        stacks: &[Stack],
        streams: Streams,
        trace: bool,
    ) -> Result<Box<dyn Sandbox>, SetupFailure> {
        for _ in 0..self.count {
            let begun = Instant::now();
            ended_well(self.inner.open(grant, stacks, Streams::default(), false)?.supervise())?;
            println!("cold {}", begun.elapsed().as_nanos());
            let warm = Warm::make(&self.inner, grant, stacks, Streams::default())?;
            let begun = Instant::now();
            ended_well(warm.run(grant)?)?;
            println!("warm {}", begun.elapsed().as_nanos());
        }
        self.inner.open(grant, stacks, streams, trace)
    }

    fn diagnose(&self) -> BackendReport {
        self.inner.diagnose()
    }
}

fn ended_well(outcome: Outcome) -> Result<(), SetupFailure> {
    match outcome {
        Outcome::Ran(finished) if finished.exit == model::Exit::Code(0) => Ok(()),
        Outcome::NotSetUp(failure) => Err(failure),
        other => Err(SetupFailure {
            wall: None,
            message: format!("it did not end well: {other:?}"),
            fix: "please report this".to_owned(),
            layers: false,
        }),
    }
}

fn main() -> ExitCode {
    let mut words = std::env::args_os();
    if words.next().is_some_and(|name| name == guest::usher::NAME) {
        return guest::usher::begin();
    }
    let count = words.next().and_then(|count| count.to_str()?.parse().ok()).unwrap_or(5);
    let version = env!("CARGO_PKG_VERSION");
    let engine = Engine::new(Parts {
        comparisons: Box::new(comparison::Bench { belljar: || "belljar".into() }),
        backends: vec![Box::new(Measured { inner: Gvisor::new(workspace::state_folder()), count })],
        languages: Vec::new(),
        watch: Box::new(cli::Terminal::default()),
        person: None,
        state: None,
        version,
    });
    let words = ["belljar", "run", "-q", "--", "/bin/true"].map(std::ffi::OsString::from);
    ExitCode::from(cli::answer(words, &engine, version))
}
