//! Each conditional rule of the call filter, with right and wrong arguments, in a real sandbox: the kernel or the
//! filter must answer as the table says, and what is refused must be in the run's result.
#![cfg(target_arch = "x86_64")]

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;

use belljar_testkit::calls::{Expected, probes};
use belljar_testkit::contestant::built;
use belljar_testkit::{Contestant, Field, Who};

#[test]
fn every_rule_answers_as_the_table_says_to_root() -> io::Result<()> {
    answers_as_the_table_says(Who::Root)
}

#[test]
fn every_rule_answers_as_the_table_says_to_an_ordinary_user() -> io::Result<()> {
    answers_as_the_table_says(Who::Ordinary)
}

fn answers_as_the_table_says(who: Who) -> io::Result<()> {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can be root and somebody else");
        return Ok(());
    }
    let field = Field::make(who)?;
    let attacker = field.workspace.join("attacker");
    fs::copy(built("belljar-escapes"), &attacker)?;
    fs::set_permissions(&attacker, fs::Permissions::from_mode(0o755))?;
    field.give(&attacker)?;
    let result = field.root.join("result.json");
    fs::write(&result, "")?;
    chown(&result, Some(who.user_id()), Some(who.user_id()))?;

    let mut command = Contestant::Belljar.command(&field.workspace, &[], &result, &[attacker.into(), "calls".into()]);
    command.env_clear().env("PATH", "/usr/bin:/bin").env("HOME", "/nonexistent");
    if who == Who::Ordinary {
        command.uid(who.user_id()).gid(who.user_id());
    }
    let output = command.output()?;
    let (lines, complaints) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{complaints}");

    let probes = probes();
    let wrong: Vec<&str> = lines.lines().filter(|line| !line.starts_with("ok\t")).collect();
    assert_eq!(wrong, [""; 0], "answered otherwise");
    assert_eq!(lines.lines().count(), probes.len());

    let record: serde_json::Value = serde_json::from_slice(&fs::read(&result)?)?;
    let mut told: BTreeMap<&str, u64> = BTreeMap::new();
    for denial in record["denials"].as_array().into_iter().flatten() {
        *told.entry(denial["call"].as_str().unwrap_or_default()).or_default() += denial["times"].as_u64().unwrap_or(0);
    }
    let mut refused: BTreeMap<&str, u64> = BTreeMap::new();
    for probe in probes.iter().filter(|probe| probe.expected == Expected::Refused) {
        *refused.entry(&probe.call).or_default() += 1;
    }
    let untold = record["denials_not_listed"].as_u64().unwrap_or(0);
    for (call, times) in &refused {
        let told = told.get(call).copied().unwrap_or(0);
        // What did not fit on the list is counted, but not by name.
        assert!(told > 0, "{call} is not among the denials: {told:?}");
        assert!(told + untold >= *times, "{call} was refused {times} times, told of {told}, {untold} not listed");
    }
    Ok(())
}
