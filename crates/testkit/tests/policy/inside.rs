//! A guest that changes the policy of the project it works on.

use std::fs;

use belljar_testkit::Who;
use belljar_testkit::twice::Check;

use crate::desk::{Desk, expected};

pub const ALL: &[(&str, Check)] = &[
    ("a_guest_in_the_real_files_cannot_change_their_policy", cannot_change),
    ("a_guest_in_a_layer_changes_only_its_own_view", own_view),
    ("a_guest_cannot_reach_what_the_user_obeys", cannot_reach),
    ("a_guest_that_adds_a_policy_gains_nothing", adds_one),
    ("a_nearer_policy_does_not_silence_one_above", nearer),
    ("trust_in_one_project_is_none_in_another", another),
];

const STRICT: &str = "version = 1\n[defaults]\nexec = \"allow\"\n[[rule]]\nwhen = { program = \"touch\" }\nthen = \"deny\"\nwhy = \"no\"\n";
const WAYS: &str = "rm -f belljar.toml; echo 'version = 1' > belljar.toml; mv belljar.toml x; cp /dev/null belljar.toml; \
                    ln -sf /dev/null belljar.toml; truncate -s 0 belljar.toml; sed -i d belljar.toml; true";

fn cannot_change(who: Who) -> Result<(), String> {
    let desk = Desk::of(who)?;
    desk.put("belljar.toml", STRICT)?;
    desk.put("other.toml", STRICT)?;
    let ways = format!("{WAYS}; {}", WAYS.replace("belljar.toml", "other.toml"));
    desk.say(&["run", "--workspace-mode", "direct", "--", "sh", "-c", &ways])?;
    let read = |name: &str| fs::read_to_string(desk.project.work.join(name)).unwrap_or_default();
    if read("other.toml") == STRICT {
        return Err("the control failed: a file beside it could not be changed either".to_owned());
    }
    if read("belljar.toml") != STRICT {
        return Err(format!("the policy was changed to `{}`", read("belljar.toml")));
    }
    desk.expect(&["run", "--", "touch", "x"], 123, "rule: rule.1").map(|_| ())
}

fn own_view(who: Who) -> Result<(), String> {
    let desk = Desk::of(who)?;
    desk.put("belljar.toml", STRICT)?;
    desk.expect(&["run", "--", "sh", "-c", "echo 'version = 1' > belljar.toml && cat belljar.toml"], 0, "1 modified")?;
    desk.expect(&["run", "--", "touch", "x"], 123, "rule: rule.1")?;
    // Taking everything does not take it: it must be named.
    let taken = desk.say(&["apply"])?;
    let said = String::from_utf8_lossy(&taken.out).into_owned();
    if !said.contains("protected, and only taken when named: 1") {
        return Err(format!("the changed policy is not shown apart: {said}"));
    }
    desk.expect(&["run", "--", "touch", "x"], 123, "rule: rule.1")?;
    // The control: a person who names it gets it.
    let named = desk.say(&["apply", "last", "belljar.toml"])?;
    if named.code != Some(0) {
        return Err(format!("the control failed: {named:?}"));
    }
    desk.expect(&["run", "--", "touch", "x"], 0, "").map(|_| ())
}

fn cannot_reach(who: Who) -> Result<(), String> {
    let desk = Desk::of(who)?;
    desk.policy("extends = [\"open\"]\n")?;
    let folder = desk.home.join(".config/belljar");
    for flag in ["--write", "--workspace"] {
        desk.expect(&["run", flag, &folder.display().to_string(), "--", "true"], 123, "rule: files.policies")?;
    }
    // Inside, at the same path, is something else or nothing; it is neither seen nor changed.
    let script = format!("mkdir -p {0} && echo 'version = 1' > {0}/policy.toml", folder.display());
    desk.say(&["run", "--", "sh", "-c", &script])?;
    match fs::read_to_string(folder.join("policy.toml")) {
        Ok(text) if text.contains("open") => Ok(()),
        other => Err(format!("the user's policy was changed: {other:?}")),
    }
}

fn adds_one(who: Who) -> Result<(), String> {
    let desk = Desk::of(who)?;
    desk.policy("[environment]\npass = []\n[defaults]\nwrite = \"deny\"\n")?;
    let generous = "version = 1\n[defaults]\nwrite = \"allow\"\n[environment]\npass = [\"SECRET\"]\n";
    desk.put("belljar.toml", generous)?;
    let sees = |desk: &Desk| -> Result<String, String> {
        let mut command = desk.project.command(["run", "-q", "--", "sh", "-c", "echo \"[$SECRET]\""]);
        command.env("SECRET", "hunter2");
        let said = command.output().map_err(|error| error.to_string())?;
        Ok(String::from_utf8_lossy(&said.stdout).into_owned())
    };
    if sees(&desk)? != "[]\n" {
        return Err("a file that nobody trusts passed a secret on".to_owned());
    }
    let work = desk.project.work.display().to_string();
    desk.expect(&["run", "--write", &work, "--", "true"], 123, "rule: defaults.write")?;
    // The control: once the user trusts it, it gives.
    desk.expect(&["policy", "trust"], 0, "")?;
    if sees(&desk)? != "[hunter2]\n" {
        return Err("the control failed: a trusted file passes nothing on".to_owned());
    }
    // Trust is in this text, and in no other.
    desk.put("belljar.toml", &format!("{generous}# changed\n"))?;
    match sees(&desk)?.as_str() {
        "[]\n" => Ok(()),
        other => Err(format!("a file that changed since it was trusted still gives: {other}")),
    }
}

fn nearer(who: Who) -> Result<(), String> {
    let desk = Desk::of(who)?;
    desk.put("belljar.toml", STRICT)?;
    desk.put("sub/x", "")?;
    let make = "echo 'version = 1' > sub/belljar.toml";
    desk.expect(&["run", "--workspace-mode", "direct", "--", "sh", "-c", make], 0, "")?;
    let mut below = desk.project.command(["run", "--", "touch", "x"]);
    expected(below.current_dir(desk.project.work.join("sub")), 123, "rule: rule.1").map(|_| ())
}

fn another(who: Who) -> Result<(), String> {
    let desk = Desk::of(who)?;
    desk.policy("[defaults]\nenvironment = \"deny\"\n")?;
    desk.put("a/belljar.toml", "version = 1\n[environment]\npass = [\"SECRET\"]\n")?;
    desk.put("b/x", "")?;
    let [a, b] = ["a", "b"].map(|name| desk.project.work.join(name));
    let mut trust = desk.project.command(["policy", "trust"]);
    expected(trust.current_dir(&a), 0, "")?;
    let sees = |words: &[&str]| -> Result<String, String> {
        let mut command = desk.project.command(words);
        let said = command.env("SECRET", "hunter2").current_dir(&b).output().map_err(|error| error.to_string())?;
        Ok(String::from_utf8_lossy(&said.stdout).into_owned())
    };
    let script = ["--", "sh", "-c", "echo \"[$SECRET]\""];
    let [a, b] = [&a, &b].map(|path| path.display().to_string());
    let alone = sees(&[&["run", "-q", "--workspace", &a], &script[..]].concat())?;
    let both = sees(&[&["run", "-q", "--workspace", &b, "--workspace", &a], &script[..]].concat())?;
    match (alone.as_str(), both.as_str()) {
        ("[hunter2]\n", "[]\n") => Ok(()),
        other => Err(format!("alone, and with another: {other:?}")),
    }
}
