//! Where a wall is missing, the canary says which, and the payload is never started.
//!
//! A main function of its own: a sandbox's first process is forked from a process with one thread.
#![allow(clippy::print_stderr)]

use std::ffi::CString;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Command, ExitCode};

use belljar_guest::first::follow;
use belljar_guest::wire::{self, Report};
use belljar_guest::{Orders, Payload, Step, Trial};
use libtest_mimic::{Arguments, Failed, Trial as Test};
use sys::process::{self, Alone, Forked, Namespaces, Strings};
use sys::signals;

/// How a trial is called in `ONLY`; whether it takes root to succeed without its wall; where it can.
const TRIALS: [(&str, Trial, bool, Stage); 9] = [
    ("make_a_forbidden_call", Trial::ForbiddenCall, false, Stage::Here),
    ("make_a_folder", Trial::MakeFolder, true, Stage::Here),
    ("see_its_parent", Trial::SeeParent, false, Stage::Here),
    ("reach_out", Trial::ReachOut, true, Stage::WithAWay),
    ("reach_past_the_gate", Trial::ReachPastGate, true, Stage::WithAWay),
    ("reach_past_a_gate_that_is_none", Trial::ReachPastGate, true, Stage::WithADisguisedWay),
    ("hold_a_power", Trial::HoldPower, false, Stage::Here),
    ("open_the_terminal", Trial::OpenTerminal, false, Stage::AtATerminal),
    ("open_more", Trial::OpenMore { than: 200 }, false, Stage::Here),
];
const ONLY: &str = "CANARY_ONLY";

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Here,
    /// In a network with a way to the address, which leads nowhere.
    WithAWay,
    /// The same, from the address that a gate would give.
    WithADisguisedWay,
    AtATerminal,
}

fn main() -> ExitCode {
    // Started anew on the stage that the trial needs.
    if let Ok(only) = std::env::var(ONLY) {
        let found = TRIALS.iter().find(|(name, ..)| *name == only).expect("one of the trials");
        return match breached(found.1) {
            Ok(()) => ExitCode::SUCCESS,
            Err(why) => {
                eprintln!("{why}");
                ExitCode::FAILURE
            }
        };
    }
    let mut arguments = Arguments::from_args();
    // Then tests run on the main thread.
    arguments.test_threads = Some(1);
    let root = rustix::process::geteuid().is_root();
    let mut tests: Vec<Test> = TRIALS
        .iter()
        .map(|(name, trial, needs_root, stage)| {
            let test = move || -> Result<(), Failed> {
                match stage {
                    Stage::Here => breached(*trial),
                    stage => on_stage(*stage, name),
                }
                .map_err(Failed::from)
            };
            Test::test(format!("without_its_wall_the_canary_can_{name}"), test).with_ignored_flag(*needs_root && !root)
        })
        .collect();
    tests.push(Test::test("behind_its_wall_the_canary_fails_and_the_payload_runs", || {
        behind_walls().map_err(Failed::from)
    }));
    libtest_mimic::run(&arguments, tests).exit_code()
}

fn on_stage(stage: Stage, name: &str) -> Result<(), String> {
    let this = std::env::current_exe().map_err(|error| error.to_string())?;
    let this = this.to_str().ok_or("its path is no text")?;
    let mut command = match stage {
        Stage::AtATerminal => {
            let mut command = Command::new("script");
            command.args(["-qec", this, "/dev/null"]);
            command
        }
        _ => {
            let mut command = Command::new("unshare");
            let mut script = "PATH=$PATH:/usr/sbin:/sbin; ip link set lo up".to_owned();
            script.push_str(match stage {
                Stage::WithADisguisedWay => {
                    " && ip address add 198.18.0.1/32 dev lo && ip route add 192.0.2.0/24 dev lo src 198.18.0.1"
                }
                _ => " && ip route add 192.0.2.0/24 dev lo",
            });
            script.push_str(" && exec \"$0\"");
            command.args(["--net", "sh", "-c", &script, this]);
            command
        }
    };
    let done = command.env(ONLY, name).output().map_err(|error| format!("{command:?}: {error}"))?;
    match done.status.success() {
        true => Ok(()),
        false => Err(format!("{done:?}")),
    }
}

/// The first thing that is said besides that the walls are up, and whether the payload ran.
fn said(steps: Vec<Step>, trials: Vec<Trial>) -> Result<(Option<Report>, bool), String> {
    let mark = std::env::temp_dir().join(format!("belljar-canary-{}", std::process::id()));
    let text = |text: &str| CString::new(text).map_err(|error| error.to_string());
    let (ours, theirs) = wire::pair().map_err(|error| error.to_string())?;
    let before = signals::block_all().map_err(|error| error.to_string())?;
    let touch: Result<Vec<CString>, String> =
        ["/usr/bin/touch", mark.to_str().ok_or("no text")?].into_iter().map(text).collect();
    let payload = Payload {
        gifts: Vec::new(),
        program: text("/usr/bin/touch")?,
        arguments: Strings::new(touch?),
        environment: Strings::new(Vec::new()),
        directory: text("/")?,
        terminal: false,
    };
    let orders = Orders {
        groundwork: Vec::new(),
        steps,
        trials,
        payload: Some(payload),
        files: None,
        handed: None,
        mask: before,
        trace: false,
        beside: None,
        unhelped: false,
    };
    let alone = Alone::prove().map_err(|error| error.to_string())?;
    let pid = match process::fork_into(alone, Namespaces::NONE, None).map_err(|error| error.to_string())? {
        Forked::Child => {
            drop(ours);
            follow(&orders, theirs, alone)
        }
        Forked::Parent { pid, .. } => pid,
    };
    drop(theirs);
    let mut first = None;
    while let Some((report, _)) = wire::receive(ours.as_fd()).map_err(|error| error.to_string())? {
        if !matches!(report, Report::Armed { .. }) && first.is_none() {
            first = Some(report);
        }
    }
    process::wait(pid, false).map_err(|error| error.to_string())?;
    signals::restore(&orders.mask).map_err(|error| error.to_string())?;
    let ran = mark.exists();
    if ran {
        std::fs::remove_file(&mark).map_err(|error| error.to_string())?;
    }
    Ok((first, ran))
}

fn breached(trial: Trial) -> Result<(), String> {
    let (report, ran) = said(Vec::new(), vec![trial])?;
    if Path::new("/.belljar-canary").exists() {
        return Err("it left its folder behind".to_owned());
    }
    match (report, ran) {
        (Some(Report::Breached { trial: 0 }), false) => Ok(()),
        other => Err(format!("{other:?}")),
    }
}

fn behind_walls() -> Result<(), String> {
    let limit = Step::Lower(sys::limits::Limit::OpenFiles, 100);
    let steps = vec![Step::NewSession, Step::DropCapabilities { bounding: false }, Step::ForbidNewPrivileges, limit];
    let trials = vec![Trial::OpenTerminal, Trial::HoldPower, Trial::OpenMore { than: 100 }];
    match said(steps, trials)? {
        (Some(Report::Proven { trials: 3 }), true) => Ok(()),
        other => Err(format!("{other:?}")),
    }
}
