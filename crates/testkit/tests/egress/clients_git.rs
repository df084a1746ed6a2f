//! git over https: what is fetched needs no question, what is pushed does.

use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use belljar_testkit::Who;

use crate::needing::Needing;
use crate::told;
use crate::world::{NAME, World};

pub const ALL: &[Needing] = &[
    ("git_clones_and_fetches_without_a_question", &["git"], fetches),
    ("git_push_without_an_answer_fails_and_says_so", &["git"], unanswered),
    ("git_push_goes_through_when_a_person_says_yes", &["git"], answered),
    ("git_push_fails_when_a_person_says_no", &["git"], declined),
];

const WHO: &str = "-c user.name=a -c user.email=a@example.org";

/// A repository with one commit on the world's server, and a policy by which it is one to fetch from.
fn repository(who: Who, timeout: &str) -> Result<World, String> {
    let world = World::of(who)?;
    let folder = world.folder.join("git");
    told(fs::create_dir_all(&folder))?;
    let script = format!(
        "git init -q --bare -b main one.git && git -C one.git config http.receivepack true && \
         git clone -q one.git seed 2>/dev/null; cd seed && \
         git checkout -q -b main && echo first >file && git add file && git {WHO} commit -qm first && git push -q origin main"
    );
    at_home(&world, &script)?;
    world.reads("git", timeout)?;
    Ok(world)
}

/// On the server itself.
fn at_home(world: &World, script: &str) -> Result<String, String> {
    let mut command = Command::new("sh");
    command.args(["-ec", script]).current_dir(world.folder.join("git")).env("GIT_CONFIG_GLOBAL", "/dev/null");
    let done = told(command.output())?;
    match done.status.success() {
        true => Ok(String::from_utf8_lossy(&done.stdout).trim().to_owned()),
        false => Err(format!("{script}: {done:?}")),
    }
}

fn commits(world: &World) -> Result<String, String> {
    at_home(world, "git -C one.git rev-list --count main")
}

fn fetches(who: Who) -> Result<(), String> {
    let world = repository(who, "1ms")?;
    let url = world.url("/git/one.git");
    let script = format!(
        "git clone -q {url} one && cat one/file && cd one && git fetch -q origin && git ls-remote origin | grep -c main && \
         git clone -q --depth 1 {url} ../shallow && cat ../shallow/file"
    );
    world.expect(&[], &["sh", "-ec", &script], 0, "first\n1\nfirst")?;
    // And what is new there, later.
    at_home(
        &world,
        &format!("cd seed && echo second >>file && git {WHO} commit -qam second && git push -q origin main"),
    )?;
    let script = format!("git clone -q {url} two && git -C two rev-list --count main");
    world.expect(&[], &["sh", "-ec", &script], 0, "2").map(drop)
}

fn pushing(world: &World) -> String {
    format!(
        "git clone -q {} one && cd one && echo mine >>file && git {WHO} commit -qam mine && git push -q origin main",
        world.url("/git/one.git")
    )
}

fn unanswered(who: Who) -> Result<(), String> {
    let world = repository(who, "2s")?;
    let said = world.run(&[], &["sh", "-ec", &pushing(&world)])?;
    // git shows what the gate says to it as the server's words.
    let refused = format!("remote: refused by belljar: GET {NAME}:{}/git/one.git/info/refs", world.https);
    if said.code == Some(0) || !said.error.contains(&refused) || !said.error.contains("remote: why: nobody answered") {
        return Err(format!("{said:?}"));
    }
    match (commits(&world)?.as_str(), pushes(&world)?) {
        ("1", 0) => Ok(()),
        other => Err(format!("it arrived: {other:?}")),
    }
}

fn answered(who: Who) -> Result<(), String> {
    let world = repository(who, "1m")?;
    let (code, error) = asked(&world, "--once")?;
    match (code, commits(&world)?.as_str()) {
        (Some(0), "2") => Ok(()),
        other => Err(format!("{other:?}: {error}")),
    }
}

fn declined(who: Who) -> Result<(), String> {
    let world = repository(who, "1m")?;
    let (code, error) = asked(&world, "--deny")?;
    match (code, commits(&world)?.as_str(), pushes(&world)?) {
        (Some(0), ..) => Err(format!("it is done all the same: {error}")),
        (_, "1", 0) => Ok(()),
        other => Err(format!("{other:?}: {error}")),
    }
}

/// How often something of a push arrived.
fn pushes(world: &World) -> Result<usize, String> {
    let of_push = |path: &str| path.contains("git-receive-pack");
    Ok(world.arrived()?.iter().filter(|one| one["path"].as_str().is_some_and(of_push)).count())
}

/// Pushes; every question is answered in this way until it is done.
fn asked(world: &World, answer: &str) -> Result<(Option<i32>, String), String> {
    let mut command = world.command(&[], &["sh", "-ec", &pushing(world)]);
    let mut child = told(command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn())?;
    let until = Instant::now() + Duration::from_secs(40);
    let mut questions = 0;
    while told(child.try_wait())?.is_none() && Instant::now() < until {
        let list = world.desk.project.json(["approve", "list", "--json"])?;
        for one in list["parked"].as_array().into_iter().flatten() {
            let (id, digest) = (one["id"].as_str().unwrap_or_default(), one["digest"].as_str().unwrap_or_default());
            let shown = one.to_string();
            if !shown.contains("git-receive-pack") || !shown.contains(NAME) || !shown.contains("git-remote-http") {
                child.kill().ok();
                return Err(format!("who is asked does not see what: {shown}"));
            }
            questions += 1;
            let words: &[&str] = match answer {
                "--deny" => &["approve", id, "--deny"],
                answer => &["approve", id, answer, "--yes", "--digest", digest.get(..12).unwrap_or_default()],
            };
            world.desk.expect(words, 0, "")?;
        }
    }
    child.kill().ok();
    let done = told(child.wait_with_output())?;
    let error = String::from_utf8_lossy(&done.stderr).into_owned();
    match questions {
        0 => Err(format!("nobody was asked: {error}")),
        _ => Ok((done.status.code(), error)),
    }
}
