//! What must not get out, does not.

use belljar_testkit::Who;
use belljar_testkit::twice::Check;

use crate::world::{NAME, World};

pub const ALL: &[(&str, Check)] = &[
    ("a_name_that_leads_home_is_refused_unless_the_address_is_granted", leads_home),
    ("everything_is_on_the_record", recorded),
    ("nothing_goes_out_when_the_gate_is_killed", killed),
];

fn leads_home(who: Who) -> Result<(), String> {
    let world = World::of(who)?;
    let grant = format!("--allow-net={NAME}:{}", world.http);
    let url = format!("http://{NAME}:{}/echo", world.http);
    let said = world.run(&[&grant], &["curl", "-sS", "-m", "10", &url])?;
    if said.code == Some(0) || !said.error.contains("leads to a loopback address") || !world.arrived()?.is_empty() {
        return Err(format!("{said:?} {:?}", world.arrived()));
    }
    Ok(())
}

fn recorded(who: Who) -> Result<(), String> {
    let world = World::of(who)?;
    let open = world.open();
    let open: Vec<&str> = open.iter().map(String::as_str).collect();
    let url = format!("http://{NAME}:{}/bytes/10?token=not-for-the-record", world.http);
    world.expect(
        &open,
        &["sh", "-c", &format!("curl -sS -m 10 '{url}'; curl -s -m 10 http://evil.test/")],
        6,
        "xxxxxxxxxx",
    )?;
    let said = world.desk.expect(&["net", "--json"], 0, "")?;
    let text = String::from_utf8_lossy(&said.out).into_owned();
    for wanted in [
        "network.name", "network.connection", "network.request", "network.answer", "/bytes/10", "\"curl\"", "evil.test",
    ] {
        if !text.contains(wanted) {
            return Err(format!("no {wanted} in {text}"));
        }
    }
    if text.contains("not-for-the-record") {
        return Err(format!("the query is in the record: {text}"));
    }
    world.desk.expect(&["ledger", "verify"], 0, "").map(drop)
}

fn killed(who: Who) -> Result<(), String> {
    let world = World::of(who)?;
    let open = world.open();
    let open: Vec<&str> = open.iter().map(String::as_str).collect();
    // The gate is belljar's child that is not the sandbox's first process: it is killed when the payload says that it runs.
    let url = format!("http://{NAME}:{}/bytes/10", world.http);
    let script = format!("curl -sS -m 10 {url}; echo; echo ready; read x; curl -sS -m 10 {url} || echo closed");
    let mut command = world.command(&open, &["sh", "-c", &script]);
    use std::io::{BufRead, BufReader, Write};
    use std::process::Stdio;
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| error.to_string())?;
    let mut lines = BufReader::new(child.stdout.take().ok_or("it has an output")?).lines();
    let mut next = || lines.next().ok_or("it ended")?.map_err(|error| error.to_string());
    let first = next()?;
    if first != "xxxxxxxxxx" || next()? != "ready" {
        return Err(format!("before: {first}"));
    }
    let gate = gate_of(child.id() as i32)?;
    rustix::process::kill_process(
        rustix::process::Pid::from_raw(gate).ok_or("a number")?,
        rustix::process::Signal::KILL,
    )
    .map_err(|error| error.to_string())?;
    child.stdin.take().ok_or("it has an input")?.write_all(b"go\n").map_err(|error| error.to_string())?;
    let closed = next()?;
    let done = child.wait_with_output().map_err(|error| error.to_string())?;
    let error = String::from_utf8_lossy(&done.stderr).into_owned();
    if closed != "closed" || !error.contains("its way out was lost") || world.arrived()?.len() != 1 {
        return Err(format!("{closed} {error} {:?}", world.arrived()));
    }
    Ok(())
}

/// Among the processes below this one: the one that has belljar's own program and no pid namespace of its own.
fn gate_of(above: i32) -> Result<i32, String> {
    let mut waiting = vec![above];
    let mut found = Vec::new();
    while let Some(process) = waiting.pop() {
        let children = std::fs::read_to_string(format!("/proc/{process}/task/{process}/children")).unwrap_or_default();
        let children: Vec<i32> = children.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        waiting.extend(&children);
        found.extend(children);
    }
    let name = |process: &i32| std::fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default();
    let status = |process: &i32| std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let depth = |process: &i32| {
        status(process)
            .lines()
            .find(|line| line.starts_with("NSpid:"))
            .map_or(0, |line| line.split_whitespace().count())
    };
    let gates: Vec<i32> = found
        .iter()
        .copied()
        .filter(|process| depth(process) == 2 && name(process).starts_with("belljar"))
        .filter(|process| {
            // The keeper of control groups is the other one, and waits for a process.
            let held = std::fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
            let polls = |link: std::path::PathBuf| link.to_string_lossy().contains("eventpoll");
            held.filter_map(|one| std::fs::read_link(one.path()).ok()).any(polls)
        })
        .collect();
    match gates.as_slice() {
        [gate] => Ok(*gate),
        others => Err(format!("which of {others:?} is the gate, below {above}?")),
    }
}
