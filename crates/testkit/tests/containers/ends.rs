//! However a run ends, nothing of it is left.

use std::io::Read;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use belljar_testkit::contestant::Who;
use belljar_testkit::engine::Engine;
use belljar_testkit::project::{Project, Said};

use crate::{Stage, Story, that};

pub const ALL: &[(&str, Story)] = &[
    ("belljar is killed", killed_belljar),
    ("belljar and its keeper are killed", killed_with_its_keeper),
    ("belljar is interrupted", interrupted),
    ("nobody reads its output", unheard),
    ("an engine's own refusal", refused),
];

/// A command that says when it runs, and then stays.
fn begin(stage: &Stage<'_>) -> Result<Child, String> {
    let script = "trap 'exit 3' INT; echo ready; while :; do sleep 0.1; done";
    let mut command = stage
        .command(&["run", "-q", "--workspace-mode", "readonly", "--backend", "container", "--", "sh", "-c", script]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(|error| error.to_string())?;
    let mut word = [0u8; 6];
    let heard = child.stdout.as_mut().map(|out| out.read_exact(&mut word));
    that(matches!(heard, Some(Ok(()))) && &word == b"ready\n", || "it did not begin".to_owned())?;
    Ok(child)
}

pub fn signal(pid: u32, signal: i32) {
    // SAFETY: takes integers; a child of ours that is not waited for, or one of its own.
    unsafe { libc::kill(pid as i32, signal) };
}

fn ended(mut child: Child) -> Result<Option<i32>, String> {
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        match child.try_wait().map_err(|error| error.to_string())? {
            Some(status) => return Ok(status.code()),
            None if Instant::now() > until => return Err("it does not end".to_owned()),
            None => std::thread::sleep(Duration::from_millis(20)),
        }
    }
}

fn killed_belljar(stage: &Stage<'_>) -> Result<(), String> {
    let child = begin(stage)?;
    signal(child.id(), libc::SIGKILL);
    ended(child)?;
    let left = stage.engine.leavings_in_the_end();
    that(left.is_empty(), || format!("{left:?}"))
}

/// Processes by the name that they gave themselves, and by whose child they are.
pub fn keepers_of(parent: u32) -> Vec<u32> {
    let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let all = all.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let is_one = |pid: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.contains("(belljar-keeper)")
            && stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(1)) == Some(&parent.to_string())
    };
    all.filter(is_one).collect()
}

fn killed_with_its_keeper(stage: &Stage<'_>) -> Result<(), String> {
    let child = begin(stage)?;
    let keepers = keepers_of(child.id());
    that(keepers.len() == 1, || format!("keepers: {keepers:?}"))?;
    signal(keepers[0], libc::SIGKILL);
    signal(child.id(), libc::SIGKILL);
    ended(child)?;
    that(!stage.engine.leavings().is_empty(), || "nothing is left to be found: the test proves nothing".to_owned())?;
    // The next that uses the engine removes it, beside its own run.
    stage.said(&["--workspace-mode", "readonly"], "true")?;
    let left = stage.engine.leavings_in_the_end();
    that(left.is_empty(), || format!("{left:?}"))?;
    // And so does `gc`.
    let child = begin(stage)?;
    keepers_of(child.id()).into_iter().for_each(|keeper| signal(keeper, libc::SIGKILL));
    signal(child.id(), libc::SIGKILL);
    ended(child)?;
    let said = stage.belljar(&["gc"])?;
    that(said.code == Some(0), || format!("{said:?}"))?;
    let left = stage.engine.leavings();
    that(left.is_empty(), || format!("after gc: {left:?}"))
}

fn interrupted(stage: &Stage<'_>) -> Result<(), String> {
    let child = begin(stage)?;
    signal(child.id(), libc::SIGINT);
    let code = ended(child)?;
    that(code == Some(3), || format!("the command did not hear of it: {code:?}"))?;
    // One that ignores it is ended.
    let mut command = stage.command(&[
        "run", "-q", "--backend", "container", "--", "sh", "-c",
        "trap '' TERM; echo ready; while :; do sleep 0.1; done",
    ]);
    let mut child = command.stdout(Stdio::piped()).spawn().map_err(|error| error.to_string())?;
    let mut word = [0u8; 6];
    let heard = child.stdout.as_mut().map(|out| out.read_exact(&mut word));
    that(matches!(heard, Some(Ok(()))), || "it did not begin".to_owned())?;
    signal(child.id(), libc::SIGTERM);
    ended(child).map(drop)
}

fn unheard(stage: &Stage<'_>) -> Result<(), String> {
    let mut command = stage.command(&["run", "-q", "--backend", "container", "--", "yes"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().map_err(|error| error.to_string())?;
    let mut some = [0u8; 100];
    let heard = child.stdout.as_mut().map(|out| out.read_exact(&mut some));
    that(matches!(heard, Some(Ok(()))), || "it said nothing".to_owned())?;
    child.stdout = None;
    ended(child).map(drop)
}

fn refused(stage: &Stage<'_>) -> Result<(), String> {
    // Less memory than an engine takes for a container.
    let said = stage.run(&["--memory", "1M"], "true")?;
    that(said.code == Some(125) && said.error.contains("engine"), || format!("{said:?}"))
}

/// The engine itself is killed while something runs.
pub fn killed(who: Who) -> Result<(), String> {
    let mut engine = Engine::start()?;
    let project = Project::new(who).map_err(|error| error.to_string())?;
    let stage = Stage { engine: &engine, project, who };
    // Its image is made before.
    stage.said(&["--workspace-mode", "readonly"], "true")?;
    let child = begin(&stage)?;
    let project = stage.project;
    let payload = || {
        let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let words = all.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
        words
            .filter(|words| words.windows(12).any(|part| part == b"trap 'exit 3") && words.starts_with(b"sh\0"))
            .count()
    };
    that(payload() > 0, || "nothing runs".to_owned())?;
    engine.kill().map_err(|error| error.to_string())?;
    let said = child.wait_with_output().map(Said::of).map_err(|error| error.to_string())?;
    that(said.code == Some(125) && said.error.contains("went away"), || format!("{said:?}"))?;
    let until = Instant::now() + Duration::from_secs(10);
    while payload() > 0 && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(50));
    }
    that(payload() == 0, || "what ran in it runs on".to_owned())?;
    engine.start_again()?;
    let stage = Stage { engine: &engine, project, who };
    stage.said(&["--workspace-mode", "readonly"], "true")?;
    let left = engine.leavings_in_the_end();
    that(left.is_empty(), || format!("{left:?}"))
}

pub fn down(who: Who) -> Result<(), String> {
    let project = Project::new(who).map_err(|error| error.to_string())?;
    let run = |host: &str| {
        let mut command = project.command(["run", "--backend", "container", "--", "true"]);
        command.env("DOCKER_HOST", host).output().map(Said::of).map_err(|error| error.to_string())
    };
    let said = run("unix:///no/such/socket")?;
    that(said.code == Some(125) && said.error.contains("container engine") && said.error.contains("start it"), || {
        format!("{said:?}")
    })?;
    let said = run("tcp://127.0.0.1:1")?;
    that(said.code == Some(125) && said.error.contains("only engines of this host"), || format!("{said:?}"))?;
    // Somebody answers who is none.
    let socket = project.work.join("s");
    let listener = std::os::unix::net::UnixListener::bind(&socket).map_err(|error| error.to_string())?;
    std::os::unix::fs::chown(&socket, Some(who.user_id()), None).map_err(|error| error.to_string())?;
    let talker = std::thread::spawn(move || {
        for mut stream in listener.incoming().take(1).flatten() {
            let mut head = [0u8; 1024];
            let read = stream.read(&mut head).unwrap_or(0);
            let sent = std::io::Write::write_all(
                &mut stream,
                b"HTTP/1.1 200 OK\r\nApi-Version: 1.24\r\nContent-Length: 0\r\n\r\n",
            );
            assert!(read > 0 && sent.is_ok());
        }
    });
    let said = run(&format!("unix://{}", socket.display()))?;
    that(talker.join().is_ok(), || "nobody asked".to_owned())?;
    that(said.code == Some(125) && said.error.contains("version 1.24"), || format!("{said:?}"))
}
