//! `belljar run --backend gvisor`: the same sentences hold behind a kernel of its own, as root and as an ordinary user.
//! Skipped, with its reason, where there is no runsc.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::process::Stdio;
use std::time::{Duration, Instant};

use belljar_testkit::Who;
use belljar_testkit::contestant::Contestant;
use belljar_testkit::project::{Project, Said};
use belljar_testkit::twice::{self, Check};
use libtest_mimic::{Arguments, Trial};

const ALL: &[(&str, Check)] = &[
    ("it_is_another_kernel", other_kernel),
    ("exit_codes_and_signals_are_the_commands", codes),
    ("input_output_words_and_variables_pass_as_they_are", streams),
    ("what_can_not_be_started_is_126_or_127", not_started),
    ("changes_are_kept_apart_and_can_be_taken", transaction),
    ("only_granted_files_are_there", files),
    ("what_is_made_in_a_written_folder_belongs_to_the_asker", owners),
    ("limits_hold", limits),
    ("signals_reach_the_command", signals),
    ("nothing_is_left_when_belljar_is_killed", killed),
    ("there_is_no_network", no_network),
    ("a_program_that_is_named_and_not_there_is_named_in_the_error", no_runsc),
    ("a_policy_that_demands_a_user_kernel_gets_it", demanded),
    ("the_plan_says_what_carries_it", planned),
];

fn main() {
    let arguments = Arguments::from_args();
    let absent = Contestant::Gvisor.version().is_none();
    let absent = absent.then(|| "no runsc that belljar can use on this host".to_owned());
    let trials = ALL.iter().flat_map(|(name, check)| {
        let why_not = |who| absent.clone().or(twice::why_not(who));
        [Who::Root, Who::Ordinary].map(|who| twice::trial(name, who, why_not(who), move || check(who)))
    });
    let trials: Vec<Trial> = trials.collect();
    libtest_mimic::run(&arguments, trials).exit();
}

fn told<T>(result: std::io::Result<T>) -> Result<T, String> {
    result.map_err(|error| error.to_string())
}

/// `belljar run` with these flags.
fn run(project: &Project, flags: &[&str], words: &[&str]) -> Result<Said, String> {
    told(project.belljar([&["run", "--backend", "gvisor", "-q"], flags, &["--"], words].concat()))
}

fn expect(said: Said, code: i32, out: &str) -> Result<Said, String> {
    match said.code == Some(code) && String::from_utf8_lossy(&said.out) == out {
        true => Ok(said),
        false => Err(format!("not {code} and {out:?}, but {said:?}")),
    }
}

fn shell(project: &Project, flags: &[&str], line: &str, code: i32, out: &str) -> Result<Said, String> {
    expect(run(project, flags, &["/bin/sh", "-c", line])?, code, out)
}

fn other_kernel(who: Who) -> Result<(), String> {
    let project = told(Project::new(who))?;
    let theirs = told(fs::read_to_string("/proc/version"))?;
    let said = run(&project, &[], &["/bin/cat", "/proc/version"])?;
    let ours = String::from_utf8_lossy(&said.out).into_owned();
    match said.code == Some(0) && ours.starts_with("Linux version") && ours != theirs {
        true => {}
        false => return Err(format!("{said:?}")),
    }
    shell(
        &project,
        &[],
        "grep -E '^(CapPrm|CapEff|CapBnd)' /proc/self/status | cut -f2 | sort -u",
        0,
        "0000000000000000\n",
    )?;
    shell(&project, &[], "test $(id -u) != 0 && echo ordinary", 0, "ordinary\n").map(drop)
}

fn codes(who: Who) -> Result<(), String> {
    let project = told(Project::new(who))?;
    for code in [0, 1, 7, 124, 125, 126, 127, 137, 255] {
        shell(&project, &[], &format!("exit {code}"), code, "")?;
    }
    for signal in [1, 2, 9, 11, 15] {
        shell(&project, &[], &format!("kill -{signal} $$"), 128 + signal, "")?;
    }
    Ok(())
}

fn streams(who: Who) -> Result<(), String> {
    let project = told(Project::new(who))?;
    let mut command = project.command(["run", "--backend", "gvisor", "-q", "--", "/bin/cat"]);
    let mut child = told(command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn())?;
    let noise: Vec<u8> = (0..1_000_000u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let mut input = child.stdin.take().ok_or("it has an input")?;
    let sent = noise.clone();
    let writer = std::thread::spawn(move || std::io::Write::write_all(&mut input, &sent));
    let output = told(child.wait_with_output())?;
    writer.join().map_err(|_| "the writer panicked")?.map_err(|error| error.to_string())?;
    if output.stdout != noise {
        return Err(format!("{} bytes came back", output.stdout.len()));
    }
    let said = shell(&project, &[], "echo out; echo error >&2; echo again > /dev/stderr", 0, "out\n")?;
    if said.error != "error\nagain\n" {
        return Err(format!("{said:?}"));
    }
    // Words that are no text.
    use std::os::unix::ffi::OsStrExt;
    let odd = std::ffi::OsStr::from_bytes(b"\xff one\ntwo");
    let words = ["run", "--backend", "gvisor", "-q", "--", "/usr/bin/printf", "%s"].map(std::ffi::OsStr::new);
    let said = told(project.belljar(words.iter().chain(&[odd])))?;
    if said.out != odd.as_bytes() {
        return Err(format!("{said:?}"));
    }
    shell(&project, &["--env", "COLOUR=blue", "--cwd", "/usr"], "echo $COLOUR; pwd", 0, "blue\n/usr\n").map(drop)
}

fn not_started(who: Who) -> Result<(), String> {
    let project = told(Project::new(who))?;
    for (name, contents) in [("broken", "#!/nowhere/at/all\n"), ("neither", "\0\u{1}\u{2} nothing that runs")] {
        told(project.put(name, contents))?;
        use std::os::unix::fs::PermissionsExt;
        told(fs::set_permissions(project.work.join(name), fs::Permissions::from_mode(0o755)))?;
    }
    expect(run(&project, &[], &["./broken"])?, 127, "")?;
    expect(run(&project, &[], &["./neither"])?, 126, "")?;
    expect(run(&project, &[], &["no-such-program"])?, 127, "").map(drop)
}

fn transaction(who: Who) -> Result<(), String> {
    let project = told(Project::new(who))?;
    told(project.put("kept", "before\n"))?;
    told(project.put("removed", "x\n"))?;
    project.let_it_age();
    shell(&project, &[], "echo after > kept; rm removed; mkdir new; echo y > new/file; mv new/file new/moved", 0, "")?;
    let before = told(fs::read_to_string(project.work.join("kept")))?;
    if before != "before\n" || !project.work.join("removed").exists() || project.work.join("new").exists() {
        return Err("the real files were changed".to_owned());
    }
    project.done(["apply"])?;
    let after = told(fs::read_to_string(project.work.join("kept")))?;
    let moved = told(fs::read_to_string(project.work.join("new/moved")))?;
    match after == "after\n" && moved == "y\n" && !project.work.join("removed").exists() {
        true => Ok(()),
        false => Err(format!("{after:?} {moved:?}")),
    }
}

fn files(who: Who) -> Result<(), String> {
    let project = told(Project::new(who))?;
    told(project.put("open/file", "shown\n"))?;
    told(project.put("open/secret", "sesame\n"))?;
    told(project.put("part/file", "fixed\n"))?;
    let flags = ["--hide", "open/secret", "--read", "part"];
    shell(&project, &flags, "cat open/file open/secret part/file", 0, "shown\nfixed\n")?;
    shell(
        &project,
        &flags,
        "echo x > part/file || echo refused; mv part elsewhere || echo stays",
        0,
        "refused\nstays\n",
    )?;
    shell(&project, &[], "touch /usr/x || touch /etc/x || touch /x || echo refused", 0, "refused\n")?;
    shell(&project, &[], "echo x > /tmp/x && cat /tmp/x; ls -A /srv /mnt 2>/dev/null", 2, "x\n").map(drop)
}

fn owners(who: Who) -> Result<(), String> {
    let project = told(Project::new(who))?;
    told(project.put("out/.keep", ""))?;
    shell(&project, &["--write", "out"], "echo made > out/file; mkdir out/folder; chmod 700 out/folder", 0, "")?;
    for name in ["file", "folder"] {
        let found = told(fs::metadata(project.work.join("out").join(name)))?;
        let around = told(fs::metadata(project.work.join("out")))?;
        if (found.uid(), found.gid()) != (around.uid(), around.gid()) {
            return Err(format!("{name} belongs to {}:{}", found.uid(), found.gid()));
        }
    }
    Ok(())
}

fn limits(who: Who) -> Result<(), String> {
    let project = told(Project::new(who))?;
    shell(&project, &["--timeout", "1500ms"], "echo begun; exec sleep 60", 124, "begun\n")?;
    let much = ["/usr/bin/python3", "-c", "x = b'x' * 900_000_000; print('through')"];
    expect(run(&project, &["--memory", "300M"], &much)?, 137, "")?;
    shell(&project, &["--cpu-time", "1s"], "while :; do :; done", 137, "")?;
    let flags = ["--pids", "20"];
    shell(&project, &flags, "for i in $(seq 40); do sleep 5 & done 2>/dev/null; echo all", 2, "")?;
    let line = "head -c 5000000 /dev/zero > /tmp/large; wc -c < /tmp/large";
    let said = run(&project, &["--disk", "2M"], &["/bin/sh", "-c", line])?;
    let size: u64 = String::from_utf8_lossy(&said.out).trim().parse().map_err(|_| format!("{said:?}"))?;
    if size > 2 << 20 {
        return Err(format!("{size} bytes in /tmp"));
    }
    let said = run(&project, &["--output", "10000"], &["/bin/sh", "-c", "yes | head -c 1000000"])?;
    if said.out.len() > 10_000 {
        return Err(format!("{} bytes came out", said.out.len()));
    }
    Ok(())
}

fn signals(who: Who) -> Result<(), String> {
    let project = told(Project::new(who))?;
    let line = "trap 'exit 7' TERM; echo ready; while :; do sleep 0.02; done";
    let mut command = project.command(["run", "--backend", "gvisor", "-q", "--", "/bin/sh", "-c", line]);
    let mut child = told(command.stdout(Stdio::piped()).spawn())?;
    let mut first = [0u8; 6];
    told(std::io::Read::read_exact(child.stdout.as_mut().ok_or("it has an output")?, &mut first))?;
    // SAFETY: takes integers.
    unsafe { libc::kill(child.id() as i32, libc::SIGTERM) };
    let status = told(child.wait())?;
    if status.code() == Some(7) { Ok(()) } else { Err(format!("{status:?}")) }
}

fn killed(who: Who) -> Result<(), String> {
    let project = told(Project::new(who))?;
    // Its argument is seen in the host's /proc only as long as gVisor runs.
    let mark = format!("belljar-killed-{}", std::process::id());
    let line = format!("echo ready; exec sleep 600 {mark}");
    let mut command = project.command(["run", "--backend", "gvisor", "-q", "--", "/bin/sh", "-c", &line]);
    let mut child = told(command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn())?;
    let mut first = [0u8; 6];
    told(std::io::Read::read_exact(child.stdout.as_mut().ok_or("it has an output")?, &mut first))?;
    let inside = processes_below(child.id());
    if inside.len() < 3 {
        return Err(format!("only {inside:?} run"));
    }
    told(child.kill())?;
    told(child.wait())?;
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        let alive: Vec<&(u32, String)> = inside.iter().filter(|one| is_still(one)).collect();
        if alive.is_empty() {
            return Ok(());
        }
        if Instant::now() > deadline {
            return Err(format!("{alive:?} live on"));
        }
        std::thread::yield_now();
    }
}

/// With the moment of their start, which tells them from others of the same number.
fn processes_below(pid: u32) -> Vec<(u32, String)> {
    let mut found = Vec::new();
    let mut waiting = vec![pid];
    while let Some(pid) = waiting.pop() {
        let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
        for task in tasks {
            let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
            for child in children.split_whitespace().filter_map(|child| child.parse().ok()) {
                waiting.push(child);
                found.extend(started(child).map(|moment| (child, moment)));
            }
        }
    }
    found
}

fn started(pid: u32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    (!fields.first()?.starts_with('Z')).then_some(())?;
    Some((*fields.get(19)?).to_owned())
}

fn is_still((pid, moment): &(u32, String)) -> bool {
    started(*pid).as_ref() == Some(moment)
}

fn no_network(who: Who) -> Result<(), String> {
    let project = told(Project::new(who))?;
    // A listener of the host's, on every address: it must not be reached, neither by loopback nor otherwise.
    let listener = told(std::net::TcpListener::bind("0.0.0.0:0"))?;
    told(listener.set_nonblocking(true))?;
    let port = told(listener.local_addr())?.port();
    let line = format!(
        "import socket\ntry:\n socket.create_connection(('127.0.0.1', {port}), 2)\n print('through')\nexcept OSError:\n print('refused')"
    );
    expect(run(&project, &[], &["/usr/bin/python3", "-c", &line])?, 0, "refused\n")?;
    match listener.accept() {
        Err(_) => Ok(()),
        Ok(_) => Err("somebody came".to_owned()),
    }
}

fn no_runsc(who: Who) -> Result<(), String> {
    let project = told(Project::new(who))?;
    let mut command = project.command(["run", "--backend", "gvisor", "--", "/bin/true"]);
    let said = Said::of(told(command.env("BELLJAR_RUNSC", "/nowhere/runsc").output())?);
    if said.code != Some(125) || !said.error.contains("/nowhere/runsc") {
        return Err(format!("{said:?}"));
    }
    // One that is not runsc at all.
    let mut command = project.command(["doctor"]);
    let said = Said::of(told(command.env("BELLJAR_RUNSC", "/bin/true").output())?);
    match String::from_utf8_lossy(&said.out).contains("bookworm-backports") {
        true => Ok(()),
        false => Err(format!("{said:?}")),
    }
}

fn demanded(who: Who) -> Result<(), String> {
    let project = told(Project::new(who))?;
    let config = project.state.join("config");
    told(fs::create_dir_all(config.join("belljar")))?;
    told(fs::write(config.join("belljar/policy.toml"), "version = 1\n[isolation]\nminimum = \"user-kernel\"\n"))?;
    for path in [config.clone(), config.join("belljar"), config.join("belljar/policy.toml")] {
        told(project.give(&path))?;
    }
    let mut command = project.command(["run", "-q", "--", "/bin/cat", "/proc/version"]);
    let said = Said::of(told(command.env("XDG_CONFIG_HOME", &config).output())?);
    let theirs = told(fs::read_to_string("/proc/version"))?;
    match said.code == Some(0) && String::from_utf8_lossy(&said.out) != theirs {
        true => Ok(()),
        false => Err(format!("{said:?}")),
    }
}

fn planned(who: Who) -> Result<(), String> {
    let project = told(Project::new(who))?;
    let said = told(project.belljar(["explain", "--backend", "gvisor", "--", "/bin/true"]))?;
    let text = String::from_utf8_lossy(&said.out).into_owned();
    for wanted in ["/carrier", "systrap", "--network=none", "drop     all capabilities", "seccomp"] {
        if said.code != Some(0) || !text.contains(wanted) {
            return Err(format!("no {wanted}: {said:?}"));
        }
    }
    Ok(())
}
