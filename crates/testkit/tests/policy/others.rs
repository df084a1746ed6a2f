//! Questions that another user answers, neither the asker nor root. Tried in mount namespaces in which `/var/lib` is the
//! test's.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use belljar_testkit::contestant::belljar;
use belljar_testkit::{Who, twice};
use libtest_mimic::Trial;

use crate::desk::{Desk, expected};
use crate::people::{Asker, ended};

pub fn trials() -> Vec<Trial> {
    let name = "another_user_answers_where_root_made_room_for_it";
    // Three users are needed, so root must be there to be them.
    vec![twice::trial(name, Who::Ordinary, twice::why_not(Who::Root), || third(Who::Ordinary))]
}

/// Users and groups that every Debian has: who approves, and two who have no say.
const DAEMON: u32 = 1;
const BIN: u32 = 2;
const NOBODY: u32 = 65534;

struct Machine {
    desk: Desk,
    library: PathBuf,
}

impl Machine {
    fn command(&self, command: &Command) -> Command {
        let mut within = Command::new("unshare");
        let script = "mount --bind \"$1\" /var/lib && shift && exec \"$@\"";
        within.args(["--mount", "--propagation", "private", "sh", "-c", script, "sh"]).arg(&self.library);
        within.arg(command.get_program()).args(command.get_args()).env_clear().stdin(Stdio::null());
        within.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        within.current_dir(command.get_current_dir().unwrap_or(Path::new("/")));
        within
    }

    fn asker(&self, words: &[&str]) -> Command {
        self.command(&self.desk.project.command(words))
    }

    /// Somebody else, who is in one group.
    fn other(&self, user: u32, group: u32, words: &[&str]) -> Command {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", &user.to_string(), "--regid", &group.to_string(), "--clear-groups"]).args(words);
        command.env("PATH", "/usr/bin:/bin").env("HOME", "/nonexistent");
        self.command(&command)
    }

    fn approve(&self, user: u32, group: u32, words: &[&str]) -> Command {
        let belljar = belljar();
        let words = [&[belljar.to_str().unwrap_or_default(), "approve"], words].concat();
        self.other(user, group, &words)
    }

    fn spool(&self) -> PathBuf {
        self.library.join("belljar/approvals")
    }

    fn make_spool(&self, group: u32, mode: u32) -> Result<(), String> {
        let make = || {
            fs::create_dir_all(self.spool())?;
            chown(self.spool(), Some(0), Some(group))?;
            fs::set_permissions(self.spool(), fs::Permissions::from_mode(mode))
        };
        make().map_err(|error| error.to_string())
    }
}

fn third(who: Who) -> Result<(), String> {
    let desk = Desk::of(who)?;
    let rule = "[[rule]]\nwhen = { program = \"touch\" }\nthen = \"ask\"\nwhy = \"it touches\"\n";
    desk.policy(&format!("[approvals]\ntimeout = \"10m\"\napprovers = [\"daemon\"]\n{rule}"))?;
    let library = desk.home.join("library");
    fs::create_dir(&library).map_err(|error| error.to_string())?;
    let machine = Machine { desk, library };
    let touch = ["run", "--", "touch", "x"];

    // Where that user can't be asked, the policy is not obeyed in silence.
    for words in [&touch[..], &["run", "--", "true"]] {
        expected(&mut machine.asker(words), 125, "install -d -o root -g GROUP -m 3773 /var/lib/belljar/approvals")?;
    }
    machine.make_spool(BIN, 0o3773)?;
    expected(&mut machine.asker(&touch), 125, "usermod -aG bin daemon")?;
    machine.make_spool(DAEMON, 0o777)?;
    expected(&mut machine.asker(&touch), 125, "and not 3773")?;
    machine.make_spool(DAEMON, 0o3773)?;
    expected(&mut machine.asker(&["run", "--", "true"]), 0, "")?;

    let mut asker = Asker::of_command(machine.asker(&touch))?;
    let id = asker.id.clone();
    let list = expected(&mut machine.approve(DAEMON, DAEMON, &["list", "--json"]), 0, "")?;
    let list: serde_json::Value = serde_json::from_slice(&list.out).map_err(|error| error.to_string())?;
    let parked = &list["parked"][0];
    let digest = parked["digest"].as_str().and_then(|digest| digest.get(..12)).unwrap_or_default().to_owned();
    if parked["id"] != id.as_str() || parked["of"] != belljar_testkit::contestant::TEST_USER {
        return Err(format!("it is not listed: {list}"));
    }
    let yes = [&id, "--once", "--yes", "--digest", &digest];
    // Neither the asker nor others of the group may answer, and those outside of it see nothing.
    expected(&mut machine.asker(&[&["approve"], &yes[..]].concat()), 125, "may not answer")?;
    let of = ["--of", belljar_testkit::contestant::TEST_USER];
    expected(&mut machine.approve(NOBODY, DAEMON, &[&of[..], &yes].concat()), 125, "may not answer")?;
    expected(&mut machine.approve(NOBODY, NOBODY, &yes), 1, "no question")?;
    let folder = format!("/var/lib/belljar/approvals/{}", who.user_id());
    expected(&mut machine.other(NOBODY, NOBODY, &["ls", &folder]), 2, "Permission denied")?;
    let spoil = format!("rm {folder}/{id}.question; mv {folder}/{id}.question {folder}/x; rmdir {folder}/session");
    expected(&mut machine.other(NOBODY, DAEMON, &["sh", "-c", &spoil]), 1, "not permitted")?;
    let forge = format!("echo '{{}}' > {folder}/{id}.answer");
    expected(&mut machine.other(NOBODY, DAEMON, &["sh", "-c", &forge]), 0, "")?;
    let line = asker.line()?;
    if !line.contains("does not count and was removed: it is of user 65534") {
        return Err(format!("a forged answer: {line}"));
    }
    expected(&mut machine.approve(DAEMON, DAEMON, &yes), 0, "")?;
    ended(asker, 0, "1 added")?;

    // And a no is one.
    let asker = Asker::of_command(machine.asker(&touch))?;
    expected(&mut machine.approve(DAEMON, DAEMON, &[&asker.id, "--deny", "--reason", "not today"]), 0, "")?;
    ended(asker, 122, "daemon said no: not today")
}
