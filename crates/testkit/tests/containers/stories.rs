//! What a command sees, and what it can do.

use std::fs;
use std::io::Write;
use std::process::Stdio;
use std::time::Instant;

use belljar_testkit::contestant::Who;

use crate::{Stage, Story, that};

pub const ALL: &[(&str, Story)] = &[
    ("it runs, hardened", hardened),
    ("exit codes are the command's", codes),
    ("what is no program is not started", not_started),
    ("input arrives whole and ends", input),
    ("a terminal is one inside, of the same size", terminal),
    ("limits end it", limits),
    ("only what was granted can be written", read_only),
    ("changes are kept apart, shown and taken", layers),
    ("a sandbox is snapshotted and rolled back", snapshots),
    ("what is granted directly is changed directly", direct),
    ("what is hidden is not seen", hidden),
    ("there is no network", no_network),
    ("what goes out passes the gate", gated),
    ("a plan names all of it", explained),
    ("the result names image, backend and walls", result),
    ("a runtime that is not there is refused", no_runtime),
    ("doctor knows the engine", doctor),
];

fn hardened(stage: &Stage<'_>) -> Result<(), String> {
    let status = stage.said(&[], "cat /proc/self/status; id -u; cat /proc/1/comm")?;
    for line in ["NoNewPrivs:\t1", "Seccomp:\t2", "CapEff:\t0000000000000000", "CapBnd:\t0000000000000000"] {
        that(status.contains(line), || format!("no {line} in {status}"))?;
    }
    let user: Vec<&str> = status.lines().rev().take(2).collect();
    that(user[1] != "0", || "it is root".to_owned())?;
    let own = stage.who.user_id().to_string();
    that(stage.who == Who::Root || user[1] == own, || format!("it is {}, not {own}", user[1]))?;
    that(user[0].contains("init"), || format!("the first process is {}", user[0]))
}

/// The engine is told the size when the container runs already, so that is waited for.
/// `script` is the terminal: what is inside must see one, and its lines end as a terminal's do.
fn terminal(stage: &Stage<'_>) -> Result<(), String> {
    let script = "stty rows 33 cols 77; exec \"$BELLJAR\" run -t --backend container --workspace-mode readonly -- sh -c 'test -t 0 && test -t 1 && test -t 2 && echo all; tty; until stty size 2>/dev/null | grep 33; do sleep 0.05; done; exit 5'";
    let told = stage.command(&["run"]);
    let id = stage.who.user_id().to_string();
    let mut command = std::process::Command::new("setpriv");
    command.args(["--reuid", &id, "--regid", &id, "--clear-groups", "script", "-qec", script, "/dev/null"]);
    command.env_clear().envs(told.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.env("BELLJAR", told.get_program()).env("TERM", "dumb").current_dir(&stage.project.work);
    let said = command.stdin(Stdio::null()).output().map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&said.stdout).into_owned();
    that(said.status.code() == Some(5), || format!("its code is handed on: {:?} {text}", said.status))?;
    that(text.contains("all\r\n") && text.contains("/dev/") && text.contains("33 77"), || text.clone())?;
    // Without one there is none, and asking for one where there is none is no reason to hang.
    let none = stage.said(&[], "test -t 1 && echo terminal; echo end")?;
    that(none == "end\n", || none.clone())
}

fn codes(stage: &Stage<'_>) -> Result<(), String> {
    for code in [0, 1, 7, 125, 126, 127, 255] {
        let said = stage.run(&["-q"], &format!("exit {code}"))?;
        that(said.code == Some(code), || format!("{code}: {said:?}"))?;
    }
    let said = stage.run(&["-q"], "kill -TERM $$")?;
    that(said.code == Some(143), || format!("{said:?}"))
}

fn not_started(stage: &Stage<'_>) -> Result<(), String> {
    let said = stage.belljar(&["run", "--backend", "container", "--", "no-such-program"])?;
    that(said.code == Some(127) && said.error.contains("not in the image"), || format!("{said:?}"))
}

fn input(stage: &Stage<'_>) -> Result<(), String> {
    let mut command = stage.command(&["run", "-q", "--backend", "container", "--", "sh", "-c", "cat; echo end >&2"]);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|e| e.to_string())?;
    let bytes: Vec<u8> = (0..3_000_000u32).map(|number| number.to_le_bytes()[0]).collect();
    let mut to = child.stdin.take().ok_or("no input")?;
    let sent = bytes.clone();
    let writer = std::thread::spawn(move || to.write_all(&sent));
    let output = child.wait_with_output().map_err(|error| error.to_string())?;
    that(writer.join().is_ok_and(|sent| sent.is_ok()), || "it was not all taken".to_owned())?;
    that(output.stdout == bytes, || format!("{} bytes came back", output.stdout.len()))?;
    that(output.stderr.ends_with(b"end\n"), || format!("errors: {}", String::from_utf8_lossy(&output.stderr)))
}

fn limits(stage: &Stage<'_>) -> Result<(), String> {
    let begun = Instant::now();
    let said = stage.run(&["--timeout", "1s"], "sleep 600")?;
    that(said.code == Some(124) && begun.elapsed().as_secs() < 60, || format!("time: {said:?}"))?;
    let said = stage.run(&["--output", "1000"], "head -c 5000 /dev/zero")?;
    that(said.code == Some(0) && said.out.len() == 1000, || format!("output: {}", said.out.len()))?;
    // The shell itself grows, so that it is the one that is ended.
    let said = stage.run(&["--memory", "32M"], "x=a; while :; do x=$x$x; done")?;
    that(said.code == Some(137) && said.error.contains("memory"), || format!("memory: {said:?}"))?;
    let said = stage.run(&["-q", "--pids", "8"], "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do sleep 1 & done; wait")?;
    that(said.error.contains("fork"), || format!("processes: {said:?}"))?;
    let said = stage.run(&["-q", "--disk", "1M"], "head -c 3000000 /dev/zero > /tmp/x")?;
    that(said.code != Some(0), || format!("disk: {said:?}"))
}

fn read_only(stage: &Stage<'_>) -> Result<(), String> {
    for path in ["/x", "/bin/x", "/etc/x", "/var/x", "/dev/x", "/sys/x", "/proc/sys/kernel/x", "/run/x"] {
        let said = stage.run(&["-q"], &format!("echo x > {path}"))?;
        that(said.code != Some(0), || format!("{path} can be written"))?;
    }
    stage.said(&[], "echo x > /tmp/x && echo x > ~/x && echo x > /dev/shm/x && echo x > ./x").map(drop)
}

fn layers(stage: &Stage<'_>) -> Result<(), String> {
    let project = &stage.project;
    let put = |name: &str, text: &str| project.put(name, text).map_err(|error| error.to_string());
    put("kept", "kept\n")?;
    put("changed", "before\n")?;
    put("gone", "gone\n")?;
    put("folder/inside", "inside\n")?;
    put("folder/other", "other\n")?;
    project.let_it_age();
    stage.said(&[], "echo after > changed; rm gone; rm -r folder; mkdir folder; echo new > folder/new; mv kept moved; mv moved kept")?;
    let read = |name: &str| fs::read_to_string(project.work.join(name)).unwrap_or_default();
    that(read("changed") == "before\n" && read("gone") == "gone\n", || "the real files changed".to_owned())?;
    let diff = project.json(["diff", "--json"])?;
    let mut seen: Vec<String> = diff["changes"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|one| format!("{} {}", one["kind"].as_str().unwrap_or_default(), one["path"].as_str().unwrap_or_default()))
        .collect();
    seen.sort();
    let expected =
        ["added folder/new", "deleted folder/inside", "deleted folder/other", "deleted gone", "modified changed"];
    that(seen == expected, || format!("{seen:?}"))?;
    project.done(["apply"])?;
    that(read("changed") == "after\n" && read("folder/new") == "new\n" && !project.work.join("gone").exists(), || {
        "the changes were not taken".to_owned()
    })?;
    let left = project.leavings()?;
    that(left.is_empty(), || format!("left: {left:?}"))
}

fn snapshots(stage: &Stage<'_>) -> Result<(), String> {
    let project = &stage.project;
    project.put("file", "one\n").map_err(|error| error.to_string())?;
    project.let_it_age();
    if stage.who == Who::Root {
        // Root's files are copied: that is another kind of layer, which is chosen when it is made.
        return Ok(());
    }
    let id = project.create()?;
    let exec = |script: &str| {
        let said = stage.belljar(&["exec", "-q", &id, "--backend", "container", "--", "sh", "-c", script])?;
        that(said.code == Some(0), || format!("{script}: {said:?}"))?;
        Ok::<String, String>(String::from_utf8_lossy(&said.out).into_owned())
    };
    exec("echo two > file")?;
    project.done(["snapshot", id.as_str()])?;
    exec("echo three > file; echo more > more")?;
    that(exec("cat file more")? == "three\nmore\n", || "the layers are not one over the other".to_owned())?;
    project.done(["rollback", id.as_str()])?;
    that(exec("cat file; ls")? == "two\nfile\n", || "it was not rolled back".to_owned())?;
    project.done(["rm", id.as_str()]).map(drop)
}

fn direct(stage: &Stage<'_>) -> Result<(), String> {
    let folder = stage.project.work.join("out");
    stage.project.put("out/x", "").map_err(|error| error.to_string())?;
    let path = folder.to_string_lossy().into_owned();
    let said = stage.run(&["-q", "--write", &path], "echo direct > out/y")?;
    if stage.who == Who::Root {
        return that(said.code == Some(125) && said.error.contains("runs as root"), || format!("{said:?}"));
    }
    let wrote = fs::read_to_string(folder.join("y")).unwrap_or_default();
    that(said.code == Some(0) && wrote == "direct\n", || format!("{said:?}"))
}

fn hidden(stage: &Stage<'_>) -> Result<(), String> {
    stage.project.put("secret", "treasure\n").map_err(|error| error.to_string())?;
    stage.project.put("folder/secret", "treasure\n").map_err(|error| error.to_string())?;
    let seen = stage.said(&[], "cat secret folder/secret")?;
    that(seen == "treasure\ntreasure\n", || format!("it is not even there: {seen}"))?;
    let said = stage.run(&["-q", "--hide", "secret", "--hide", "folder"], "cat secret folder/secret; true")?;
    that(!String::from_utf8_lossy(&said.out).contains("treasure"), || format!("{said:?}"))
}

fn no_network(stage: &Stage<'_>) -> Result<(), String> {
    let said = stage.said(&[], "sed -n '3,$p' /proc/net/dev | cut -d: -f1 | tr -d ' '; cat /proc/net/route | wc -l")?;
    that(said == "lo\n1\n", || said.clone())
}

fn gated(stage: &Stage<'_>) -> Result<(), String> {
    let server = std::net::TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
    let port = server.local_addr().map_err(|error| error.to_string())?.port();
    let (answered, asked) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for stream in server.incoming().take(1).flatten() {
            let mut stream = stream;
            let mut bytes = [0u8; 512];
            let read = std::io::Read::read(&mut stream, &mut bytes).unwrap_or(0);
            let wrote = stream.write_all(b"HTTP/1.0 200 OK\r\nContent-Length: 6\r\n\r\nserved");
            answered.send((String::from_utf8_lossy(&bytes[..read]).into_owned(), wrote.is_ok())).unwrap_or_default();
        }
    });
    let host = format!("localhost:{port}");
    let fetch = format!(
        "(printf 'GET / HTTP/1.1\\r\\nHost: localhost:{port}\\r\\nConnection: close\\r\\n\\r\\n'; sleep 3) | nc 127.0.0.1 {port}"
    );
    let said = stage.run(&["--allow-net", &host], &fetch)?;
    if stage.who == Who::Ordinary {
        // Refused by name, with what would do.
        return that(
            said.code == Some(125) && said.error.contains("`network`") && said.error.contains("--backend native"),
            || format!("{said:?}"),
        );
    }
    that(String::from_utf8_lossy(&said.out).contains("served"), || format!("{said:?}"))?;
    let (request, _) = asked.recv_timeout(std::time::Duration::from_secs(10)).map_err(|error| error.to_string())?;
    that(request.starts_with("GET /"), || request.clone())?;
    // What was not granted ends at the gate, and is told.
    let said = stage.run(&["--allow-net", &host], "nc -w 5 192.0.2.1 80 < /dev/null; true")?;
    that(said.code == Some(0) && said.error.contains("192.0.2.1:80: is not a granted host"), || format!("{said:?}"))
}

fn explained(stage: &Stage<'_>) -> Result<(), String> {
    let said = stage.belljar(&["explain", "--backend", "container", "--", "true"])?;
    let text = String::from_utf8_lossy(&said.out).into_owned();
    for part in ["root    read-only", "network none", "drop    all capabilities", "sha256:", "closed list"] {
        that(text.contains(part), || format!("no `{part}` in {text}"))?;
    }
    Ok(())
}

fn result(stage: &Stage<'_>) -> Result<(), String> {
    let said = stage.run(&["--json"], "true")?;
    let line = said.error.lines().find(|line| line.starts_with('{')).unwrap_or_default();
    let value: serde_json::Value = serde_json::from_str(line).map_err(|error| format!("{error}: {said:?}"))?;
    that(value["backend"] == "container", || value.to_string())?;
    that(line.contains("sha256:"), || format!("no digest of the image in {line}"))
}

fn no_runtime(stage: &Stage<'_>) -> Result<(), String> {
    let said = stage.run(&["--runtime", "no-such"], "true")?;
    that(said.code == Some(125) && said.error.contains("no runtime `no-such`"), || format!("{said:?}"))
}

fn doctor(stage: &Stage<'_>) -> Result<(), String> {
    let said = stage.belljar(&["doctor", "--json"])?;
    let value: serde_json::Value = serde_json::from_slice(&said.out).map_err(|error| format!("{error}: {said:?}"))?;
    let backends = value["backends"].as_array().cloned().unwrap_or_default();
    let ours = backends.iter().find(|one| one["backend"] == "container").ok_or("it does not know the backend")?;
    that(ours["usable"] == true, || ours.to_string())
}
