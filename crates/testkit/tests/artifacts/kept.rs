//! Artifacts after their run: they outlive its sandbox, are handed out whole or not at all, and go when they are old.

use std::fs;
use std::os::unix::fs::symlink;

use belljar_testkit::Who;
use belljar_testkit::twice::Check;

use crate::bench::{Bench, same, text};

pub const ALL: &[(&str, Check)] = &[
    ("they_outlive_their_sandbox_and_go_when_they_are_removed", outlive),
    ("a_kept_sandbox_hands_over_what_this_run_wrote", again),
    ("where_layers_are_copies_it_is_the_same", copied),
    ("nothing_is_written_through_a_link_or_over_a_file", written),
    ("contents_that_were_tampered_with_are_not_handed_out", tampered),
    ("a_run_that_hands_over_nothing_opens_no_state", nothing),
];

fn outlive(who: Who) -> Result<(), String> {
    let bench = Bench::of(who)?;
    let handed = bench.run(&["--artifact", "out"], "mkdir out && echo fine > out/a && echo fine > out/b")?;
    let (a, b) = (handed.released("out/a")?.to_owned(), handed.released("out/b")?.to_owned());
    let sandbox = handed.one("out/a")?["sandbox"].as_str().ok_or("a sandbox")?.to_owned();
    bench.project.done(["discard"])?;
    if !bench.project.leavings()?.is_empty() {
        return Err("the sandbox is still there".to_owned());
    }
    let list = bench.project.json(["artifacts", "ls", "--json", &sandbox])?;
    if list.as_array().map(Vec::len) != Some(2) {
        return Err(format!("{list:#}"));
    }
    bench.project.done(["artifacts", "rm", &a])?;
    same(bench.get(&b[..10])?, "fine\n")?;
    bench.project.done(["gc", "--older-than", "1h"])?;
    same(bench.get(&b)?, "fine\n")?;
    bench.project.done(["artifacts", "rm", &b])?;
    match bench.blobs()?.as_slice() {
        [] => Ok(()),
        left => Err(format!("{} blobs are left", left.len())),
    }
}

fn again(who: Who) -> Result<(), String> {
    let bench = Bench::of(who)?;
    bench.project.done(["create", "--name", "box", "--artifact", "out"])?;
    let handed = bench.run_as(&["exec", "box"], &[], "mkdir out && echo one > out/a && echo one > out/b")?;
    handed.are(&["out/a", "out/b"])?;
    let handed = bench.run_as(&["exec", "box"], &["--artifact", "more"], "echo two > out/b; echo two > more")?;
    handed.are(&["more", "out/b"])?;
    same(bench.get(handed.released("out/b")?)?, "two\n")?;
    let list = bench.project.json(["artifacts", "ls", "--json", "box"])?;
    match list.as_array().map(Vec::len) {
        Some(4) => Ok(()),
        _ => Err(format!("{list:#}")),
    }
}

fn copied(who: Who) -> Result<(), String> {
    let bench = Bench::of(who)?;
    for name in ["out/old", "out/changed"] {
        bench.project.put(name, "before").map_err(text)?;
    }
    // Files of another group can't be changed in an ordinary user's namespace, so they are copied. For root there is
    // nothing that layers can't be laid over here.
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::lchown(&bench.project.work, None, Some(0)).map_err(text)?;
    }
    bench.project.done(["create", "--name", "box"])?;
    let flags = ["--artifact", "out"];
    let handed = bench.run_as(
        &["exec", "box"],
        &flags,
        "echo one > out/changed; ln -s /etc/passwd out/link; mkfifo out/pipe",
    )?;
    handed.are(&["out/changed", "out/link", "out/pipe"])?;
    handed.withheld("out/link", "artifacts.kind")?;
    handed.withheld("out/pipe", "artifacts.kind")?;
    same(bench.get(handed.released("out/changed")?)?, "one\n")?;
    let handed = bench.run_as(&["exec", "box"], &flags, "echo two > out/new")?;
    handed.are(&["out/new"])?;
    let layers = fs::read_dir(bench.project.state.join("belljar/layers")).map_err(text)?.flatten();
    let is_copy = layers.map(|layer| layer.path().join("0/tree")).any(|tree| tree.exists());
    match is_copy == (who == Who::Ordinary && rustix::process::geteuid().is_root()) {
        true => Ok(()),
        false => Err(format!("the control failed: copied is {is_copy}")),
    }
}

fn written(who: Who) -> Result<(), String> {
    let bench = Bench::of(who)?;
    let handed = bench.run(&["--artifact", "out"], "mkdir out && echo fine > out/a")?;
    let id = handed.released("out/a")?.to_owned();
    let (work, victim) = (&bench.project.work, bench.home.join("victim"));
    fs::write(&victim, "victim").and_then(|()| bench.project.give(&victim)).map_err(text)?;
    bench.project.put("file", "mine").map_err(text)?;
    symlink(&victim, work.join("link")).map_err(text)?;
    symlink(&bench.home, work.join("folder")).map_err(text)?;
    for (name, force) in [("file", false), ("link", false), ("folder/new", false), ("folder/new", true)] {
        let force: &[&str] = if force { &["--force"] } else { &[] };
        let said = bench.say(&[&["artifacts", "get", &id, "-o", name], force].concat())?;
        if said.code != Some(125) {
            return Err(format!("{name}: {said:?}"));
        }
    }
    bench.project.done(["artifacts", "get", &id, "-o", "new"])?;
    bench.project.done(["artifacts", "get", &id, "--force", "-o", "link"])?;
    same(fs::read(work.join("new")).map_err(text)?, "fine\n")?;
    same(fs::read(work.join("link")).map_err(text)?, "fine\n")?;
    same(fs::read(work.join("file")).map_err(text)?, "mine")?;
    same(fs::read(&victim).map_err(text)?, "victim")?;
    match bench.project.tree()?.into_keys().any(|name| name.0.windows(8).any(|part| part == b".belljar")) {
        true => Err("a draft was left".to_owned()),
        false => Ok(()),
    }
}

fn tampered(who: Who) -> Result<(), String> {
    let bench = Bench::of(who)?;
    let handed = bench.run(&["--artifact", "out"], "mkdir out && echo fine > out/a")?;
    let id = handed.released("out/a")?.to_owned();
    same(bench.get(&id)?, "fine\n")?;
    let digest = handed.one("out/a")?["digest"].as_str().ok_or("a digest")?.to_owned();
    let blob = bench.project.state.join("belljar/blobs").join(digest);
    fs::write(&blob, "evil\n").map_err(text)?;
    let said = bench.say(&["artifacts", "get", &id])?;
    match said.code == Some(125) && said.out.is_empty() && said.error.contains("not what they were") {
        true => Ok(()),
        false => Err(format!("{said:?}")),
    }
}

fn nothing(who: Who) -> Result<(), String> {
    let bench = Bench::of(who)?;
    let handed = bench.run(&["--artifact", "out"], "true")?;
    handed.are(&[])?;
    let state = bench.project.state.join("belljar/state.sqlite");
    if state.exists() {
        return Err("the state was opened".to_owned());
    }
    bench.run(&["--artifact", "out"], "mkdir out && echo fine > out/a")?;
    match state.exists() {
        true => Ok(()),
        false => Err("the control failed: the state is elsewhere".to_owned()),
    }
}
