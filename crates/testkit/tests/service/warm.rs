//! Runs that find a sandbox standing: the same as without, only sooner.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};

use belljar_testkit::Who;
use belljar_testkit::twice::Check;
use serde_json::{Value, json};

use crate::desk::Desk;
use crate::server::{Server, below, until};
use crate::{holds, told};

pub const ALL: &[(&str, Check)] = &[
    ("what_runs_where_something_stood_ready_is_told_from_nothing_else", the_same),
    ("who_finds_nothing_ready_gets_the_next_that_is_made", many),
    ("nothing_of_a_run_is_there_for_the_next", apart),
    ("a_copy_shares_no_memory_that_can_be_written_to", own_memory),
    ("what_stands_ready_is_of_no_use_when_the_walls_are_others_by_now", other_walls),
    ("what_a_copy_was_told_to_expect_is_not_what_it_gets", told_anew),
    ("code_that_was_read_ahead_is_judged_like_any_other", read_ahead),
    ("code_is_read_by_the_rules_of_now_not_by_those_of_when_something_was_made_ready", other_rules),
    ("whoever_waits_for_nobody_any_more_is_not_told_to_run_anything", zygotes_end),
    ("a_copy_can_not_change_the_program_that_it_is_a_copy_of", own_program),
    ("what_stands_ready_goes_with_its_server", gone),
];

/// Looks at everything that a program can see of how it was begun.
const LOOKS: &str = r#"
import json, os, resource, signal, sys, time
print(json.dumps({
    "argv": sys.argv, "file": os.path.basename(__file__), "name": __name__, "here": os.path.dirname(__file__) == os.getcwd(),
    "path": sys.path[0] == os.getcwd(), "environment": sorted(k for k in os.environ if k != "PWD"), "user": [os.getuid(), os.geteuid(), os.getgid()],
    "groups": os.getgroups(), "mask": [int(n) for n in signal.pthread_sigmask(signal.SIG_BLOCK, [])], "umask": os.umask(0o22),
    "interrupt": signal.getsignal(signal.SIGINT) is signal.default_int_handler,
    "child": signal.getsignal(signal.SIGCHLD) == signal.SIG_DFL, "terminated": signal.getsignal(signal.SIGTERM) == signal.SIG_DFL,
    "descriptors": sorted(int(n) for n in os.listdir("/proc/self/fd"))[:3], "more": len(os.listdir("/proc/self/fd")),
    "limits": [resource.getrlimit(n) for n in range(16)], "session": os.getsid(0) == os.getpid(), "group": os.getpgrp() == os.getpid(),
    "processes": len([n for n in os.listdir("/proc") if n.isdigit()]), "name of host": os.uname().nodename,
    "status": [line.split() for line in open("/proc/self/status") if line.startswith(("NoNewPrivs", "Seccomp:", "Cap"))],
    "executable": os.path.realpath(sys.executable), "input": sys.stdin.read(), "encoding": [sys.stdout.encoding, sys.getfilesystemencoding()],
}, sort_keys=True))
open("kept.txt", "w").write("written at the end")
print("to error", file=sys.stderr)
def inner():
    raise ValueError("on purpose")
inner()
"#;

fn ask(server: &Server, code: &str, more: &Value) -> Result<Value, String> {
    let mut body = json!({"language": "python", "code": code});
    if let (Some(body), Some(more)) = (body.as_object_mut(), more.as_object()) {
        body.extend(more.clone());
    }
    Ok(server.post("/v1/run", &body)?.expect(200)?.json()?["result"].clone())
}

fn stands_ready(server: &Server) -> Result<(), String> {
    until("something stands ready", || {
        let metrics = server.get("/v1/metrics")?.expect(200)?.text();
        Ok(!metrics.contains("belljar_service_warm_ready 0\n"))
    })
}

/// The same until something stood ready for it: what is ready may be for another kind of run.
fn ask_ready(server: &Server, code: &str, more: &Value) -> Result<Value, String> {
    let mut result = Value::Null;
    until("something stood ready", || {
        result = ask(server, code, more)?;
        Ok(was_ready(&result))
    })?;
    Ok(result)
}

fn was_ready(result: &Value) -> bool {
    result["backend_because"] == "it stood ready"
}

/// Without what is new with each: the folder's name.
fn without_folder(result: &Value, stream: &str) -> String {
    let text = result[stream]["text"].as_str().unwrap_or_default();
    // Spelled without digits.
    let name = |word: &str| word.len() == 32 && word.bytes().all(|byte| (b'a'..=b'p').contains(&byte));
    text.split('/').map(|part| if name(part) { "FOLDER" } else { part }).collect::<Vec<_>>().join("/")
}

fn the_same(who: Who) -> Result<(), String> {
    let server = Server::start(who)?;
    let more =
        json!({"stdin": "asked", "options": {"environment": {"GREETING": "hello"}, "limits": {"processes": 50}}});
    let cold = ask(&server, LOOKS, &more)?;
    holds(!was_ready(&cold), "nothing stood ready for the first")?;
    stands_ready(&server)?;
    let warm = ask(&server, LOOKS, &more)?;
    holds(was_ready(&warm), &warm)?;
    holds(warm["exit"] == 1 && cold["exit"] == 1, &warm)?;
    let (cold_said, warm_said) = (without_folder(&cold, "stdout"), without_folder(&warm, "stdout"));
    let (cold_said, warm_said): (Value, Value) =
        (told(serde_json::from_str(&cold_said))?, told(serde_json::from_str(&warm_said))?);
    for (name, value) in cold_said.as_object().into_iter().flatten() {
        holds(warm_said[name] == *value, format!("{name}: {value} and {}", warm_said[name]))?;
    }
    let (cold_said, warm_said) = (without_folder(&cold, "stderr"), without_folder(&warm, "stderr"));
    holds(cold_said == warm_said && warm_said.contains("on purpose"), format!("{cold_said}\nand\n{warm_said}"))?;
    for result in [&cold, &warm] {
        let id = result["changes"]["sandbox"].as_str().ok_or(format!("its change is kept: {result}"))?;
        let patch = server.get(&format!("/v1/sandboxes/{id}/patch"))?.expect(200)?.text();
        holds(patch.contains("+written at the end"), patch)?;
    }
    let run = warm["run"].as_str().ok_or("it has a number")?;
    let log = server.desk.say(&["log", "--run", run, "--json"])?;
    let log = String::from_utf8_lossy(&log.out).into_owned();
    holds(log.contains("run.ended") && log.contains("main.py"), log)?;
    // Codes, signals and time, as ever.
    for (code, exit, signal) in [
        ("raise SystemExit(7)", json!(7), Value::Null),
        ("import os; os.kill(os.getpid(), 9)", Value::Null, json!(9)),
        ("import sys; sys.exit('said')", json!(1), Value::Null),
    ] {
        let result = ask_ready(&server, code, &json!({}))?;
        holds(result["exit"] == exit && result["signal"] == signal, &result)?;
    }
    let more = json!({"timeout": 1.0});
    ask_ready(&server, "pass", &more)?;
    let late = ask_ready(&server, "while True: pass", &more)?;
    holds(late["overrun"] == "wall-time", &late)
}

/// More at once than stand ready, of a kind that something could be made ready for before.
fn many(who: Who) -> Result<(), String> {
    let server = Server::with(Desk::of(who)?, &["--warm", "1"])?;
    ask(&server, "print(1)", &json!({}))?;
    stands_ready(&server)?;
    let answers: Vec<Result<Value, String>> = std::thread::scope(|scope| {
        let all: Vec<_> = (0..6).map(|_| scope.spawn(|| ask(&server, "print(1)", &json!({})))).collect();
        all.into_iter().map(|one| one.join().unwrap_or_else(|_| Err("it gave up".to_owned()))).collect()
    });
    for answer in answers {
        let result = answer?;
        holds(was_ready(&result) && result["stdout"]["text"] == "1\n", &result)?;
    }
    let metrics = server.get("/v1/metrics")?.expect(200)?.text();
    // The first of all is the only one for which nobody could know.
    holds(metrics.contains("warm_total{ready=\"no\"} 1\n"), &metrics)?;
    holds(!metrics.contains("warm_total{ready=\"soon\"} 0\n"), &metrics)
}

/// What is mapped so that others see what is written to it: the interpreter that it is a copy of, and all other copies.
fn own_memory(who: Who) -> Result<(), String> {
    let server = Server::start(who)?;
    let looks = "print([line for line in open('/proc/self/maps') if line.split()[1][1::2] == 'ws'])";
    // That this shows it where there is some.
    let shares = "import mmap\nshared = mmap.mmap(-1, 8)\n";
    let result = ask_ready(&server, &format!("{shares}{looks}"), &json!({}))?;
    holds(result["stdout"]["text"].as_str().is_some_and(|text| text.contains("rw-s")), &result)?;
    let result = ask_ready(&server, looks, &json!({}))?;
    holds(result["stdout"]["text"] == "[]\n", &result)
}

fn apart(who: Who) -> Result<(), String> {
    let server = Server::start(who)?;
    let leaves = "import builtins, os, sys, random\nbuiltins.left = 1\nsys.modules['left'] = os\nos.environ['LEFT'] = '1'\nopen('/tmp/left', 'w').write('x')\nprint(random.random(), os.urandom(4).hex())";
    let looks = "import builtins, os, sys, random\nprint(hasattr(builtins, 'left'), 'left' in sys.modules, 'LEFT' in os.environ, os.path.exists('/tmp/left'), os.listdir('.'))\nprint(random.random())";
    let mut numbers = Vec::new();
    for _ in 0..3 {
        ask(&server, leaves, &json!({}))?;
        stands_ready(&server)?;
        let looked = ask(&server, looks, &json!({}))?;
        holds(was_ready(&looked), &looked)?;
        let text = looked["stdout"]["text"].as_str().unwrap_or_default().to_owned();
        let (seen, number) = text.split_once('\n').ok_or("it says two lines")?;
        holds(seen == "False False False False ['main.py']", seen)?;
        numbers.push(number.to_owned());
        stands_ready(&server)?;
    }
    numbers.sort();
    numbers.dedup();
    holds(numbers.len() == 3, "no two have the same numbers ahead")
}

fn other_walls(who: Who) -> Result<(), String> {
    let server = Server::start(who)?;
    let code = "print(open('/etc/services').read(3))";
    ask(&server, code, &json!({}))?;
    stands_ready(&server)?;
    let readable = ask(&server, code, &json!({}))?;
    let seen = |result: &Value| result["stdout"]["text"].as_str().map(str::len);
    holds(was_ready(&readable) && seen(&readable) == Some(4), &readable)?;
    stands_ready(&server)?;
    // From now on nobody sees it: what stands is as it was before.
    server.desk.policy("[files]\nhide = [\"/etc/services\"]\n")?;
    let hidden = ask(&server, code, &json!({}))?;
    holds(!was_ready(&hidden) && seen(&hidden) == Some(1), &hidden)
}

/// Variables and the zone of time are set before there is a run, as they were foreseen.
fn told_anew(who: Who) -> Result<(), String> {
    let server = Server::start(who)?;
    let code = "import os, time\nprint(os.environ.get('OLD'), os.environ.get('NEW'), os.environ.get('TZ'), time.strftime('%H', time.localtime(0)))";
    server.desk.policy("[environment]\nset = { OLD = \"a\", TZ = \"UTC-3\" }\n")?;
    let result = ask_ready(&server, code, &json!({}))?;
    holds(result["stdout"]["text"] == "a None UTC-3 03\n", &result)?;
    stands_ready(&server)?;
    // The walls are the same, so whoever waits may be had; what it expects is what the policy said before.
    server.desk.policy("[environment]\nset = { OLD = \"a\", NEW = \"b\", TZ = \"UTC-3\" }\n")?;
    let result = ask(&server, code, &json!({}))?;
    holds(was_ready(&result) && result["stdout"]["text"] == "a b UTC-3 03\n", &result)?;
    stands_ready(&server)?;
    // Nobody who may remember what nobody is to have any more.
    server.desk.policy("[environment]\nset = { NEW = \"b\" }\n")?;
    let result = ask(&server, code, &json!({}))?;
    holds(!was_ready(&result) && result["stdout"]["text"] == "None b None 00\n", &result)
}

fn read_ahead(who: Who) -> Result<(), String> {
    let server = Server::start(who)?;
    ask_ready(&server, "print(1)", &json!({}))?;
    // Only where somebody stands ready is it read before it is judged.
    let code = "import os\nos.system('rm -rf /')";
    let found = ask_ready(&server, code, &json!({}))?;
    holds(found["findings"].as_array().is_some_and(|found| !found.is_empty()), &found)?;
    server.desk.policy("[findings]\ncritical = \"deny\"\nhigh = \"deny\"\n")?;
    stands_ready(&server)?;
    let refused = server.post("/v1/run", &json!({"language": "python", "code": code}))?.expect(403)?.json()?;
    holds(refused.to_string().contains("findings."), &refused)?;
    stands_ready(&server)?;
    let harmless = ask(&server, "print(2)", &json!({}))?;
    holds(harmless["stdout"]["text"] == "2\n", &harmless)
}

/// What scanners look for is in files that may change while something stands ready.
fn other_rules(who: Who) -> Result<(), String> {
    let server = Server::start(who)?;
    server.desk.policy("[findings]\ncritical = \"deny\"\n")?;
    let code = "import oldclient as c\nc.connect(input)";
    let ran = ask_ready(&server, code, &json!({}))?;
    holds(ran["findings"].as_array().is_none_or(Vec::is_empty), &ran)?;
    stands_ready(&server)?;
    let folder = server.desk.home.join(".config/belljar/scan");
    told(fs::create_dir_all(&folder))?;
    let rule = |call: &str| {
        format!(
            "class = \"ours\"\n[[rule]]\nid = \"no-old-client\"\nseverity = \"critical\"\ncwe = 477\nlanguages = [\"python\"]\n\
             message = \"the old client is used\"\nfix = \"use client2\"\nwhen = {{ call = [\"{call}.*\"], argument = 0, constant = false }}\n\
             matches = [\"import {call} as c\\nc.connect(x)\"]\npasses = [\"import client2\\nclient2.connect(x)\"]\n"
        )
    };
    let put = |text: String| -> Result<(), String> {
        told(fs::write(folder.join("ours.toml"), text))?;
        [folder.clone(), folder.join("ours.toml")].iter().try_for_each(|path| told(server.desk.project.give(path)))
    };
    put(rule("oldclient"))?;
    let refused = server.post("/v1/run", &json!({"language": "python", "code": code}))?.expect(403)?.json()?;
    holds(refused.to_string().contains("ours.no-old-client"), &refused)?;
    // The same of those that are somebody's own already.
    stands_ready(&server)?;
    put(rule("otherclient"))?;
    let other = code.replace("oldclient", "otherclient");
    let refused = server.post("/v1/run", &json!({"language": "python", "code": other}))?.expect(403)?.json()?;
    holds(refused.to_string().contains("ours.no-old-client"), &refused)
}

/// A copy lives on when the interpreter that it is a copy of ends; but nobody would tell of its end.
fn zygotes_end(who: Who) -> Result<(), String> {
    let server = Server::start(who)?;
    ask_ready(&server, "print(1)", &json!({}))?;
    stands_ready(&server)?;
    let warm = |number: &i32| {
        let words = fs::read(format!("/proc/{number}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&words).contains("A warm interpreter")
    };
    let in_the_hosts = |number: &i32| {
        let namespace = |of: &str| fs::read_link(format!("/proc/{of}/ns/pid")).ok();
        namespace(&number.to_string()) == namespace("self")
    };
    let zygotes: Vec<i32> = below(server.pid()).into_iter().filter(|one| warm(one) && in_the_hosts(one)).collect();
    holds(!zygotes.is_empty(), "there are warm interpreters")?;
    for zygote in zygotes {
        holds(
            told(std::process::Command::new("kill").args(["-9", &zygote.to_string()]).status())?.success(),
            "killed",
        )?;
    }
    for _ in 0..4 {
        let result = ask(&server, "print(2)", &json!({}))?;
        holds(result["exit"] == 0 && result["stdout"]["text"] == "2\n", &result)?;
    }
    // And others come in their place.
    ask_ready(&server, "print(3)", &json!({})).map(drop)
}

/// Whoever comes from outside has a name for a file of the host: the program that it is a copy of.
fn own_program(who: Who) -> Result<(), String> {
    const CHANGES: &str = "import os\nfor change in (lambda p: os.chmod(p, 0o711), lambda p: os.utime(p, (1, 1)), lambda p: os.setxattr(p, 'user.left', b'1')):\n    try:\n        change('/proc/self/exe')\n    except OSError:\n        pass\n";
    let desk = Desk::of(who)?;
    let programs = desk.home.join("programs");
    told(fs::create_dir(&programs))?;
    told(desk.project.give(&programs))?;
    let seen =
        |path: &Path| fs::metadata(path).map(|stat| (stat.mode(), stat.mtime())).map_err(|error| error.to_string());
    let put = |name: &str| -> Result<PathBuf, String> {
        let path = programs.join(name);
        // By a program of its own: what is open for writing here is also open in whatever other tests begin meanwhile.
        let copied = told(std::process::Command::new("cp").arg("-L").arg("/usr/bin/python3").arg(&path).status())?;
        holds(copied.success(), "it can be copied")?;
        told(desk.project.give(&path))?;
        Ok(path)
    };
    let (own, control) = (put("python3")?, put("control")?);
    let (before, control_before) = (seen(&own)?, seen(&control)?);
    // Without walls, all of that can be done.
    let mut bare = std::process::Command::new(&control);
    bare.args(["-I", "-c", CHANGES]).current_dir("/").uid(who.user_id()).gid(who.user_id());
    holds(told(bare.status())?.success() && seen(&control)? != control_before, "the control failed")?;
    let server = Server::on(desk, &[], Some(&programs))?;
    let mut warm = 0;
    for _ in 0..20 {
        warm += u32::from(was_ready(&ask(&server, CHANGES, &json!({}))?));
        holds(seen(&own)? == before, "it was changed")?;
        // Of root's, copies are somebody else, and something stands ready; of a user's own, nothing ever does.
        if who == Who::Root {
            stands_ready(&server)?;
        }
    }
    holds((warm > 0) == (who == Who::Root), format!("{warm} of 20 stood ready"))
}

fn gone(who: Who) -> Result<(), String> {
    let mut server = Server::start(who)?;
    ask(&server, "pass", &json!({}))?;
    stands_ready(&server)?;
    let all = below(server.pid());
    let warm = |number: &&i32| {
        let words = fs::read(format!("/proc/{number}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&words).contains("A warm interpreter")
    };
    holds(all.iter().filter(warm).count() > 2, "interpreters and copies of them")?;
    server.signal(9)?;
    server.wait()?;
    let lives = |number: &i32| {
        let state = fs::read_to_string(format!("/proc/{number}/stat")).unwrap_or_default();
        state.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
    };
    until("all of them are gone", || Ok(!all.iter().any(lives)))
}
