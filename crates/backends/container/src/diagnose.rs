//! What this host's engine can hold, tried out.

use model::{BackendReport, Enforcement, Feature};

use crate::api::Api;
use crate::facts::Engine;
use crate::trouble::Unusable;
use crate::{doors, images};

pub fn diagnose(connected: Result<(&Api, &Engine), &Unusable>, enforcement: Enforcement) -> BackendReport {
    let feature = |what: &str, works: bool, detail: String, fix: &str| Feature {
        what: what.to_owned(),
        works,
        detail,
        fix: if works { String::new() } else { fix.to_owned() },
    };
    let (api, engine) = match connected {
        Ok(both) => both,
        Err(error) => {
            let features = vec![feature("container engine", false, error.to_string(), &error.fix())];
            return BackendReport {
                backend: crate::NAME.to_owned(),
                usable: false,
                features,
                enforcement: Enforcement::default(),
            };
        }
    };
    let mut features = vec![feature("container engine", true, engine.shown.clone(), "")];
    let rights = if engine.rootless { "rootless" } else { "rootful" };
    features.push(feature("its rights", true, rights.to_owned(), ""));
    let own = images::own(api);
    let (works, detail, fix) = match &own {
        Ok((name, _)) => (true, name.clone(), String::new()),
        Err(error) => (false, error.to_string(), error.fix()),
    };
    features.push(feature("belljar's own image", works, detail, &fix));
    features.push(feature(
        "system-call filter",
        engine.seccomp,
        if engine.seccomp { "belljar's closed list" } else { "none" }.to_owned(),
        "use an engine with seccomp",
    ));
    let limits = [("memory", engine.memory), ("processes", engine.processes), ("processors", engine.processors)];
    let missing: Vec<&str> = limits.iter().filter(|(_, has)| !has).map(|(name, _)| *name).collect();
    let detail = if missing.is_empty() {
        "memory, processes, processors".to_owned()
    } else {
        format!("not of {}", missing.join(", "))
    };
    features.push(feature(
        "limits by control groups",
        missing.is_empty(),
        detail,
        "give the engine control groups: cgroup v2 with delegation (rootless), or a rootful engine",
    ));
    features.push(feature(
        "network through the gate",
        doors::can_enter(engine),
        if doors::can_enter(engine) { "doors in the container's network" } else { "containers run without one" }.to_owned(),
        "run belljar as root or use a rootless engine of your own for a network in containers, or use `--backend native`",
    ));
    features.push(feature("runtimes", true, engine.runtimes.join(", "), ""));
    let usable = engine.seccomp && engine.memory && engine.processes;
    BackendReport { backend: crate::NAME.to_owned(), usable, features, enforcement }
}
