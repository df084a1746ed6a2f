//! What belljar says: safe to look at whatever the names in it, and the same to a program that reads it as JSON.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::time::Duration;

use arbitrary::Arbitrary;
use cli::hostile::{Layout, code, json, line, object, page, summary};
use model::{
    Artifact, Fate, Finding, Gathered, Inspected, Plan, Redacted, SetupFailure, Severity, Shown, Spot, StartFailure,
    Step, Timing, Withheld,
};
use model::{
    Denial, Enforcement, Exit, Finished, Held, Holding, Leftover, Outcome, Overrun, Refusal, Tally, Usage, Wall,
};

use crate::{made_of, shown};

#[derive(Arbitrary, Debug)]
enum Case {
    Ran {
        status: i32,
        ended_by: u8,
        seconds: u32,
        memory: u64,
        dropped: u64,
        programs: Vec<(String, String)>,
        why: String,
    },
    Refused {
        message: String,
        rule: String,
        hint: String,
    },
    NotSetUp {
        wall: u8,
        message: String,
        fix: String,
    },
    NotStarted {
        found: bool,
        message: String,
        fix: String,
    },
    Planned {
        program: Vec<u8>,
        steps: Vec<String>,
        arguments: Vec<String>,
        why: String,
    },
}

pub fn law(bytes: &[u8]) {
    let Some(case) = made_of(bytes) else { return };
    let outcome = match case {
        Case::Ran { status, ended_by, seconds, memory, dropped, programs, why } => {
            let denial = |(program, call)| Denial {
                wall: Wall::SystemCalls,
                detail: Some(why.clone()),
                call,
                program,
                process: status,
                times: memory,
            };
            let mut finished = ran_with(programs.into_iter().map(denial).collect(), dropped, &why);
            finished.exit = if seconds % 2 == 0 { Exit::Code(status) } else { Exit::Signal(status) };
            let limits = [
                Overrun::WallTime,
                Overrun::CpuTime,
                Overrun::Memory,
                Overrun::Disk,
                Overrun::Cancelled,
                Overrun::Suspended,
            ];
            finished.overrun = limits.get(usize::from(ended_by)).copied();
            finished.usage.wall_time = Duration::from_secs(seconds.into());
            finished.usage.peak_memory = memory;
            finished.output_dropped = dropped;
            Outcome::Ran(Box::new(finished))
        }
        Case::Refused { message, rule, hint } => Outcome::Refused(Refusal::new(&rule, message, &hint)),
        Case::NotSetUp { wall, message, fix } => Outcome::NotSetUp(SetupFailure {
            wall: Wall::ALL.get(usize::from(wall)).copied(),
            message,
            fix,
            layers: false,
        }),
        Case::NotStarted { found, message, fix } => Outcome::NotStarted(StartFailure { found, message, fix }),
        Case::Planned { program, steps, arguments, why } => return plan_is_safe(program, steps, arguments, why),
    };
    are_safe(&outcome);
}

/// A run with these refusals.
pub fn ran(denials: Vec<Denial>, not_listed: u64) -> Outcome {
    Outcome::Ran(Box::new(ran_with(denials, not_listed, "")))
}

fn ran_with(denials: Vec<Denial>, denials_not_listed: u64, why: &str) -> Finished {
    let held = Held::Partly(why.to_owned());
    let holding = Holding { wall: Wall::Memory, held: held.clone(), by: why.to_owned(), fix: why.to_owned() };
    Finished {
        run: String::new(),
        exit: Exit::Code(0),
        overrun: None,
        usage: Usage::default(),
        denials,
        denials_not_listed,
        output_dropped: 0,
        enforcement: Enforcement { walls: vec![holding] },
        accepted_gaps: vec![(Wall::Memory, held)],
        backend: "native".to_owned(),
        because: why.to_owned(),
        image: None,
        traffic: None,
        alerts: Vec::new(),
        leftover: Some(Leftover {
            sandbox: why.to_owned(),
            tally: Tally::default(),
            trouble: Some(why.to_owned()),
            manifest: None,
            listed: Vec::new(),
        }),
        gathered: Some(gathered(why)),
        inspected: Inspected { findings: vec![finding(why)], unread: vec![why.to_owned()] },
        redacted: vec![Redacted { what: why.to_owned(), times: 1 }],
        captured: None,
        unguarded: Vec::new(),
        timing: vec![Timing { step: why.to_owned(), nanoseconds: 1 }],
    }
}

/// A finding whose every word is somebody else's: scanners read hostile bytes.
fn finding(why: &str) -> Finding {
    Finding {
        rule: why.to_owned(),
        class: why.to_owned(),
        severity: Severity::High,
        cwe: None,
        message: why.to_owned(),
        fix: why.to_owned(),
        at: Spot { name: why.to_owned(), line: 1, column: 1, ..Spot::default() },
        excerpt: why.to_owned(),
    }
}

/// One artifact whose every word is somebody else's.
fn gathered(why: &str) -> Gathered {
    let path = Shown(why.into());
    let artifact = Artifact {
        id: why.to_owned(),
        run: why.to_owned(),
        sandbox: Some(why.to_owned()),
        workspace: path.clone(),
        path,
        size: 1,
        executable: false,
        digest: None,
        kind: why.to_owned(),
        fate: Fate::Withheld(Withheld::new(why, why)),
        findings: vec![finding(why)],
        created: 0,
    };
    Gathered { run: why.to_owned(), artifacts: vec![artifact], not_listed: 1, trouble: None }
}

/// The line for people and the object for programs.
pub fn are_safe(outcome: &Outcome) {
    shown::is_one_line(&line(&summary(outcome)));
    let meant = serde_json::to_value(object(outcome)).expect("it can be written");
    let text = json(&object(outcome), Layout::Line).expect("it can be written");
    shown::is_one_line(&text);
    // `say` passes it through this once more.
    assert_eq!(line(&text), text, "the line is changed on its way out");
    let read: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
    assert_eq!(read, meant, "it reads back as something else");
    assert_eq!(read["code"], code(outcome));
}

fn plan_is_safe(program: Vec<u8>, steps: Vec<String>, arguments: Vec<String>, why: String) {
    let path: std::path::PathBuf = OsString::from_vec(program).into();
    let holding = Holding { wall: Wall::Files, held: Held::Not(why.clone()), by: why.clone(), fix: why.clone() };
    let plan = Plan {
        backend: "native".to_owned(),
        because: String::new(),
        program: path.clone(),
        environment: arguments.clone(),
        arguments,
        directory: path,
        steps: steps.into_iter().map(|does| Step { by: "child", does }).collect(),
        enforcement: Enforcement { walls: vec![holding] },
    };
    shown::is_a_page(&page(cli::hostile::explained(&plan)));
    let text = json(&plan, Layout::Page).expect("every plan can be written");
    shown::is_a_page(&text);
    let read: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
    assert_eq!(read, serde_json::to_value(&plan).expect("it can be written"), "it reads back as something else");
}
