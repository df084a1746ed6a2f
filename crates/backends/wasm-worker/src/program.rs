//! A module or a component, ready to be started as often as anybody likes.

use std::path::Path;

use wasmtime::component::Component;
use wasmtime::error::Context;
use wasmtime::{Engine, InstancePre, Linker, Module, Result, Store, bail};
use wasmtime_wasi::p2::bindings::CommandPre;
use wasmtime_wasi::{I32Exit, p1, p2};

use crate::guest::Guest;

/// What was compiled.
pub enum Code {
    Module(Module),
    Component(Component),
}

/// The same with everything that it asks for joined to it: nothing is left to find out when it is started.
pub enum Program {
    Module(InstancePre<Guest>),
    Component(CommandPre<Guest>),
}

/// How a run of it ended.
#[derive(Debug)]
pub enum End {
    /// It said so itself.
    Code(i32),
    /// It did what no module may do.
    Trap(wasmtime::Error),
}

/// Of components; a plain module has a lower one.
const COMPONENT: [u8; 8] = *b"\0asm\x0d\0\x01\0";

impl Code {
    /// From a file, as binary or as text.
    pub fn compile(engine: &Engine, file: &Path) -> Result<Code> {
        let bytes = std::fs::read(file).with_context(|| format!("cannot read `{}`", file.display()))?;
        let binary = wat::parse_bytes(&bytes).context("it is no WebAssembly, neither as binary nor as text")?;
        match binary.starts_with(&COMPONENT) {
            true => Ok(Code::Component(Component::from_binary(engine, &binary)?)),
            false => Ok(Code::Module(Module::from_binary(engine, &binary)?)),
        }
    }

    pub fn serialize(&self) -> Result<Vec<u8>> {
        match self {
            Code::Module(module) => module.serialize(),
            Code::Component(component) => component.serialize(),
        }
    }

    /// Finds everything that it asks for, and where it starts.
    pub fn link(&self, engine: &Engine) -> Result<Program> {
        match self {
            Code::Module(module) => {
                let mut linker = Linker::new(engine);
                p1::add_to_linker_async(&mut linker, |guest: &mut Guest| &mut guest.wasi)?;
                if !module.exports().any(|export| export.name() == "_start" && export.ty().func().is_some()) {
                    bail!("it has no function `_start`: it is a library, not a program");
                }
                Ok(Program::Module(linker.instantiate_pre(module)?))
            }
            Code::Component(component) => {
                let mut linker = wasmtime::component::Linker::new(engine);
                p2::add_to_linker_async::<Guest>(&mut linker)?;
                let command = CommandPre::new(linker.instantiate_pre(component)?);
                Ok(Program::Component(command.context("it does not export `wasi:cli/run`: it is no program")?))
            }
        }
    }
}

impl Program {
    /// Starts it anew, and waits for its end.
    pub async fn run(&self, store: &mut Store<Guest>) -> Result<End> {
        let ended = match self {
            Program::Module(module) => {
                let instance = match module.instantiate_async(&mut *store).await {
                    // Also a start function that ends or fails is the module's own doing.
                    Err(error) => return started(error),
                    Ok(instance) => instance,
                };
                let start = instance.get_typed_func::<(), ()>(&mut *store, "_start");
                start.context("its function `_start` takes or gives something")?.call_async(&mut *store, ()).await
            }
            Program::Component(component) => {
                let command = match component.instantiate_async(&mut *store).await {
                    Err(error) => return started(error),
                    Ok(command) => command,
                };
                match command.wasi_cli_run().call_run(&mut *store).await {
                    Ok(Ok(())) => Ok(()),
                    Ok(Err(())) => return Ok(End::Code(1)),
                    Err(error) => Err(error),
                }
            }
        };
        Ok(match ended {
            Ok(()) => End::Code(0),
            Err(error) => end(error),
        })
    }
}

/// It could not be set up: a fault of its own, or no room for it.
fn started(error: wasmtime::Error) -> Result<End> {
    match error.is::<I32Exit>() || error.is::<wasmtime::Trap>() {
        true => Ok(end(error)),
        false => Err(error),
    }
}

fn end(error: wasmtime::Error) -> End {
    match error.downcast_ref::<I32Exit>() {
        Some(I32Exit(code)) => End::Code(*code),
        None => End::Trap(error),
    }
}
