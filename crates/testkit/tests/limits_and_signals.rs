//! `belljar run` from outside: exit codes, input and output, time, signals, terminals, environment, folders.
//! Each sentence is tried as root and as the ordinary user where it may differ.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use belljar_testkit::Who;
use belljar_testkit::contestant::{TEST_USER, belljar};
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Winsize, tcgetattr, tcsetwinsize};
use serde_json::Value;

/// Far more than anything here takes, far less than for ever.
const PATIENCE: Duration = Duration::from_secs(20);

// ---- exit codes

#[test]
fn every_exit_code_of_the_command_is_ours() {
    for who in everyone() {
        let place = Place::new(who);
        for code in 0..=255 {
            let status = place.belljar(&["-q"], &["/bin/sh", "-c", &format!("exit {code}")]).status().unwrap();
            assert_eq!(status.code(), Some(code), "as {who:?}");
        }
    }
}

#[test]
fn a_signal_that_ends_the_command_is_128_and_its_number() {
    for who in everyone() {
        let place = Place::new(who);
        for signal in [1, 2, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 31, 34, 64] {
            let (status, result) = place.run(&[], &["/bin/sh", "-c", &format!("kill -{signal} $$")]);
            assert_eq!(status.code(), Some(128 + signal), "{result}");
            assert_eq!(result["signal"], signal);
            assert_eq!(result["exit"], Value::Null);
            assert_eq!(result["overrun"], Value::Null);
        }
    }
}

#[test]
fn the_result_tells_the_commands_own_124_from_ours() {
    for who in everyone() {
        let place = Place::new(who);
        let (status, own) = place.run(&[], &["/bin/sh", "-c", "exit 124"]);
        assert_eq!(status.code(), Some(124));
        assert_eq!((&own["exit"], &own["overrun"]), (&Value::from(124), &Value::Null));

        let (status, ours) = place.run(&["--timeout", "200ms"], &["/bin/sleep", "30"]);
        assert_eq!(status.code(), Some(124));
        assert_eq!((&ours["exit"], &ours["overrun"]), (&Value::Null, &Value::from("wall-time")));
    }
}

#[test]
fn the_result_tells_the_commands_own_125_126_and_127_from_ours() {
    for who in everyone() {
        let place = Place::new(who);
        for code in [122, 123, 125, 126, 127] {
            let (status, result) = place.run(&[], &["/bin/sh", "-c", &format!("exit {code}")]);
            assert_eq!(status.code(), Some(code));
            assert_eq!((&result["outcome"], &result["exit"]), (&Value::from("ran"), &Value::from(code)));
        }
        place.put("plain", "#!/bin/sh\n", 0o644);
        place.put("broken", "#!/nowhere/at/all\n", 0o755);
        place.put("neither", "\x00\x01\x02\x03 nothing that runs", 0o755);
        for (program, code) in [
            ("./plain", 126),
            ("./broken", 127),
            ("./neither", 126),
            ("./missing", 127),
            ("no-such-program", 127),
            ("/", 126),
        ] {
            let (status, result) = place.run(&[], &[program]);
            assert_eq!(status.code(), Some(code), "{program}: {result}");
            assert_eq!(result["exit"], Value::Null);
            assert_ne!(result["outcome"], "ran", "{program}: {result}");
            assert!(result["error"]["message"].as_str().is_some_and(|message| !message.is_empty()), "{result}");
        }
    }
}

#[test]
fn wrong_usage_is_125_and_one_line_and_runs_nothing() {
    for who in everyone() {
        let place = Place::new(who);
        for flags in [
            &["--timeout", "soon"][..],
            &["--timeout", "-1s"],
            &["--memory", "0x10"],
            &["--memory", "99999999999999999999G"],
            &["--cpus", "0"],
            &["--cpus", "NaN"],
            &["--pids", "-5"],
            &["--backend", "no-such-backend"],
            &["--result-file", "/nowhere/at/all"],
        ] {
            let output = place.belljar(flags, &["/bin/sh", "-c", "echo ran"]).output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(125), "{flags:?}: {said}");
            assert!(output.stdout.is_empty(), "{flags:?}");
            assert_eq!(said.lines().count(), 1, "{flags:?}: {said}");
        }
    }
}

#[test]
fn an_unknown_flag_is_wrong_usage() {
    let place = Place::new(everyone()[0]);
    for flags in [&["--no-such-flag"][..], &["--memry", "64M"], &["-x"]] {
        let output = place.belljar(flags, &["/bin/true"]).output().unwrap();
        assert_eq!(output.status.code(), Some(125), "{flags:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

// ---- input and output

#[test]
fn ten_megabytes_pass_byte_for_byte() {
    let bytes = noise(10_000_000);
    for who in everyone() {
        let place = Place::new(who);
        for flags in [&["-q"][..], &["-q", "--output", "64M"]] {
            for (command, to_error) in [("exec cat", false), ("exec cat >&2", true)] {
                let mut child = place
                    .belljar(flags, &["/bin/sh", "-c", command])
                    .stdin(Stdio::piped())
                    .stdout(Stdio::piped())
                    .stderr(Stdio::piped())
                    .spawn()
                    .unwrap();
                let mut input = child.stdin.take().unwrap();
                let copy = bytes.clone();
                let writer = std::thread::spawn(move || input.write_all(&copy));
                let output = child.wait_with_output().unwrap();
                writer.join().unwrap().unwrap();
                let (full, empty) =
                    if to_error { (output.stderr, output.stdout) } else { (output.stdout, output.stderr) };
                assert!(full == bytes, "as {who:?}, {flags:?} {command}: {} bytes came", full.len());
                assert!(empty.is_empty());
            }
        }
    }
}

#[test]
fn output_over_its_limit_is_dropped_and_counted_and_stops_nobody() {
    for who in everyone() {
        let place = Place::new(who);
        let file = place.path.join("result.json");
        let command = "head -c 3000000 /dev/zero; head -c 2000000 /dev/zero >&2; exit 5";
        let flags = ["-q", "--output", "1M", "--result-file", file.to_str().unwrap()];
        let output = place.belljar(&flags, &["/bin/sh", "-c", command]).output().unwrap();
        assert_eq!(output.status.code(), Some(5));
        assert_eq!((output.stdout.len(), output.stderr.len()), (1 << 20, 1 << 20));
        assert_eq!(read_result(&file)["output_dropped"], 5_000_000 - (2 << 20));
    }
}

#[test]
fn our_own_memory_stays_small_whatever_the_command_says() {
    for who in everyone() {
        let place = Place::new(who);
        let command = "head -c 200000000 /dev/zero; echo said >&2; read line";
        let mut child = place
            .belljar(&["-q", "--output", "1M"], &["/bin/sh", "-c", command])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = child.stdout.take().unwrap();
        let reader = std::thread::spawn(move || std::io::copy(&mut output, &mut std::io::sink()));
        let mut said = String::new();
        BufReader::new(child.stderr.as_mut().unwrap()).read_line(&mut said).unwrap();
        assert_eq!(said, "said\n");
        let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
        let most = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")).unwrap();
        assert!(most.trim().parse::<u64>().unwrap() < 16 << 10, "{most} KiB");
        child.stdin.take().unwrap().write_all(b"\n").unwrap();
        assert!(ended(&mut child).success());
        assert_eq!(reader.join().unwrap().unwrap(), 1 << 20);
    }
}

#[test]
fn a_reader_who_leaves_ends_the_command_as_in_a_shell() {
    for who in everyone() {
        let place = Place::new(who);
        let mut child = place.belljar(&["-q"], &["/usr/bin/yes"]).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "y\n");
        assert_eq!(ended(&mut child).code(), Some(128 + libc::SIGPIPE));
    }
}

#[test]
fn descriptors_that_are_closed_are_nothing_to_stumble_over() {
    for who in everyone() {
        let place = Place::new(who);
        let binary = belljar();
        let binary = binary.display();
        for (closed, command) in [("<&-", "cat"), (">&-", "true"), ("2>&-", "true"), ("<&- >&- 2>&-", "true")] {
            let line = format!("exec {binary} run -q -- /bin/{command} {closed}");
            let output = place.command("/bin/sh").args(["-c", &line]).output().unwrap();
            assert_eq!(output.status.code(), Some(0), "{closed}: {}", String::from_utf8_lossy(&output.stderr));
            assert!(output.stdout.is_empty(), "{closed}");
        }
    }
}

#[test]
fn a_folder_as_input_or_output_is_refused() {
    for who in everyone() {
        let place = Place::new(who);
        let folder = || Stdio::from(File::open("/etc").unwrap());
        let run = || place.belljar(&[], &["/bin/sh", "-c", "ls /proc/self/fd/0/.."]);
        assert_eq!(run().stdin(folder()).stdout(Stdio::null()).status().unwrap().code(), Some(125));
        assert_eq!(run().stdout(folder()).status().unwrap().code(), Some(125));
        assert_eq!(run().stdout(Stdio::null()).stderr(folder()).status().unwrap().code(), Some(125));
    }
}

// ---- time

#[test]
fn the_time_limit_holds_and_leaves_a_shorter_command_alone() {
    for who in everyone() {
        let place = Place::new(who);
        let started = Instant::now();
        let (status, result) =
            place.run(&["--timeout", "300ms"], &["/bin/sh", "-c", "trap '' TERM INT; sleep 30 & wait"]);
        assert_eq!(status.code(), Some(124), "{result}");
        assert!(started.elapsed() < Duration::from_secs(3), "{:?}", started.elapsed());
        let (status, _) = place.run(&["--timeout", "20s"], &["/bin/sh", "-c", "exit 3"]);
        assert_eq!(status.code(), Some(3));
    }
}

#[test]
fn the_time_limit_holds_even_if_nobody_reads_the_output() {
    for who in everyone() {
        let place = Place::new(who);
        let flags = ["-q", "--timeout", "500ms", "--output", "64M"];
        let mut child = place.belljar(&flags, &["/usr/bin/yes"]).stdout(Stdio::piped()).spawn().unwrap();
        let status = ends_within(&mut child, Duration::from_secs(4));
        assert_eq!(status.and_then(|status| status.code()), Some(124), "as {who:?}");
    }
}

#[test]
fn the_time_limit_holds_even_if_nobody_reads_the_terminal() {
    let place = Place::new(Who::Root);
    let flags = ["-q", "-t", "--timeout", "500ms"];
    let mut child =
        place.belljar(&flags, &["/usr/bin/yes"]).stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let status = ends_within(&mut child, Duration::from_secs(4));
    assert_eq!(status.and_then(|status| status.code()), Some(124));
}

#[test]
fn the_time_limit_holds_even_if_the_command_reads_no_input() {
    let place = Place::new(Who::Root);
    let flags = ["-q", "-t", "--timeout", "500ms"];
    // Raw, so that what is typed is kept until it is read rather than thrown away.
    let command = ["/bin/sh", "-c", "stty raw; sleep 30"];
    let input = Stdio::from(File::open("/dev/zero").unwrap());
    let mut child = place.belljar(&flags, &command).stdin(input).stdout(Stdio::null()).spawn().unwrap();
    let status = ends_within(&mut child, Duration::from_secs(4));
    assert_eq!(status.and_then(|status| status.code()), Some(124));
}

#[test]
fn half_a_processor_is_half_a_processor() {
    // Only root has control groups here; others get whole processors, and are told so.
    if skip_unless_root() {
        return;
    }
    let place = Place::new(Who::Root);
    let spin = "i=0; while [ $i -lt 100000000 ]; do i=$((i+1)); done";
    let (_, result) = place
        .run(&["--cpus", "0.5", "--timeout", "1500ms"], &["/bin/sh", "-c", &format!("({spin}) & ({spin}) & wait")]);
    let usage = &result["usage"];
    let number = |name: &str| usage[name].as_f64().unwrap();
    let share = (number("user_time") + number("system_time")) / number("wall_time");
    assert!(share < 0.6, "{share}: {usage}");
}

// ---- signals

/// However it was begun: where every processor has something to do, all of a start is done on one of them.
#[test]
fn the_command_may_run_on_every_processor_while_others_use_them_all() {
    let count = std::thread::available_parallelism().unwrap().get();
    let spins: Vec<Spin> = (0..2 * count).map(|_| Spin::begin()).collect();
    for who in everyone() {
        let place = Place::new(who);
        for _ in 0..5 {
            let output = place.belljar(&["-q"], &["/usr/bin/nproc"]).output().unwrap();
            assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), count.to_string(), "as {who:?}");
        }
        if count > 1 {
            let output = place.belljar(&["-q", "--cpus", "1"], &["/usr/bin/nproc"]).output().unwrap();
            assert!(output.status.success(), "{output:?}");
        }
    }
    drop(spins);
}

/// What holds only the mounts of a sandbox lets go of them when it ends, however it does: that is no trouble that anybody can do anything
/// about. An ordinary user's does, root's has control groups, too. On one processor, where it is there however busy the machine is.
#[test]
fn that_a_keeper_is_killed_is_told_only_if_something_is_left() {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap().trim();
    let processor: String = allowed.chars().take_while(char::is_ascii_digit).collect();
    for who in everyone() {
        let place = Place::new(who);
        let mut killed = 0;
        for _ in 0..5 {
            let mut command = place.command("taskset");
            command.args(["--cpu-list", &processor]).arg(belljar());
            command.args(["run", "--", "/bin/sh", "-c", "echo ready; read word"]);
            let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
            let mut belljar = piped.spawn().unwrap();
            let mut word = [0u8; 6];
            belljar.stdout.as_mut().unwrap().read_exact(&mut word).unwrap();
            let pid = belljar.id();
            let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
            // In a group of its own, and in no sandbox.
            let namespace = |of: &str| fs::read_link(format!("/proc/{of}/ns/pid")).ok();
            let keepers = children.split_whitespace().filter(|child| {
                let its_group = fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
                let its_group = its_group.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(2));
                its_group == Some(*child) && namespace(child) == namespace("self")
            });
            for keeper in keepers {
                kill(keeper.parse().unwrap(), libc::SIGKILL);
                killed += 1;
            }
            drop(belljar.stdin.take());
            let output = belljar.wait_with_output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(!said.contains("could not be removed") && !said.contains("keeper"), "as {who:?}: {said}");
        }
        assert!(killed > 0, "as {who:?}, there is a keeper");
    }
}

/// Uses a processor until it is dropped.
struct Spin(Child);

impl Spin {
    fn begin() -> Spin {
        Spin(Command::new("/bin/sh").args(["-c", "while :; do :; done"]).spawn().unwrap())
    }
}

impl Drop for Spin {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[test]
fn a_command_that_heeds_sigterm_ends_as_it_likes() {
    for who in everyone() {
        let place = Place::new(who);
        for signal in [libc::SIGTERM, libc::SIGHUP, libc::SIGINT, libc::SIGUSR1] {
            let command = format!("trap 'exit 7' {signal}; echo ready; while :; do sleep 0.02; done");
            let mut child = place.ready(&[], &command);
            kill(child.id(), signal);
            assert_eq!(ended(&mut child).code(), Some(7), "signal {signal} as {who:?}");
        }
        let mut child = place.ready(&[], "echo ready; exec sleep 30");
        kill(child.id(), libc::SIGINT);
        assert_eq!(ended(&mut child).code(), Some(130));
    }
}

#[test]
fn a_command_that_ignores_sigterm_is_ended_after_a_grace() {
    let who = if is_root() { Who::Ordinary } else { everyone()[0] };
    let place = Place::new(who);
    let file = place.path.join("result.json");
    let flags = ["--result-file", file.to_str().unwrap()];
    let mut child = place.ready(&flags, "trap '' TERM; echo ready; while :; do sleep 0.05; done");
    let asked = Instant::now();
    kill(child.id(), libc::SIGTERM);
    assert_eq!(ended(&mut child).code(), Some(137));
    assert!(asked.elapsed() > Duration::from_secs(4), "the grace was only {:?}", asked.elapsed());
    assert!(asked.elapsed() < Duration::from_secs(9), "the grace was {:?}", asked.elapsed());
    assert_eq!(read_result(&file)["overrun"], "cancelled");
}

#[test]
fn a_signal_at_the_very_end_does_not_cost_the_result() {
    for who in everyone() {
        let place = Place::new(who);
        let file = place.path.join("result.json");
        let flags = ["-q", "--timeout", "300ms", "--output", "64M", "--result-file", file.to_str().unwrap()];
        let mut child = place.belljar(&flags, &["/usr/bin/yes"]).stdout(Stdio::piped()).spawn().unwrap();
        // Nobody reads: until its time is over, it waits to write. The signal comes in that time.
        assert!(ends_within(&mut child, Duration::from_millis(600)).is_none_or(|status| status.code() == Some(124)));
        if child.try_wait().unwrap().is_none() {
            kill(child.id(), libc::SIGTERM);
        }
        let mut output = child.stdout.take().unwrap();
        std::io::copy(&mut output, &mut std::io::sink()).unwrap();
        let status = ended(&mut child);
        assert_eq!(status.code(), Some(124), "{status} as {who:?}");
        assert_eq!(read_result(&file)["overrun"], "wall-time");
    }
}

#[test]
fn nothing_outlives_a_killed_supervisor() {
    for who in everyone() {
        let place = Place::new(who);
        let forms = [
            "echo ready; exec sleep 1000",
            "setsid sleep 1000 & (setsid sleep 1000 &) ; echo ready; wait",
            "sleep 1000 & kill -STOP $!; echo ready; kill -STOP $$",
            "trap '' TERM HUP INT; echo ready; while :; do (:) & done",
        ];
        for form in forms {
            let mut child = place.ready(&["--pids", "200"], form);
            let inside = below(child.id());
            assert!(!inside.is_empty(), "{form}");
            kill(child.id(), libc::SIGKILL);
            assert_eq!(std::os::unix::process::ExitStatusExt::signal(&ended(&mut child)), Some(9));
            let left = || inside.iter().filter(|process| process.lives()).collect::<Vec<_>>();
            assert!(soon(|| left().is_empty()), "{form} as {who:?}: left are {:?}", left());
        }
    }
}

#[test]
fn a_stop_stops_the_command_too_and_both_go_on_together() {
    for who in everyone() {
        let place = Place::new(who);
        let mut child = place.ready(&[], "echo ready; while :; do sleep 0.02; done");
        kill(child.id(), libc::SIGTSTP);
        assert!(soon(|| state(child.id()) == Some('T')), "belljar itself does not stop");
        // The oldest: for a moment, each `sleep` is a shell too.
        let shells = below(child.id()).into_iter().filter(|process| process.name() == "sh");
        let payload = shells.min_by_key(|process| process.pid).expect("the payload is gone");
        // Or waiting for a child that it shares its memory with until that executes, and that is stopped.
        let stopped = soon(|| matches!(state(payload.pid), Some('T' | 'D')));
        kill(child.id(), libc::SIGCONT);
        let goes_on = soon(|| !matches!(state(payload.pid), Some('T') | None));
        kill(child.id(), libc::SIGKILL);
        ended(&mut child);
        assert!(stopped, "the payload runs on as {who:?}");
        assert!(goes_on, "the payload stays stopped as {who:?}");
    }
}

#[test]
fn after_a_stop_and_a_continue_all_goes_on() {
    for who in everyone() {
        let place = Place::new(who);
        let mut child = place.ready(&[], "echo ready; read line; exit 6");
        kill(child.id(), libc::SIGTSTP);
        assert!(soon(|| state(child.id()) == Some('T')));
        kill(child.id(), libc::SIGCONT);
        assert!(soon(|| state(child.id()) != Some('T')));
        child.stdin.take().unwrap().write_all(b"go on\n").unwrap();
        assert_eq!(ended(&mut child).code(), Some(6));
    }
}

// ---- terminals

#[test]
fn control_c_reaches_a_command_without_a_terminal_of_its_own() {
    for who in everyone() {
        let place = Place::new(who);
        let mut outer = Outer::open();
        let command = "trap 'echo caught; exit 9' INT; echo ready; while :; do sleep 0.02; done";
        let mut child = outer.spawn(place.belljar(&["-q"], &["/bin/sh", "-c", command]));
        outer.until("ready");
        outer.types(b"\x03");
        outer.until("caught");
        assert_eq!(ended(&mut child).code(), Some(9), "as {who:?}");
    }
}

#[test]
fn a_terminal_of_its_own_has_the_right_size_and_control_c() {
    for who in everyone() {
        let place = Place::new(who);
        let mut outer = Outer::open();
        let before = format!("{:?}", tcgetattr(&outer.theirs).unwrap());
        let command = "stty size; test -t 0 && test -t 1 && test -t 2 && echo is a tty; \
                       trap 'echo caught; exit 9' INT; echo ready; while :; do sleep 0.02; done";
        let mut child = outer.spawn(place.belljar(&["-q", "-t"], &["/bin/sh", "-c", command]));
        outer.until("33 101");
        outer.until("is a tty");
        outer.until("ready");
        outer.types(b"\x03");
        outer.until("caught");
        assert_eq!(ended(&mut child).code(), Some(9), "as {who:?}");
        assert_eq!(format!("{:?}", tcgetattr(&outer.theirs).unwrap()), before, "the terminal is left changed");
    }
}

#[test]
fn a_terminal_of_its_own_follows_the_size_of_ours() {
    let place = Place::new(everyone()[0]);
    let mut outer = Outer::open();
    let command = "trap 'stty size; exit 4' WINCH; echo ready; while :; do sleep 0.02; done";
    let mut child = outer.spawn(place.belljar(&["-q", "-t"], &["/bin/sh", "-c", command]));
    outer.until("ready");
    tcsetwinsize(&outer.ours, Winsize { ws_row: 44, ws_col: 77, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
    outer.until("44 77");
    assert_eq!(ended(&mut child).code(), Some(4));
}

#[test]
fn input_from_a_pipe_ends_a_terminal_of_its_own_too() {
    for who in everyone() {
        let place = Place::new(who);
        let mut child =
            place.belljar(&["-q", "-t"], &["/bin/cat"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(b"one line\n").unwrap();
        let status = ended(&mut child);
        let mut said = String::new();
        child.stdout.take().unwrap().read_to_string(&mut said).unwrap();
        assert!(status.success() && said.contains("one line"), "{status} {said:?}");
    }
}

// ---- environment and folders

#[test]
fn the_environment_is_cleared_but_for_what_was_asked_for() {
    for who in everyone() {
        let place = Place::new(who);
        let mut command = place.belljar(&["-q", "--env", "PASSED", "--env", "SET=to this"], &["/usr/bin/env", "-0"]);
        command.env("SECRET_TOKEN", "hidden").env("PASSED", "through").env("LD_PRELOAD", "").env("BASH_ENV", "/x");
        let output = command.output().unwrap();
        assert!(output.status.success());
        let text = String::from_utf8(output.stdout).unwrap();
        let entries: Vec<&str> = text.split('\0').filter(|entry| !entry.is_empty()).collect();
        assert!(entries.contains(&"PASSED=through") && entries.contains(&"SET=to this"), "{entries:?}");
        let known = [
            "PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "LANG", "TZ", "TMPDIR", "PWD", "PASSED", "SET",
            "COLORTERM",
        ];
        for entry in entries {
            let name = entry.split('=').next().unwrap_or_default();
            assert!(known.contains(&name) || name.starts_with("LC_") || name.starts_with("BELLJAR"), "{entry}");
            assert!(!entry.contains("hidden"));
        }
    }
}

#[test]
fn the_command_starts_where_we_are_or_where_it_may() {
    for who in everyone() {
        let place = Place::new(who);
        place.folder("below");
        let where_is = |flags: &[&str]| place.belljar(flags, &["/bin/pwd", "-P"]).output().unwrap();
        let said = |output: std::process::Output| String::from_utf8_lossy(&output.stdout).trim().to_owned();
        assert_eq!(said(where_is(&["-q"])), place.path.to_str().unwrap());
        assert_eq!(said(where_is(&["-q", "--cwd", "below"])), place.path.join("below").to_str().unwrap());
        let sibling = Place::new(who);
        for (outside, code) in [(sibling.path.to_str().unwrap(), 123), ("/nowhere", 125)] {
            let output = where_is(&["--cwd", outside]);
            assert_eq!(output.status.code(), Some(code), "{outside}");
            assert!(said(output).is_empty(), "{outside}");
        }
        // Above what is granted there is nothing but the way to it: to start there shows no more.
        let above = place.belljar(&["-q", "--cwd", ".."], &["/bin/ls", "-A"]).output().unwrap();
        assert_eq!(said(above), place.path.file_name().unwrap().to_str().unwrap());
    }
}

// ---- what is said, and who says it

#[test]
fn no_terminal_command_passes_through_our_own_messages() {
    let place = Place::new(everyone()[0]);
    for words in [&["./\x1b[2J\x1b]0;x\x07"][..], &["no-\x1b[31m-program"], &["/bin/true", "--", "\x1b[2J"]] {
        let output = place.belljar(&[], words).output().unwrap();
        assert!(!output.stderr.contains(&0x1b), "{words:?}: {:?}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn no_terminal_command_passes_through_the_name_of_a_program() {
    let place = Place::new(everyone()[0]);
    place.put("\x1b[2J", "\x00\x01\x02\x03 nothing that runs", 0o755);
    for words in [&["./\x1b[2J"][..], &["/bin/sh", "-c", "exit 0"]] {
        let output = place.belljar(&["--result-file", "/nowhere/\x1b[2J"], words).output().unwrap();
        assert!(!output.stderr.contains(&0x1b), "{:?}", String::from_utf8_lossy(&output.stderr));
        let output = place.belljar(&[], words).output().unwrap();
        assert!(!output.stderr.contains(&0x1b), "{:?}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn a_result_is_never_what_the_command_wrote() {
    for who in everyone() {
        let place = Place::new(who);
        let file = place.path.join("result.json");
        let forgery =
            r#"rm -f result.json; echo '{"version":1,"outcome":"ran","exit":0,"forged":true}' > result.json; exit 3"#;
        let flags = ["-q", "--write", ".", "--result-file", "result.json"];
        let status = place.belljar(&flags, &["/bin/sh", "-c", forgery]).status().unwrap();
        // Refused before it runs, or the true result: either will do.
        if status.code() != Some(125) {
            assert_eq!(read_result(&file)["exit"], 3);
        }
    }
}

#[test]
fn a_command_that_fills_the_result_file_first_leaves_valid_json() {
    // Outside every writable place the command has no way to it; this is the plain case.
    for who in everyone() {
        let place = Place::new(who);
        let (_, result) =
            place.run(&[], &["/bin/sh", "-c", r#"printf '{"version":1,"exit":0}\n' ; printf '\377\000\n'; exit 3"#]);
        assert_eq!((&result["version"], &result["exit"]), (&Value::from(1), &Value::from(3)));
    }
}

// ---- limits that others must not trip

#[test]
fn what_others_write_does_not_end_a_run() {
    if skip_unless_root() {
        return;
    }
    let place = Place::new(Who::Root);
    let other = Place::new(Who::Root);
    // There before, and more than the limit: a count that takes all of it for new is over at once.
    fs::write(place.path.join("old"), vec![1u8; 24 << 20]).unwrap();
    let file = other.path.join("result.json");
    let flags = ["--write", ".", "--disk", "16M", "--result-file", file.to_str().unwrap()];
    let mut child = place.ready(&flags, "echo ready; read line; exit 0");
    // At once, so that the supervisor's first closer look sees all of it.
    let new = File::create(other.path.join("new")).unwrap();
    rustix::fs::fallocate(&new, rustix::fs::FallocateFlags::empty(), 0, 64 << 20).unwrap();
    // Several looks of the supervisor later; an early end is seen at once.
    let early = ends_within(&mut child, Duration::from_millis(700));
    if early.is_none() {
        child.stdin.take().unwrap().write_all(b"\n").unwrap();
        ended(&mut child);
    }
    assert_eq!(read_result(&file)["overrun"], Value::Null);
}

#[test]
fn a_group_of_somebody_else_is_left_alone() {
    let parent = Path::new("/sys/fs/cgroup/memory");
    if skip_unless_root() || !parent.join("memory.limit_in_bytes").exists() {
        return;
    }
    let own = fs::read_to_string("/proc/self/cgroup").unwrap();
    let own = own.lines().find_map(|line| line.split_once(":memory:")).map_or("/", |(_, path)| path).to_owned();
    let parent = parent.join(own.trim_start_matches('/'));
    let place = Place::new(Who::Root);
    let mut bystander = Command::new("/bin/sleep").arg("60").spawn().unwrap();
    // In another container our number may be taken too: the shell's number becomes belljar's.
    let line = format!(
        "mkdir {0}/belljar-$$ && echo {1} > {0}/belljar-$$/cgroup.procs && echo $$ && exec {2} run -q -- /bin/true",
        parent.display(),
        bystander.id(),
        belljar().display()
    );
    let output = place.command("/bin/sh").args(["-c", &line]).output().unwrap();
    let alive = bystander.try_wait().unwrap().is_none();
    if alive {
        bystander.kill().unwrap();
        bystander.wait().unwrap();
    }
    let number = String::from_utf8_lossy(&output.stdout).lines().next().unwrap_or_default().to_owned();
    let folder = parent.join(format!("belljar-{number}"));
    if folder.exists() {
        assert!(soon(|| fs::remove_dir(&folder).is_ok()));
    }
    assert!(alive, "the bystander was killed");
}

#[test]
fn a_place_below_var_tmp_is_where_it_was_and_nothing_of_it_in_tmp() {
    for who in everyone() {
        let other = Place::new(who);
        // Its like in the host's /tmp is where a link on the way would lead.
        let name = other.path.file_name().unwrap().to_str().unwrap();
        let place = Place { path: Path::new("/var/tmp").join(name), who };
        fs::create_dir(&place.path).unwrap();
        place.give(&place.path);
        place.put("seen", "here", 0o644);
        let script = "cat seen && touch written /var/tmp/private";
        let output = place.belljar(&["-q", "--write", "."], &["/bin/sh", "-c", script]).output().unwrap();
        assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(0), b"here".as_slice()), "{output:?}");
        assert!(place.path.join("written").exists());
        assert!(!Path::new("/tmp").join(name).exists(), "made in the host's /tmp");
        assert!(!Path::new("/var/tmp/private").exists(), "/var/tmp is the host's");
    }
}

#[test]
fn few_open_files_are_enough_to_start_with() {
    for who in everyone() {
        let place = Place::new(who);
        let names: Vec<String> = (0..100).map(|number| number.to_string()).collect();
        let mut flags = vec!["-q"];
        for name in &names {
            place.put(name, "", 0o644);
            flags.extend(["--read", name]);
        }
        for limit in ["20", "60", "100"] {
            flags.extend(["--files", limit]);
            // Which numbers are free depends on who else was quicker.
            for _ in 0..10 {
                let output = place.belljar(&flags, &["/bin/true"]).output().unwrap();
                assert_eq!(output.status.code(), Some(0), "{limit} as {who:?}: {output:?}");
            }
            flags.truncate(flags.len() - 2);
        }
    }
}

#[test]
fn a_step_that_fails_is_named() {
    for who in everyone() {
        let place = Place::new(who);
        for _ in 0..10 {
            let output = place.belljar(&["-q", "--disk", "4096"], &["/bin/true"]).output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(125));
            assert!(said.contains("the step `file") && said.contains("No space left"), "as {who:?}: {said}");
        }
    }
}

// ---- what the tests use

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn skip_unless_root() -> bool {
    if !is_root() {
        println!("skipped: needs root");
    }
    !is_root()
}

/// As whom to try: both if we can be both.
fn everyone() -> Vec<Who> {
    if is_root() { vec![Who::Root, Who::Ordinary] } else { vec![Who::Root] }
}

/// A folder of its own for each test, removed afterwards; what runs in it runs as `who`.
struct Place {
    path: PathBuf,
    who: Who,
}

impl Place {
    fn new(who: Who) -> Place {
        let mut random = [0u8; 8];
        rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty()).unwrap();
        let base = if is_root() { PathBuf::from("/srv/belljar-limits") } else { std::env::temp_dir() };
        let place = Place { path: base.join(format!("{:016x}", u64::from_ne_bytes(random))), who };
        fs::create_dir_all(&place.path).unwrap();
        fs::set_permissions(&base, fs::Permissions::from_mode(0o755))
            .or_else(|error| if is_root() { Err(error) } else { Ok(()) })
            .unwrap();
        place.give(&place.path);
        fs::create_dir(place.state()).unwrap();
        place.give(&place.state());
        place
    }

    /// Beside what the sandbox works on: those that are killed leave a layer in it, on purpose.
    fn state(&self) -> PathBuf {
        self.path.with_extension("state")
    }

    fn give(&self, path: &Path) {
        if is_root() {
            let id = self.who.user_id();
            chown(path, Some(id), Some(id)).unwrap();
        }
    }

    fn put(&self, name: &str, contents: &str, mode: u32) {
        let path = self.path.join(name);
        fs::write(&path, contents).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        self.give(&path);
    }

    fn folder(&self, name: &str) {
        fs::create_dir(self.path.join(name)).unwrap();
        self.give(&self.path.join(name));
    }

    fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.path).env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin").stdin(Stdio::null());
        if is_root() && self.who == Who::Ordinary {
            let id = self.who.user_id();
            command.uid(id).gid(id).env("HOME", format!("/home/{TEST_USER}")).env("USER", TEST_USER);
        } else {
            command.env("HOME", "/root").env("USER", "root");
        }
        command.env("XDG_STATE_HOME", self.state());
        command
    }

    fn belljar(&self, flags: &[&str], words: &[&str]) -> Command {
        let mut command = self.command(belljar());
        command.arg("run").args(flags).arg("--").args(words);
        command
    }

    fn run(&self, flags: &[&str], words: &[&str]) -> (ExitStatus, Value) {
        let file = self.path.join("result.json");
        let flags = [&["-q", "--result-file", file.to_str().unwrap()], flags].concat();
        let output = self.belljar(&flags, words).output().unwrap();
        (output.status, read_result(&file))
    }

    /// Starts a shell command and returns when it has said `ready`.
    fn ready(&self, flags: &[&str], command: &str) -> Child {
        let flags = [&["-q"], flags].concat();
        let mut child = self
            .belljar(&flags, &["/bin/sh", "-c", command])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut word = [0u8; 6];
        child.stdout.as_mut().unwrap().read_exact(&mut word).unwrap();
        assert_eq!(&word, b"ready\n");
        child
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        for path in [self.path.clone(), self.state()] {
            if let Err(error) = fs::remove_dir_all(&path) {
                eprintln!("left behind: {}: {error}", path.display());
            }
        }
    }
}

fn read_result(file: &Path) -> Value {
    let text = fs::read_to_string(file).unwrap();
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error} in {text:?}"))
}

fn noise(size: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    std::iter::repeat_with(next).take(size).collect()
}

fn kill(pid: u32, signal: i32) {
    // SAFETY: takes integers; the number is of a child that has not been waited for.
    assert_eq!(unsafe { libc::kill(pid as i32, signal) }, 0);
}

fn ends_within(child: &mut Child, time: Duration) -> Option<ExitStatus> {
    let deadline = Instant::now() + time;
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return Some(status);
        }
        if Instant::now() > deadline {
            if time > Duration::from_secs(1) {
                child.kill().unwrap();
                child.wait().unwrap();
            }
            return None;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn ended(child: &mut Child) -> ExitStatus {
    ends_within(child, PATIENCE).expect("it does not end")
}

fn soon(mut is_so: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + Duration::from_secs(3);
    while !is_so() {
        if Instant::now() > deadline {
            return false;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    true
}

/// A process that can't be mistaken for a later one of the same number.
#[derive(Clone, Copy, Debug)]
struct Process {
    pid: u32,
    since: u64,
}

impl Process {
    fn of(pid: u32) -> Option<Process> {
        stat(pid).and_then(|fields| Some(Process { pid, since: fields.get(19)?.parse().ok()? }))
    }

    fn lives(&self) -> bool {
        Process::of(self.pid).is_some_and(|now| now.since == self.since) && state(self.pid) != Some('Z')
    }

    fn name(&self) -> String {
        fs::read_to_string(format!("/proc/{}/comm", self.pid)).unwrap_or_default().trim().to_owned()
    }
}

/// What follows the name in /proc/PID/stat: state, parent, ...
fn stat(pid: u32) -> Option<Vec<String>> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    Some(text.rsplit_once(')')?.1.split_ascii_whitespace().map(str::to_owned).collect())
}

fn state(pid: u32) -> Option<char> {
    stat(pid)?.first()?.chars().next()
}

/// All processes below one, itself not among them.
fn below(ancestor: u32) -> Vec<Process> {
    let numbers: Vec<u32> =
        fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    let parents: Vec<(u32, u32)> =
        numbers.iter().filter_map(|pid| Some((*pid, stat(*pid)?.get(1)?.parse().ok()?))).collect();
    let mut found = vec![ancestor];
    let mut at = 0;
    while at < found.len() {
        found
            .extend(parents.iter().filter(|(_, parent)| *parent == found[at]).map(|(pid, _)| *pid).collect::<Vec<_>>());
        at += 1;
    }
    found.into_iter().skip(1).filter_map(Process::of).collect()
}

/// The terminal of a person: we type and read at one end, belljar is started at the other.
struct Outer {
    ours: OwnedFd,
    theirs: OwnedFd,
    seen: String,
}

impl Outer {
    fn open() -> Outer {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&ours).unwrap();
        unlockpt(&ours).unwrap();
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let theirs = ioctl_tiocgptpeer(&ours, flags).unwrap();
        tcsetwinsize(&ours, Winsize { ws_row: 33, ws_col: 101, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
        Outer { ours, theirs, seen: String::new() }
    }

    fn spawn(&self, mut command: Command) -> Child {
        let end = || Stdio::from(self.theirs.try_clone().unwrap());
        command.stdin(end()).stdout(end()).stderr(end());
        // SAFETY: two system calls, nothing of the parent's memory.
        unsafe {
            command.pre_exec(|| {
                if libc::setsid() < 0 || libc::ioctl(0, libc::TIOCSCTTY, 0) < 0 {
                    return Err(std::io::Error::last_os_error());
                }
                Ok(())
            });
        }
        command.spawn().unwrap()
    }

    fn types(&self, keys: &[u8]) {
        rustix::io::write(&self.ours, keys).unwrap();
    }

    /// Reads until `words` have been seen.
    fn until(&mut self, words: &str) {
        let deadline = Instant::now() + PATIENCE;
        while !self.seen.contains(words) {
            let mut ready = libc::pollfd { fd: self.ours.as_fd().as_raw_fd(), events: libc::POLLIN, revents: 0 };
            // SAFETY: one record, which outlives the call.
            if unsafe { libc::poll(&mut ready, 1, 100) } > 0 {
                let mut buffer = [0u8; 4096];
                let read = rustix::io::read(&self.ours, &mut buffer).unwrap();
                self.seen += &String::from_utf8_lossy(&buffer[..read]);
            }
            assert!(Instant::now() < deadline, "`{words}` does not come; all there is: {:?}", self.seen);
        }
    }
}
