//! WebAssembly: a module makes no call to the host's kernel at all. The engine that makes some for it is a program of its
//! own (`belljar-wasm`) and runs in the module's place inside a native sandbox, with exactly the grant's powers.
//!
//! `lower` decides, purely; `native` encloses, watches and cleans up; `cache` keeps what was compiled before.

mod assess;
mod cache;
mod compile;
mod diagnose;
mod failure;
mod interpreters;
mod key;
mod lower;
#[cfg(test)]
mod lower_tests;
mod module;
mod worker;

use std::path::PathBuf;

use model::{
    Backend, BackendReport, Enforcement, Grant, Ground, GroundKind, Outcome, Plan, Sandbox, SetupFailure, Stack, Step,
    Streams, Strength, Trouble,
};
use native::Native;

use cache::Cache;
use failure::Failure;
use lower::{Code, Lowered};
use worker::Worker;

pub struct Wasm {
    native: Native,
    /// Where belljar keeps its state, and no sandbox ever sees anything; none if there is no such place.
    state: Option<PathBuf>,
}

impl Wasm {
    /// `state`: the folder in which everything is kept that no sandbox may see.
    pub fn new(state: Option<PathBuf>) -> Wasm {
        Wasm { native: Native::new(), state }
    }

    fn cache(&self) -> Option<Cache> {
        self.state.as_ref().map(|state| Cache::at(state.join("wasm")))
    }

    /// The grant for the worker, and what is to be done before. `compiles`: what isn't compiled yet is compiled now.
    fn lowered(&self, grant: &Grant, stacks: &[Stack], compiles: bool) -> Result<(Grant, Option<String>), Failure> {
        let worker = Worker::find()?;
        let interpreter = match &grant.powers().files.ground {
            Ground::Module { interpreter: Some(language) } => Some(interpreters::find(language)?),
            Ground::Module { interpreter: None } => None,
            Ground::Host | Ground::Image { .. } => return Err(Failure::not_a_module()),
        };
        let code = match (module::read(grant, stacks, interpreter.as_ref())?, self.cache()) {
            (module::Seen::OnTheHost(module), Some(cache)) => {
                let name = key::name(&module, &worker)?;
                match cache.find(&name) {
                    Some(file) => Code::Compiled { file, ready: true },
                    None if compiles => match compile::compile(&self.native, grant, &worker, &module, &cache, &name)? {
                        Some(file) => Code::Compiled { file, ready: true },
                        // Nothing could be written down: it is compiled where it runs.
                        None => Code::Written(module.path),
                    },
                    None => Code::Compiled { file: cache.file(&name), ready: false },
                }
            }
            (module::Seen::OnTheHost(module), None) => Code::Written(module.path),
            (module::Seen::InALayer(path), _) => Code::Written(path),
        };
        let Lowered { command, environment, seen, first } =
            lower::lower(grant.powers(), &worker, code, interpreter.as_ref())?;
        Ok((grant.carried(command, environment, seen), first))
    }
}

impl Backend for Wasm {
    fn name(&self) -> &'static str {
        "wasm"
    }

    fn ground(&self) -> GroundKind {
        GroundKind::Module
    }

    fn strength(&self, _: &Grant) -> Strength {
        Strength::UserKernel
    }

    fn assess(&self, grant: &Grant) -> Enforcement {
        assess::assess(self.native.assess(grant))
    }

    fn plan(&self, grant: &Grant, stacks: &[Stack]) -> Result<Plan, SetupFailure> {
        let (carried, first) = self.lowered(grant, stacks, false).map_err(Failure::into_setup)?;
        let mut plan = self.native.plan(&carried, stacks)?;
        if let Some(first) = first {
            plan.steps.insert(0, Step { by: "parent", does: first });
        }
        Ok(Plan { backend: self.name().to_owned(), enforcement: self.assess(grant), ..plan })
    }

    fn open(
        &self,
        grant: &Grant,
        stacks: &[Stack],
        mut streams: Streams,
        trace: bool,
    ) -> Result<Box<dyn Sandbox>, SetupFailure> {
        // Before it is compiled, which is work on what a guest made.
        if let Some(witness) = &mut streams.witness {
            let unwritten = |Trouble { message, fix }| SetupFailure { wall: None, message, fix, layers: false };
            witness.raising().map_err(unwritten)?;
        }
        let carried = match self.lowered(grant, stacks, true) {
            Ok((carried, _)) => carried,
            Err(Failure::Setup(failure)) => return Err(failure),
            Err(Failure::Ended(outcome)) => return Ok(Box::new(Ended(*outcome))),
        };
        let inner = self.native.open(&carried, stacks, streams, trace)?;
        Ok(Box::new(Carried { inner, enforcement: self.assess(grant), backend: self.name() }))
    }

    fn diagnose(&self) -> BackendReport {
        diagnose::diagnose(self.native.diagnose(), self.cache().as_ref())
    }
}

/// A native sandbox with the worker in it.
struct Carried {
    inner: Box<dyn Sandbox>,
    enforcement: Enforcement,
    backend: &'static str,
}

impl Sandbox for Carried {
    fn supervise(self: Box<Self>) -> Outcome {
        let mut outcome = self.inner.supervise();
        if let Outcome::Ran(finished) = &mut outcome {
            finished.backend = self.backend.to_owned();
            finished.enforcement = self.enforcement;
        }
        outcome
    }
}

/// It ended before there was anything to watch: the module could not be compiled.
struct Ended(Outcome);

impl Sandbox for Ended {
    fn supervise(self: Box<Self>) -> Outcome {
        self.0
    }
}
