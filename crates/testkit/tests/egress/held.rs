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

/// Among the processes below this one.
fn gate_of(above: i32) -> Result<i32, String> {
    let mut waiting = vec![above];
    while let Some(process) = waiting.pop() {
        let read = |name: &str| std::fs::read_to_string(format!("/proc/{process}/{name}")).unwrap_or_default();
        if read("comm").trim() == "belljar-gate" {
            return Ok(process);
        }
        waiting.extend(
            read(&format!("task/{process}/children")).split_whitespace().filter_map(|word| word.parse::<i32>().ok()),
        );
    }
    Err("there is no gate".to_owned())
}
