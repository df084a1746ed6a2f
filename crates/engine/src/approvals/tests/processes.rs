//! Waiters that are processes of their own, and are killed or put to sleep.

use std::io::BufRead;
use std::path::Path;
use std::process::{Command, Stdio};

use super::*;

/// Not a test: another process that waits, for those below.
#[test]
#[ignore = "started by other tests, in a process of its own"]
fn waits_until_it_is_killed() {
    let Some(root) = std::env::var_os("BELLJAR_TEST_DESK") else { return };
    let desk = std::mem::ManuallyDrop::new(Desk::at(root.into()));
    struct Ready;
    impl Watch for Ready {
        fn progress(&self, _: &str, _: u64, _: u64) {}
        fn warn(&self, _: &str) {
            std::io::Write::write_all(&mut std::io::stdout(), b"ready\n").expect("somebody reads");
        }
    }
    let timeout = std::env::var("BELLJAR_TEST_TIMEOUT").expect("how long").parse().expect("a number");
    let terms = Terms { timeout: Duration::from_millis(timeout), ..terms() };
    desk.approvals.ask(&question(), &terms, None, &Ready).expect("a yes");
}

#[test]
fn a_killed_waiter_leaves_nothing_that_can_be_answered() {
    let desk = Desk::new();
    let (mut waiter, _output) = waiter(&desk.root, terms().timeout);
    let parked = desk.approvals.parked(None).expect("it can be read");
    assert_eq!(parked.len(), 1);
    waiter.kill().expect("it is ours");
    waiter.wait().expect("it is ours");
    let answer = Answer { decision: Decision::Once, reason: String::new() };
    assert_eq!(desk.left().len(), 1);
    assert_eq!(desk.approvals.answer(&parked[0], &answer).expect("nothing is written"), Given::TooLate);
    assert!(desk.approvals.parked(None).expect("it can be read").is_empty());
    assert_eq!(desk.left(), [] as [&str; 0], "the stale question is swept");
}

#[test]
fn another_process_that_waits_is_answered() {
    let desk = Desk::new();
    let (mut waiter, _output) = waiter(&desk.root, terms().timeout);
    assert_eq!(desk.answer("last", Decision::Once), Given::Taken);
    assert!(waiter.wait().expect("it ends").success());
    assert_eq!(desk.left(), [] as [&str; 0]);
}

#[test]
fn a_yes_that_came_too_late_to_somebody_who_slept_is_none() {
    let desk = Desk::new();
    let (mut waiter, _output) = waiter(&desk.root, Duration::from_millis(500));
    let process = rustix::process::Pid::from_child(&waiter);
    let answer = desk.forged(&desk.find("last").id);
    rustix::process::kill_process(process, rustix::process::Signal::STOP).expect("it is ours");
    while !desk.approvals.parked(None).expect("it can be read").is_empty() {
        std::thread::yield_now();
    }
    desk.put(answer["id"].as_str().expect("text"), answer.to_string().as_bytes());
    rustix::process::kill_process(process, rustix::process::Signal::CONT).expect("it is ours");
    assert!(!waiter.wait().expect("it ends").success(), "it took it for a yes");
}

/// The process, when it waits, and what it says.
fn waiter(root: &Path, timeout: Duration) -> (std::process::Child, impl std::io::Read) {
    let mut child = Command::new(std::env::current_exe().expect("we are a program"))
        .args(["--exact", "approvals::tests::processes::waits_until_it_is_killed", "--ignored", "--nocapture"])
        .env("BELLJAR_TEST_DESK", root)
        .env("BELLJAR_TEST_TIMEOUT", timeout.as_millis().to_string())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut output = std::io::BufReader::new(child.stdout.take().expect("a pipe"));
    let mut line = String::new();
    while !line.contains("ready") {
        line.clear();
        assert_ne!(output.read_line(&mut line).expect("text"), 0, "it never waited");
    }
    (child, output)
}
