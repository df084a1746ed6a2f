//! Secrets that a command says: fetched when a request needs one, again when it is old, and never told otherwise.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command};

use belljar_testkit::Who;
use belljar_testkit::project::Said;
use belljar_testkit::twice::Check;

use crate::attacks::same;
use crate::told;
use crate::world::{NAME, World};

pub const ALL: &[(&str, Check)] = &[
    ("a_command_is_asked_once_for_many_requests_and_not_at_all_for_none", asked_once),
    ("a_command_is_asked_again_when_what_it_said_is_old_and_the_stand_in_stays", asked_again),
    ("a_kept_secret_of_a_command_is_asked_for_when_it_is_needed", kept),
    ("a_command_that_fails_sends_nothing_and_tells_nothing", fails),
    ("a_command_that_hangs_ends_with_the_run", hangs),
    ("a_keyring_is_asked_by_a_program_that_may_run_on_every_processor", on_every_processor),
];

/// A world, and a program of the user's that says another value each time, and counts.
struct Minting {
    world: World,
    folder: PathBuf,
}

/// Files in its folder: `count`, how often it was called; `pid`, its number; `fail` and `hang`, what to do instead.
const SCRIPT: &str = r#"#!/bin/sh
cd "$(dirname "$0")"
echo $$ > pid
n=$(($(cat count) + 1))
echo $n > count
if test -e fail; then echo leaking-half-of-a-value; echo leaking-complaint >&2; exit 3; fi
if test -e hang; then sleep 1000; fi
echo "minted-value-$n-for-the-walrus"
"#;

impl Minting {
    fn of(who: Who) -> Result<Minting, String> {
        let world = World::of(who)?;
        let folder = world.desk.home.join("minting");
        told(fs::create_dir_all(&folder))?;
        told(fs::write(folder.join("mint"), SCRIPT))?;
        told(fs::set_permissions(folder.join("mint"), fs::Permissions::from_mode(0o755)))?;
        told(fs::write(folder.join("count"), "0\n"))?;
        for name in ["", "mint", "count"] {
            told(world.desk.project.give(&folder.join(name)))?;
        }
        Ok(Minting { world, folder })
    }

    fn policy(&self, ttl: &str) -> Result<(), String> {
        let (mint, https) = (self.folder.join("mint"), self.world.https);
        self.world.desk.policy(&format!(
            "[network]\nallow = [\"{NAME}:{https}\", \"127.0.0.1:{https}\"]\n\
             [secrets.API_TOKEN]\nhosts = [\"{NAME}:{https}\"]\nsource = \"cmd:{}\"\nttl = \"{ttl}\"\n",
            mint.display()
        ))
    }

    fn calls(&self) -> Result<u32, String> {
        told(told(fs::read_to_string(self.folder.join("count")))?.trim().parse())
    }

    /// So many requests with what stands for it.
    fn run(&self, requests: usize) -> Result<Said, String> {
        let url = self.world.url("/echo");
        let one = format!("curl -sS -m 60 -H \"Authorization: Bearer $API_TOKEN\" {url}; echo; echo \"$API_TOKEN\";");
        self.world.run(&["--secret=API_TOKEN"], &["sh", "-c", &format!("{}true", one.repeat(requests))])
    }

    /// What arrived at the server as credentials.
    fn sent(&self) -> Result<Vec<String>, String> {
        let text = |one: &serde_json::Value| one["headers"]["authorization"].as_str().unwrap_or("none").to_owned();
        Ok(self.world.arrived()?.iter().map(text).collect())
    }

    /// Nothing of any value was said to anybody but the server.
    fn is_hidden(&self, said: &Said, parts: &[&str]) -> Result<(), String> {
        let log = self.world.desk.expect(&["log", "--json"], 0, "")?;
        for part in parts {
            let texts = [&said.out[..], said.error.as_bytes(), &log.out[..]];
            if texts.iter().any(|text| String::from_utf8_lossy(text).contains(part)) {
                return Err(format!("`{part}` was told: {said:?}\n{log:?}"));
            }
        }
        Ok(())
    }
}

fn value(number: u32) -> String {
    format!("Bearer minted-value-{number}-for-the-walrus")
}

fn asked_once(who: Who) -> Result<(), String> {
    let minting = Minting::of(who)?;
    minting.policy("1h")?;
    same(minting.run(0)?.code, Some(0), "without a request")?;
    same(minting.calls()?, 0, "nobody needed it")?;
    let said = minting.run(3)?;
    same((said.code, minting.calls()?, minting.sent()?), (Some(0), 1, vec![value(1), value(1), value(1)]), &said)?;
    minting.is_hidden(&said, &["minted-value", "for-the-walrus"])?;
    // It is in no file of belljar's: the next run asks again.
    let said = minting.run(1)?;
    same((minting.calls()?, minting.sent()?.pop()), (2, Some(value(2))), &said)
}

fn asked_again(who: Who) -> Result<(), String> {
    let minting = Minting::of(who)?;
    minting.policy("1ms")?;
    let said = minting.run(3)?;
    same((said.code, minting.calls()?, minting.sent()?), (Some(0), 3, vec![value(1), value(2), value(3)]), &said)?;
    minting.is_hidden(&said, &["minted-value", "for-the-walrus"])?;
    let out = String::from_utf8_lossy(&said.out).into_owned();
    let mut stand_ins: Vec<&str> = out.lines().filter(|line| line.starts_with("belljar-API_TOKEN-")).collect();
    same(stand_ins.len(), 3, &said)?;
    stand_ins.dedup();
    same(stand_ins.len(), 1, &said)
}

fn kept(who: Who) -> Result<(), String> {
    let minting = Minting::of(who)?;
    let https = minting.world.https;
    let allow = format!("[network]\nallow = [\"{NAME}:{https}\", \"127.0.0.1:{https}\"]\n");
    minting.world.desk.policy(&allow)?;
    let source = format!("cmd:{}", minting.folder.join("mint").display());
    let host = format!("{NAME}:{https}");
    let words = ["secret", "set", "API_TOKEN", "--source", &source, "--host", &host, "--ttl", "1h"];
    minting.world.desk.expect(&words, 0, "")?;
    same(minting.calls()?, 0, "setting it asks nobody")?;
    let said = minting.run(2)?;
    same((said.code, minting.calls()?, minting.sent()?), (Some(0), 1, vec![value(1), value(1)]), &said)
}

fn fails(who: Who) -> Result<(), String> {
    let minting = Minting::of(who)?;
    minting.policy("1h")?;
    told(fs::write(minting.folder.join("fail"), ""))?;
    let said = minting.run(2)?;
    let out = String::from_utf8_lossy(&said.out).into_owned();
    same((out.matches("could not be fetched").count(), minting.sent()?), (2, Vec::new()), &said)?;
    same(out.contains("failed (exit status: 3)"), true, &said)?;
    minting.is_hidden(&said, &["leaking"])?;
    let net = minting.world.desk.expect(&["net", "--denied"], 0, "")?;
    same(String::from_utf8_lossy(&net.out).contains("secret.fetch"), true, &net)?;
    // As soon as it works, it goes.
    told(fs::remove_file(minting.folder.join("fail")))?;
    let said = minting.run(1)?;
    same(minting.sent()?, vec![value(minting.calls()?)], &said)
}

fn hangs(who: Who) -> Result<(), String> {
    let minting = Minting::of(who)?;
    minting.policy("1h")?;
    told(fs::write(minting.folder.join("hang"), ""))?;
    let url = minting.world.url("/echo");
    let script = format!("curl -sS -m 2 -H \"Authorization: Bearer $API_TOKEN\" {url}; echo went on");
    let said = minting.world.expect(&["--secret=API_TOKEN"], &["sh", "-c", &script], 0, "went on")?;
    same((minting.calls()?, minting.sent()?), (1, Vec::new()), &said)?;
    let pid = told(fs::read_to_string(minting.folder.join("pid")))?;
    let state = fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    // Gone, or only waiting to be counted as such by whoever has it now.
    match state.is_empty() || state.contains(") Z ") {
        true => Ok(()),
        false => Err(format!("it goes on: {state}")),
    }
}

/// Where every processor has something to do, belljar stays on one of them with all that it starts for a sandbox, and with nothing else.
fn on_every_processor(who: Who) -> Result<(), String> {
    let minting = Minting::of(who)?;
    let (world, folder) = (&minting.world, &minting.folder);
    let https = world.https;
    world.desk.policy(&format!(
        "[network]\nallow = [\"{NAME}:{https}\"]\n[secrets.API_TOKEN]\nhosts = [\"{NAME}:{https}\"]\nsource = \"keyring\"\n"
    ))?;
    let told_here = folder.join("processors");
    let stand_in = format!("#!/bin/sh\nnproc > {}\necho a-value-of-a-keyring\n", told_here.display());
    told(fs::write(folder.join("secret-tool"), stand_in))?;
    told(fs::set_permissions(folder.join("secret-tool"), fs::Permissions::from_mode(0o755)))?;
    world.desk.project.give(&folder.join("secret-tool")).map_err(|error| error.to_string())?;
    let all = told(std::thread::available_parallelism())?.get();
    let spin = || told(Command::new("/bin/sh").args(["-c", "while :; do :; done"]).spawn());
    let mut spins = (0..2 * all).map(|_| spin()).collect::<Result<Vec<Child>, String>>()?;
    let mut asked = world.desk.project.command(["run", "-q", "--secret=API_TOKEN", "--", "true"]);
    let path = format!("{}:/usr/local/bin:/usr/bin:/bin", folder.display());
    let ran = told(asked.env("PATH", path).output());
    spins.iter_mut().try_for_each(|one| told(one.kill().and_then(|()| one.wait())).map(drop))?;
    let ran = ran?;
    same(ran.status.code(), Some(0), String::from_utf8_lossy(&ran.stderr))?;
    same(told(fs::read_to_string(told_here))?.trim().parse(), Ok(all), "the program that was asked")
}
