//! The attacker: runs one attack where it is started, and leaves proof that it came to its end.

use std::process::ExitCode;

use belljar_testkit::escapes;
use belljar_testkit::inside::{BRIEF, Inside, TRIED};

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().collect();
    if let [_, mode] = words.as_slice()
        && mode == "calls"
    {
        return make_calls();
    }
    let [_, mode, id] = words.as_slice() else {
        eprintln!("usage: belljar-escapes inside ID");
        return ExitCode::from(2);
    };
    let attack = escapes::all().chain(escapes::known_open()).find(|attack| attack.id == id);
    let (Some(attack), "inside") = (attack, mode.as_str()) else {
        eprintln!("there is no attack `{id}`");
        return ExitCode::from(2);
    };
    // From beside the binary: a sandbox may have put the current folder elsewhere.
    let folder =
        std::env::current_exe().ok().and_then(|path| path.parent().map(|parent| parent.to_owned())).unwrap_or_default();
    let brief = std::fs::read(folder.join(BRIEF)).ok().and_then(|text| serde_json::from_slice::<Inside>(&text).ok());
    let Some(inside) = brief else {
        eprintln!("there is no brief in {}", folder.display());
        return ExitCode::from(2);
    };
    let outcome = (attack.inside)(&inside);
    if let Err(error) = std::fs::write(inside.workspace.join(TRIED), format!("{outcome:?}")) {
        eprintln!("cannot leave proof: {error}");
        return ExitCode::from(3);
    }
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("stopped: {error}");
            ExitCode::FAILURE
        }
    }
}

/// For `tests/system_calls.rs`: every probe of the filter's rules, one line each.
#[cfg(target_arch = "x86_64")]
fn make_calls() -> ExitCode {
    for probe in belljar_testkit::calls::probes() {
        match probe.make() {
            Ok((errno, as_expected)) => {
                let word = if as_expected { "ok" } else { "WRONG" };
                println!("{word}\t{}\t{:x?}\t{:?}\t{errno}", probe.call, probe.arguments, probe.expected);
            }
            Err(error) => {
                eprintln!("cannot try {}: {error}", probe.call);
                return ExitCode::from(3);
            }
        }
    }
    ExitCode::SUCCESS
}

#[cfg(not(target_arch = "x86_64"))]
fn make_calls() -> ExitCode {
    eprintln!("the list of calls is written for x86-64");
    ExitCode::from(2)
}
