//! Downloads that are kept: fetched once for all sandboxes of a user, judged each time, and on the record.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use belljar_testkit::Who;
use belljar_testkit::twice::{self, Check};
use libtest_mimic::Trial;

use crate::attacks::{paths, same};
use crate::clients_packages::{WHEEL, run};
use crate::namespace;
use crate::needing::{Needing, PYTHON, python};
use crate::told;
use crate::world::{NAME, OTHER, World};

pub const ALL: &[(&str, Check)] = &[
    ("a_download_is_fetched_once_for_all_sandboxes_and_said_to_be_kept", once),
    ("a_request_that_is_denied_is_denied_though_its_file_is_kept", denied),
    ("a_policy_that_keeps_nothing_gives_nothing_that_was_kept", off),
    ("somebody_who_is_offline_still_has_what_is_kept", offline),
    ("several_sandboxes_at_once_get_the_same_file", at_once),
    ("what_is_kept_goes_with_the_garbage", garbage),
    ("a_killed_gate_leaves_nothing_that_is_given_or_stays", killed),
];

pub fn full_disk_trials() -> Vec<Trial> {
    let trial = |who| {
        let why = namespace::why_not().or(twice::why_not(who));
        twice::trial("a_disk_that_is_full_keeps_nothing_and_downloads_go_on", who, why, move || full(who))
    };
    [Who::Root, Who::Ordinary].map(trial).into()
}

pub const NEEDING: &[Needing] = &[("pip_installs_a_second_time_without_the_servers_file", &[PYTHON], pip)];

/// By which both names are read, and some of their files never change.
pub fn keeps(world: &World, more: &str) -> Result<(), String> {
    let port = world.https;
    let both = |after: &str| format!("\"{NAME}:{port}{after}\", \"{OTHER}:{port}{after}\"");
    let immutable: Vec<String> =
        ["/files/packages/**", "/host/*.whl", "/twisted/*/*.whl", "/zeros/*"].iter().map(|path| both(path)).collect();
    world.desk.policy(&format!(
        "[network]\ndownload = [{}]\nallow = [\"127.0.0.1:{port}\"]\nimmutable = [{}]\n{more}\n\
         [approvals]\ntimeout = \"1ms\"\n",
        both(""),
        immutable.join(", "),
    ))
}

/// A file of so many bytes, none like the others.
pub fn package(world: &World, name: &str, bytes: u32) -> Result<Vec<u8>, String> {
    let folder = world.folder.join("files/packages");
    told(fs::create_dir_all(&folder))?;
    let mut state = 1_u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    let content: Vec<u8> = (0..bytes).map(|_| next()).collect();
    told(fs::write(folder.join(name), &content))?;
    Ok(content)
}

/// Where what is kept lies.
pub fn downloads(world: &World) -> PathBuf {
    world.desk.project.state.join("belljar/downloads")
}

pub fn contents(world: &World) -> Result<Vec<PathBuf>, String> {
    let Ok(entries) = fs::read_dir(downloads(world).join("contents")) else { return Ok(Vec::new()) };
    entries.map(|entry| told(entry).map(|entry| entry.path())).collect()
}

/// As a program inside gets it.
pub fn fetched(world: &World, url: &str) -> Result<Vec<u8>, String> {
    let said = world.run(&[], &["curl", "-sS", "-f", "-m", "60", url])?;
    if said.code == Some(0) { Ok(said.out) } else { Err(format!("{url}: {said:?}")) }
}

fn net(world: &World) -> Result<String, String> {
    Ok(String::from_utf8_lossy(&world.desk.expect(&["net"], 0, "")?.out).into_owned())
}

fn once(who: Who) -> Result<(), String> {
    let world = World::of(who)?;
    keeps(&world, "")?;
    let content = package(&world, "big-1.0.whl", 3 << 20)?;
    package(&world, "../index.html", 100)?;
    let digest = blake3::hash(&content).to_hex().to_string();
    let (file, index) = (world.url("/files/packages/big-1.0.whl"), world.url("/files/index.html"));
    for word in ["now kept", "from kept downloads", "from kept downloads"] {
        same(fetched(&world, &file)? == content, true, "the file as it is")?;
        let told = net(&world)?;
        same(told.contains(&format!("{word} ({})", &digest[..16])), true, &told)?;
        fetched(&world, &index)?;
    }
    let asked = paths(&world)?;
    let count = |end: &str| asked.iter().filter(|path| path.ends_with(end)).count();
    same((count("big-1.0.whl"), count("index.html")), (1, 3), &asked)?;
    let kept = contents(&world)?;
    same(kept.len(), 1, &kept)?;
    same(kept[0].file_name().is_some_and(|name| *name == *digest), true, &kept)?;
    let said = world.run(&["--json"], &["curl", "-sS", "-m", "60", "-o", "/dev/null", &file])?;
    let result: serde_json::Value = told(serde_json::from_str(said.error.trim().lines().last().unwrap_or_default()))?;
    let traffic = &result["network"];
    same((traffic["cached"].as_u64(), traffic["received"].as_u64()), (Some(3 << 20), Some(0)), &result)?;
    let log = world.desk.say(&["log", "--json"]).map(|log| String::from_utf8_lossy(&log.out).into_owned())?;
    same(log.contains(&format!("{{\"served\":\"{digest}\"}}")), true, &log)
}

fn denied(who: Who) -> Result<(), String> {
    let world = World::of(who)?;
    keeps(&world, "")?;
    package(&world, "a-1.0.whl", 5000)?;
    let url = world.url("/files/packages/a-1.0.whl");
    fetched(&world, &url)?;
    same(contents(&world)?.len(), 1, "it is kept")?;
    let no = format!("deny = [\"{NAME}\"]");
    keeps(&world, &no)?;
    same(fetched(&world, &url).is_err(), true, "the host is denied")?;
    // And by a rule about the very file, with the host still open.
    keeps(&world, "")?;
    let policy = world.desk.home.join(".config/belljar/policy.toml");
    let rule = "\n[[rule]]\nwhen = { host = \"HOST\", path = \"/files/packages/a-1.0.whl\" }\nthen = \"deny\"\nwhy = \"not this one\"\n";
    let rule = rule.replace("HOST", NAME).replace("path =", "url =");
    let text = told(fs::read_to_string(&policy))?;
    told(fs::write(&policy, text.clone() + &rule))?;
    let said = world.run(&[], &["curl", "-sS", "-m", "60", &url])?;
    let out = String::from_utf8_lossy(&said.out).into_owned();
    same((out.contains("refused by belljar"), out.contains("not this one")), (true, true), &said)?;
    told(fs::write(&policy, text))?;
    fetched(&world, &url)?;
    same(paths(&world)?.len(), 1, "all of that without the server")
}

fn off(who: Who) -> Result<(), String> {
    let world = World::of(who)?;
    package(&world, "a-1.0.whl", 5000)?;
    let url = world.url("/files/packages/a-1.0.whl");
    for (more, asked) in [("cache = \"none\"", 1), ("", 2), ("", 2), ("cache = \"none\"", 3), ("cache = \"1M\"", 3)] {
        keeps(&world, more)?;
        fetched(&world, &url)?;
        same(paths(&world)?.len(), asked, more)?;
    }
    // What a project says of itself changes nothing while nobody trusts it, except that it may do without.
    world.desk.put("belljar.toml", "version = 1\n[network]\ncache = \"none\"\n")?;
    keeps(&world, "")?;
    fetched(&world, &url)?;
    same(paths(&world)?.len(), 4, "asked again")?;
    let own = format!("version = 1\n[network]\nimmutable = [\"{NAME}:{}/files/**\"]\n", world.https);
    world.desk.put("belljar.toml", &own)?;
    package(&world, "../other.whl", 100)?;
    for _ in 0..2 {
        fetched(&world, &world.url("/files/other.whl"))?;
    }
    same(paths(&world)?.len(), 6, "a project keeps nothing for others")
}

fn offline(who: Who) -> Result<(), String> {
    let mut world = World::of(who)?;
    keeps(&world, "")?;
    let content = package(&world, "a-1.0.whl", 300_000)?;
    package(&world, "b-1.0.whl", 5000)?;
    let (kept, other) = (world.url("/files/packages/a-1.0.whl"), world.url("/files/packages/b-1.0.whl"));
    fetched(&world, &kept)?;
    world.ends()?;
    same(fetched(&world, &kept)? == content, true, "it is kept")?;
    let told = net(&world)?;
    same((told.contains("from kept downloads"), told.contains("cannot connect")), (true, true), &told)?;
    let said = world.run(&[], &["curl", "-sS", "-m", "60", &other])?;
    same(String::from_utf8_lossy(&said.out).contains("can't be reached"), true, &said)?;
    // Whom the policy does not let is not asked for what is kept.
    keeps(&world, &format!("deny = [\"{NAME}\"]"))?;
    same(fetched(&world, &kept).is_err(), true, "denied")
}

fn at_once(who: Who) -> Result<(), String> {
    let world = World::of(who)?;
    keeps(&world, "")?;
    let content = package(&world, "big-1.0.whl", 2 << 20)?;
    let url = world.url("/files/packages/big-1.0.whl");
    let all: Vec<_> = (0..4)
        .map(|_| {
            let mut command = world.command(&[], &["curl", "-sS", "-f", "-m", "60", &url]);
            told(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn())
        })
        .collect::<Result<_, _>>()?;
    for one in all {
        let done = told(one.wait_with_output())?;
        same(done.stdout == content, true, String::from_utf8_lossy(&done.stderr))?;
    }
    let asked = paths(&world)?.len();
    same((1..=4).contains(&asked), true, asked)?;
    same(contents(&world)?.len(), 1, "one file")?;
    fetched(&world, &url)?;
    same(paths(&world)?.len(), asked, "and it is whole")
}

fn garbage(who: Who) -> Result<(), String> {
    let world = World::of(who)?;
    keeps(&world, "")?;
    package(&world, "a-1.0.whl", 5000)?;
    fetched(&world, &world.url("/files/packages/a-1.0.whl"))?;
    let gc = |words: &[&str]| world.desk.say(words).map(|said| String::from_utf8_lossy(&said.out).into_owned());
    let said = gc(&["gc"])?;
    same((contents(&world)?.len(), said.contains("download")), (1, false), &said)?;
    let said = gc(&["gc", "--older-than", "1ms", "--dry-run"])?;
    same((contents(&world)?.len(), said.contains("1 kept download")), (1, true), &said)?;
    let said = gc(&["gc", "--older-than", "1ms"])?;
    same((contents(&world)?.len(), said.contains("1 kept download")), (0, true), &said)
}

fn killed(who: Who) -> Result<(), String> {
    let world = World::of(who)?;
    keeps(&world, "")?;
    // More than all buffers on its way can hold.
    let script = format!(
        "import sys, urllib.request\nr = urllib.request.urlopen('{}')\nr.read(1)\nprint('begun', flush=True)\nsys.stdin.read()",
        world.url("/zeros/268435456")
    );
    let mut command = world.command(&[], &["/usr/bin/python3", "-c", &script]);
    let mut child = told(command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn())?;
    let mut line = String::new();
    told(BufReader::new(child.stdout.take().ok_or("it has an output")?).read_line(&mut line))?;
    let coming = || told(fs::read_dir(downloads(&world).join("coming"))).map(Iterator::count);
    same((line.as_str(), coming()?), ("begun\n", 1), "it is on its way")?;
    told(child.kill().and_then(|()| child.wait()))?;
    same(contents(&world)?.len(), 0, "nothing that is not whole is there")?;
    let until = Instant::now() + Duration::from_secs(60);
    let mut said = world.desk.expect(&["gc"], 0, "")?;
    // The gate goes with whoever made it, a moment later.
    while coming()? > 0 && Instant::now() < until {
        said = world.desk.expect(&["gc"], 0, "")?;
    }
    same(coming()?, 0, &said)?;
    package(&world, "a-1.0.whl", 5000)?;
    fetched(&world, &world.url("/files/packages/a-1.0.whl"))?;
    same(contents(&world)?.len(), 1, "and it goes on")
}

/// A disk of two megabytes for what is kept.
fn full(who: Who) -> Result<(), String> {
    let world = World::of(who)?;
    keeps(&world, "")?;
    let place = downloads(&world);
    told(fs::create_dir_all(&place))?;
    for folder in [place.parent().unwrap_or(&place), &place] {
        told(world.desk.project.give(folder))?;
    }
    for (name, bytes) in [("small-1.0.whl", 100_000), ("large-1.0.whl", 3 << 20), ("other-1.0.whl", 1 << 20)] {
        package(&world, name, bytes)?;
    }
    let get =
        |name: &str| format!("curl -sS -f -m 60 {} | wc -c", world.url(&format!("/files/packages/{name}-1.0.whl")));
    let (small, large, other) = (get("small"), get("large"), get("other"));
    let script = [&small, &small, &large, &large, &other, &other].map(String::as_str).join("; ");
    let plain = world.command(&[], &["sh", "-c", &script]);
    let mount = "mount -t tmpfs -o size=2m,mode=700,uid=$1 tmpfs \"$2\" && \
                 dd if=/dev/zero of=\"$2/filler\" bs=1M count=1 2>/dev/null && shift 2 && exec \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "sh", "-c", mount, "sh"]);
    command.arg(world.desk.project.who.user_id().to_string()).arg(&place);
    command.arg(plain.get_program()).args(plain.get_args()).env_clear();
    command.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let done = told(command.current_dir(&world.desk.project.work).stdin(Stdio::null()).output())?;
    let out = String::from_utf8_lossy(&done.stdout).into_owned();
    let sizes: Vec<&str> = out.split_whitespace().collect();
    same(sizes, vec!["100000", "100000", "3145728", "3145728", "1048576", "1048576"], &done)?;
    let asked = paths(&world)?;
    let count = |name: &str| asked.iter().filter(|path| path.contains(name)).count();
    same((count("small"), count("large"), count("other")), (1, 2, 2), &asked)
}

fn pip(who: Who) -> Result<(), String> {
    let world = World::of(who)?;
    keeps(&world, "")?;
    let simple = world.folder.join("files/simple/tiny-thing");
    told(fs::create_dir_all(&simple))?;
    told(fs::create_dir_all(world.folder.join("files/packages")))?;
    let wheel = "tiny_thing-1.0-py3-none-any.whl";
    run(Command::new("/usr/bin/python3").args(["-c", WHEEL]).arg(world.folder.join("files/packages").join(wheel)))?;
    let link = format!("<!DOCTYPE html><a href=\"../../packages/{wheel}\">{wheel}</a>\n");
    told(fs::write(simple.join("index.html"), link))?;
    let script = format!(
        "{0} -m pip install -q --disable-pip-version-check --retries 0 --no-cache-dir --target here --index-url {1} \
         tiny-thing && PYTHONPATH=here {0} -c 'import tiny_thing; print(tiny_thing.said())'",
        python(),
        world.url("/files/simple"),
    );
    for _ in 0..2 {
        world.expect(&[], &["sh", "-c", &script], 0, "tiny works")?;
    }
    let asked = paths(&world)?;
    let count = |part: &str| asked.iter().filter(|path| path.contains(part)).count();
    same((count("/packages/"), count("/simple/")), (1, 2), &asked)
}
