//! What an engine is put together from, the same for every program of ours: a new backend or rule language is a line here.

use std::path::PathBuf;

use engine::Parts;
use model::{Backend, Person, RuleLanguage, Watch};

/// Of this user, or of a tenant whose state lies elsewhere.
pub fn parts(state: Option<PathBuf>, watch: Box<dyn Watch>, person: Option<Box<dyn Person>>) -> Parts {
    Parts {
        backends: backends(state.clone()),
        languages: languages(),
        watch,
        person,
        comparisons: Box::new(comparison::Bench { belljar: || beside("belljar") }),
        state,
        version: env!("CARGO_PKG_VERSION"),
    }
}

/// A program of ours: they lie beside each other.
pub fn beside(name: &str) -> PathBuf {
    std::env::current_exe().map_or_else(|_| name.into(), |own| own.with_file_name(name))
}

/// Every backend, the cheapest first.
fn backends(state: Option<PathBuf>) -> Vec<Box<dyn Backend>> {
    let state = state.or_else(workspace::state_folder);
    vec![
        Box::new(native::Native::new()),
        Box::new(wasm::Wasm::new(state.clone())),
        Box::new(gvisor::Gvisor::new(state.clone())),
        Box::new(container::Container::new(state)),
    ]
}

/// Every language that rules may be written in, besides our own.
fn languages() -> Vec<Box<dyn RuleLanguage>> {
    vec![
        #[cfg(feature = "cedar")]
        Box::new(cedar::Cedar),
    ]
}
