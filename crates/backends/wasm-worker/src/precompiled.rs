//! Code that was compiled before, taken from a file. The one place where bytes become something that is run.
#![allow(unsafe_code)]

use std::path::Path;

use wasmtime::component::Component;
use wasmtime::{Engine, Module, Precompiled, Result, bail};

use crate::program::Code;

/// Loads what `compile` made. belljar alone hands such files to this program: it has checked them against a seal that only
/// it can make, and they are mounted read-only here. The engine looks besides whether they are of its own version and
/// settings.
pub fn load(engine: &Engine, file: &Path) -> Result<Code> {
    match Engine::detect_precompiled_file(file)? {
        // SAFETY: the file is one that `compile` wrote and belljar has sealed, as said above; nobody writes to it while
        // it is mapped, because belljar replaces such files and never changes them.
        Some(Precompiled::Module) => Ok(Code::Module(unsafe { Module::deserialize_file(engine, file) }?)),
        // SAFETY: as before.
        Some(Precompiled::Component) => Ok(Code::Component(unsafe { Component::deserialize_file(engine, file) }?)),
        None => bail!("`{}` is not compiled", file.display()),
    }
}
