//! `belljar forward`: servers of runs that go on already, reached from the host's loopback.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, ChildStdout, Stdio};
use std::time::Duration;

use belljar_testkit::Who;
use belljar_testkit::twice::Check;
use serde_json::Value;

use crate::served::free_port;
use crate::told;
use crate::world::World;

pub const ALL: &[(&str, Check)] = &[
    ("a_server_of_a_run_that_goes_on_is_reached_until_the_run_ends", reached),
    ("a_run_with_a_way_out_is_reached_as_well_and_an_interrupt_ends_it", interrupted),
    ("who_forwards_is_told_why_not", why_not),
    ("nobody_reaches_the_run_of_another_user", others),
];

/// Listens once it is told to, then answers everybody; ends with its input.
const SERVER: &str = "import socket, sys, threading\n\
    print('ready', flush=True)\n\
    sys.stdin.readline()\n\
    s = socket.create_server(('127.0.0.1', 8000))\n\
    def serve():\n\
    \x20   while True:\n\
    \x20       c, _ = s.accept()\n\
    \x20       c.sendall(b'inside: ' + c.recv(100))\n\
    \x20       c.close()\n\
    threading.Thread(target=serve, daemon=True).start()\n\
    print('listens', flush=True)\n\
    sys.stdin.read()\n";

struct Going {
    child: Child,
    out: BufReader<ChildStdout>,
}

impl Going {
    fn line(&mut self) -> Result<String, String> {
        let mut line = String::new();
        told(self.out.read_line(&mut line))?;
        Ok(line.trim_end().to_owned())
    }

    fn event(&mut self) -> Result<Value, String> {
        let line = self.line()?;
        serde_json::from_str(&line).map_err(|error| format!("{error}: {line}"))
    }

    fn listen(&mut self) -> Result<(), String> {
        let input = self.child.stdin.as_mut().ok_or("it has an input")?;
        told(input.write_all(b"go\n"))?;
        same(self.line()?, "listens".to_owned())
    }

    fn end(mut self) -> Result<(Option<i32>, String), String> {
        drop(self.child.stdin.take());
        let mut error = String::new();
        told(self.child.stderr.take().ok_or("it has one")?.read_to_string(&mut error))?;
        Ok((told(self.child.wait())?.code(), error))
    }
}

impl Drop for Going {
    fn drop(&mut self) {
        self.child.kill().and_then(|()| self.child.wait().map(drop)).ok();
    }
}

fn same<T: PartialEq + std::fmt::Debug>(got: T, wanted: T) -> Result<(), String> {
    if got == wanted { Ok(()) } else { Err(format!("{got:?} is not {wanted:?}")) }
}

fn begin(command: &mut std::process::Command) -> Result<Going, String> {
    let mut child = told(command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn())?;
    let out = BufReader::new(child.stdout.take().ok_or("it has an output")?);
    Ok(Going { child, out })
}

fn run(world: &World, flags: &[&str]) -> Result<Going, String> {
    let words = [&["run"], flags, &["--", "/usr/bin/python3", "-c", SERVER]].concat();
    let mut going = begin(&mut world.desk.project.command(words))?;
    match going.line()?.as_str() {
        "ready" => Ok(going),
        other => Err(format!("{other} {:?}", going.end())),
    }
}

/// As `belljar ps` calls the one that runs.
fn named(world: &World) -> Result<String, String> {
    let list = world.desk.project.json(["ps", "--json"])?;
    let running = list.as_array().into_iter().flatten().find(|one| one["running"] == true);
    running.and_then(|one| one["id"].as_str()).map(str::to_owned).ok_or_else(|| format!("nothing runs: {list}"))
}

fn forward(world: &World, which: &str, port: u16) -> Result<Going, String> {
    begin(&mut world.desk.project.command(["forward", which, &format!("{port}:8000"), "--json"]))
}

/// What a visitor hears.
fn visit(port: u16) -> Result<String, String> {
    let mut stream = told(TcpStream::connect(("127.0.0.1", port)))?;
    told(stream.set_read_timeout(Some(Duration::from_secs(20))))?;
    told(stream.write_all(b"hello"))?;
    let mut heard = String::new();
    told(stream.read_to_string(&mut heard))?;
    Ok(heard)
}

fn reached(who: Who) -> Result<(), String> {
    let world = World::of(who)?;
    // Over layers, and over none: neither has a network.
    for mode in ["cow", "readonly"] {
        let mut going = run(&world, &["--workspace-mode", mode])?;
        let id = named(&world)?;
        let port = free_port()?;
        let mut forward = forward(&world, &id[..8], port)?;
        let open = forward.event()?;
        same((&open["event"], &open["listens"]), (&"open".into(), &false.into()))?;
        // Nobody is there yet, and whoever comes hears so by the end of it.
        if let Ok(heard) = visit(port) {
            return Err(format!("from nobody: {heard}"));
        }
        same(forward.event()?["event"].clone(), "visit".into())?;
        let left = forward.event()?;
        if !left["why"].as_str().unwrap_or_default().contains("nobody listens there inside") {
            return Err(left.to_string());
        }
        going.listen()?;
        for _ in 0..2 {
            same(visit(port)?, "inside: hello".to_owned())?;
            same(forward.event()?["event"].clone(), "visit".into())?;
            let left = forward.event()?;
            same((&left["event"], &left["sent"], &left["received"]), (&"left".into(), &13.into(), &5.into()))?;
        }
        let ended = going.end()?;
        same(ended.0, Some(0)).map_err(|error| format!("{error} {}", ended.1))?;
        let end = forward.event()?;
        same((&end["event"], &end["with_the_run"]), (&"ended".into(), &true.into()))?;
        same(forward.end()?, (Some(0), String::new()))?;
        if TcpStream::connect(("127.0.0.1", port)).is_ok() {
            return Err("it still listens".to_owned());
        }
        let run = open["run"].as_str().ok_or("a run")?.to_owned();
        let count = |kind: &str| -> Result<usize, String> {
            let said = world.desk.expect(&["log", "--json", "--run", &run, "--type", kind], 0, "")?;
            Ok(String::from_utf8_lossy(&said.out).lines().count())
        };
        same((count("network.forward")?, count("network.visit")?, count("network.closed")?), (1, 3, 3))?;
    }
    world.desk.expect(&["ledger", "verify"], 0, "").map(drop)
}

fn interrupted(who: Who) -> Result<(), String> {
    let world = World::of(who)?;
    let flag = format!("--allow-net=localhost:{}", world.http);
    let mut going = run(&world, &[&flag])?;
    going.listen()?;
    let port = free_port()?;
    let mut forward = forward(&world, "last", port)?;
    same(forward.event()?["listens"].clone(), true.into())?;
    same(visit(port)?, "inside: hello".to_owned())?;
    // One that is still there when it is interrupted is written down, too.
    let held = told(TcpStream::connect(("127.0.0.1", port)))?;
    for wanted in ["visit", "left", "visit"] {
        same(forward.event()?["event"].clone(), wanted.into())?;
    }
    let process = rustix::process::Pid::from_child(&forward.child);
    told(rustix::process::kill_process(process, rustix::process::Signal::INT))?;
    same(forward.event()?["event"].clone(), "left".into())?;
    same(forward.event()?["with_the_run"].clone(), false.into())?;
    same(forward.end()?, (Some(0), String::new()))?;
    drop(held);
    // The run goes on, and can be reached again.
    let mut again = self::forward(&world, "last", port)?;
    same(again.event()?["listens"].clone(), true.into())?;
    same(visit(port)?, "inside: hello".to_owned())?;
    same(going.end()?.0, Some(0))
}

fn why_not(who: Who) -> Result<(), String> {
    let world = World::of(who)?;
    let desk = &world.desk;
    desk.expect(&["run", "--", "true"], 0, "")?;
    desk.expect(&["forward", "last", "8080:80"], 125, "nothing runs now")?;
    let mut going = run(&world, &[])?;
    going.listen()?;
    let id = named(&world)?;
    desk.expect(&["forward", "feedfacecafe", "8080:80"], 125, "no run is called `feedfacecafe`")?;
    let taken = told(TcpListener::bind("127.0.0.1:0"))?;
    let port = told(taken.local_addr())?.port();
    let said = desk.expect(&["forward", &id, &format!("{port}:8000")], 125, "somebody listens at 127.0.0.1")?;
    if !said.error.contains("choose another port") {
        return Err(format!("{said:?}"));
    }
    for bad in ["0:80", "80:0", "x", "70000:1", "1:2:3"] {
        desk.expect(&["forward", &id, bad], 125, "is no port")?;
    }
    let run = {
        let mut forward = forward(&world, &id, free_port()?)?;
        forward.event()?["run"].as_str().ok_or("a run")?.to_owned()
    };
    same(going.end()?.0, Some(0))?;
    desk.expect(&["forward", &run, "8080:80"], 125, "has ended").map(drop)
}

fn others(who: Who) -> Result<(), String> {
    let world = World::of(who)?;
    let other = World::of(if who == Who::Root { Who::Ordinary } else { Who::Root })?;
    let mut going = run(&world, &[])?;
    going.listen()?;
    let id = named(&world)?;
    let port = free_port()?;
    let (reached, run) = {
        let mut forward = forward(&world, &id, port)?;
        let run = forward.event()?["run"].as_str().ok_or("a run")?.to_owned();
        (visit(port)?, run)
    };
    same(reached, "inside: hello".to_owned())?;
    other.desk.expect(&["run", "--", "true"], 0, "")?;
    for (which, no) in [(id.as_str(), "no run is called"), (&run, "no run is called"), ("last", "nothing runs now")] {
        other.desk.expect(&["forward", which, &format!("{port}:8000")], 125, no)?;
    }
    // Not even by a record that is not theirs: the kernel says whose processes they are.
    if who == Who::Root {
        let ledger = |world: &World| world.desk.home.join(".local/state/belljar/ledger");
        copy(&ledger(&world), &ledger(&other), other.desk.project.who.user_id())?;
        for (which, no) in [(run.as_str(), "has ended"), ("last", "nothing runs now")] {
            other.desk.expect(&["forward", which, &format!("{port}:8000")], 125, no)?;
        }
    }
    same(going.end()?.0, Some(0))
}

fn copy(from: &std::path::Path, to: &std::path::Path, owner: u32) -> Result<(), String> {
    told(std::fs::remove_dir_all(to).or_else(|error| match error.kind() {
        std::io::ErrorKind::NotFound => Ok(()),
        _ => Err(error),
    }))?;
    let done = told(std::process::Command::new("cp").arg("-r").arg(from).arg(to).output())?;
    let owned = told(std::process::Command::new("chown").arg("-R").arg(owner.to_string()).arg(to).output())?;
    same((done.status.success(), owned.status.success()), (true, true))
}
