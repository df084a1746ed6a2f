//! What this host can do with modules, tried out.

use std::process::{Command, Stdio};

use model::{BackendReport, Feature};

use crate::assess;
use crate::cache::Cache;
use crate::failure::Failure;
use crate::interpreters;
use crate::worker::Worker;

pub fn diagnose(native: BackendReport, cache: Option<&Cache>) -> BackendReport {
    let worker = worker();
    let usable = native.usable && worker.works;
    let around = Feature {
        what: "a native sandbox around it".to_owned(),
        works: native.usable,
        detail: if native.usable { "works" } else { "not here" }.to_owned(),
        fix: if native.usable { "" } else { "see `native`" }.to_owned(),
    };
    let mut features = vec![worker, around];
    features.extend(interpreters::LANGUAGES.iter().map(|language| interpreter(language)));
    features.push(kept(cache));
    BackendReport { backend: "wasm".to_owned(), usable, features, enforcement: assess::assess(native.enforcement) }
}

/// Whether it is there, and starts: it is our own program, and is given nothing.
fn worker() -> Feature {
    let what = "the program that runs modules".to_owned();
    match Worker::find() {
        Err(failure) => broken(what, failure),
        Ok(worker) => {
            let path = &worker.place.path;
            let mut command = Command::new(path);
            command.arg("version").env_clear().stdin(Stdio::null());
            match command.output() {
                Ok(said) if said.status.success() => {
                    let said = String::from_utf8_lossy(&said.stdout).trim().to_owned();
                    Feature { what, works: true, detail: format!("{said}, {}", path.display()), fix: String::new() }
                }
                Ok(said) => broken(what, Failure::cannot("start", path, said.status)),
                Err(error) => broken(what, Failure::cannot("start", path, error)),
            }
        }
    }
}

fn interpreter(language: &str) -> Feature {
    let what = format!("{language} as a module");
    match interpreters::find(language).and_then(|interpreter| interpreter.check().map(|()| interpreter)) {
        Ok(found) => Feature { what, works: true, detail: found.version, fix: String::new() },
        Err(failure) => broken(what, failure),
    }
}

fn kept(cache: Option<&Cache>) -> Feature {
    let what = "compiled modules are kept".to_owned();
    match cache {
        Some(cache) => Feature { what, works: true, detail: cache.folder().display().to_string(), fix: String::new() },
        None => Feature {
            what,
            works: false,
            detail: "there is no folder for state".to_owned(),
            fix: "set XDG_STATE_HOME or HOME".to_owned(),
        },
    }
}

fn broken(what: String, failure: Failure) -> Feature {
    let failure = failure.into_setup();
    Feature { what, works: false, detail: failure.message, fix: failure.fix }
}
