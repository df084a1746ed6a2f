//! What whoever asks chooses (flags, variables, names) never widens a policy; and a no says what would help.

use belljar_testkit::Who;
use belljar_testkit::twice::Check;

use crate::desk::{Desk, expected};

/// Questions end at once: nobody is here to answer them.
const NOBODY_ANSWERS: &str = "[approvals]\ntimeout = \"1ms\"\n";

pub const ALL: &[(&str, Check)] = &[
    ("flags_ask_and_do_not_get", flags),
    ("a_no_says_what_would_help", helps),
    ("a_limit_is_a_ceiling", ceilings),
    ("a_claimed_name_only_narrows", names),
    ("a_command_is_judged_in_all_its_disguises", disguises),
    ("what_an_allowed_name_leads_to_counts", led_elsewhere),
    ("a_claimed_name_brings_no_yes", claimed),
];

fn flags(who: Who) -> Result<(), String> {
    let desk = Desk::of(who)?;
    let words: &[&[&str]] =
        &[&["--read", "/etc/hostname"], &["--write", "."], &["--env", "SECRET"], &["--workspace-mode", "direct"]];
    fn run<'a>(flags: &[&'a str]) -> Vec<&'a str> {
        [&["run"], flags, &["--", "true"]].concat()
    }
    for flags in words {
        let said = desk.say(&run(flags))?;
        if said.code != Some(0) {
            return Err(format!("the control failed: without a policy {flags:?} is not given: {said:?}"));
        }
    }
    desk.policy(&format!("extends = [\"balanced\"]\n{NOBODY_ANSWERS}"))?;
    for flags in words {
        desk.expect(&run(flags), 122, "nobody answered")?;
    }
    desk.expect(&run(&["--accept-gap", "landlock"]), 123, "rule: defaults.gap")?;
    desk.policy(&format!("extends = [\"locked\"]\n{NOBODY_ANSWERS}"))?;
    for flags in words {
        desk.expect(&run(flags), 123, "rule: defaults.")?;
    }
    // A value of the asker's own is theirs to give; but whom it is given to may then start something else.
    desk.expect(&run(&["--env", "SECRET=mine"]), 122, "nobody answered")?;
    desk.policy(&format!("extends = [\"balanced\"]\n{NOBODY_ANSWERS}"))?;
    desk.expect(&run(&["--env", "SECRET=mine"]), 0, "").map(|_| ())
}

fn helps(who: Who) -> Result<(), String> {
    let desk = Desk::of(who)?;
    desk.policy(&format!("extends = [\"balanced\"]\n{NOBODY_ANSWERS}"))?;
    let denials = |words: &[&str], code: i32| -> Result<serde_json::Value, String> {
        let said = desk.expect(words, code, "")?;
        let line = said.error.lines().rev().find(|line| line.starts_with('{')).ok_or("no result")?;
        let result: serde_json::Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
        Ok(result["denials"].clone())
    };
    let denied = denials(&["run", "--json", "--", "env", "sudo", "true"], 123)?;
    let told = (&denied[0]["rule"], &denied[0]["retry"], &denied[0]["action"]);
    if told != (&"no-root".into(), &"no".into(), &"exec".into()) {
        return Err(format!("sudo: {denied}"));
    }
    let asked = denials(&["run", "--json", "--read", "/etc/hostname", "--", "true"], 122)?;
    let told = (&asked[0]["retry"], &asked[0]["grant"]);
    if told != (&"after-approval".into(), &"[files] read = [\"/etc/hostname\"]".into()) {
        return Err(format!("--read: {asked}"));
    }
    // The smallest grant is what it says: taken over, it is allowed.
    desk.policy("extends = [\"balanced\"]\n[files]\nread = [\"/etc/hostname\"]\n")?;
    desk.expect(&["run", "--read", "/etc/hostname", "--", "true"], 0, "").map(|_| ())
}

fn ceilings(who: Who) -> Result<(), String> {
    let desk = Desk::of(who)?;
    let limit = |desk: &Desk| -> Result<String, String> {
        let said = desk.say(&["run", "-q", "--files", "900", "--", "sh", "-c", "ulimit -n"])?;
        Ok(String::from_utf8_lossy(&said.out).trim().to_owned())
    };
    if limit(&desk)? != "900" {
        return Err("the control failed: a limit that is asked for is not given".to_owned());
    }
    desk.policy("[limits]\nfiles = 300\n")?;
    desk.put("belljar.toml", "version = 1\n[limits]\nfiles = 500\n")?;
    match limit(&desk)?.as_str() {
        "300" => Ok(()),
        other => Err(format!("{other} files can be open")),
    }
}

fn names(who: Who) -> Result<(), String> {
    let desk = Desk::of(who)?;
    let rules = "[[rule]]\nwhen = { action = \"exec\", agent = \"bad-*\" }\nthen = \"deny\"\nwhy = \"it is bad\"\n";
    desk.policy(rules)?;
    desk.expect(&["run", "--", "true"], 0, "")?;
    desk.expect(&["run", "--agent", "bad-one", "--", "true"], 123, "it is bad")?;
    let mut marked = desk.project.command(["run", "--", "true"]);
    expected(marked.env("AI_AGENT", "bad-two"), 123, "it is bad")?;
    // Whatever is allowed to a name is not allowed to whoever claims it.
    let user = if who == Who::Root { "root" } else { belljar_testkit::contestant::TEST_USER };
    let rules = format!(
        "[[rule]]\nwhen = {{ action = \"exec\", agent = \"user:{user}\" }}\nthen = \"deny\"\nwhy = \"nobody may\"\n\
         [[rule]]\nwhen = {{ action = \"exec\", agent = \"good\" }}\nthen = \"allow\"\nwhy = \"it is good\"\n"
    );
    desk.policy(&rules)?;
    desk.expect(&["run", "--agent", "good", "--", "true"], 123, "nobody may").map(|_| ())
}

fn disguises(who: Who) -> Result<(), String> {
    let desk = Desk::of(who)?;
    desk.policy("[[rule]]\nid = \"no\"\nwhen = { program = \"touch\" }\nthen = \"deny\"\nwhy = \"no touching\"\n")?;
    let lines = [
        "touch x", "t\"ou\"ch x", "\\touch x", "/usr/bin/touch x", "/proc/self/root/usr/bin/touch x", "env touch x",
        "true && touch x", "true | touch x", "$(touch x)", "echo `touch x`", "bash -c 'touch x'", "eval touch x",
        "echo x | xargs touch", "find . -maxdepth 0 -exec touch x \\;", "for i in 1; do touch x; done",
        "f() { touch x; }; f", "command touch x", "timeout 5 nice touch x", "sh <<< 'touch x'", "$'\\x74ouch' x",
        "a=b touch x", "cat <(touch x)",
    ];
    for line in lines {
        desk.expect(&["run", "--", "bash", "-c", line], 123, "no touching")?;
    }
    // Without the rule, they do it.
    desk.policy("")?;
    for line in lines {
        desk.expect(&["run", "--", "bash", "-c", &format!("{line}\ntest -e x")], 0, "added")?;
    }
    Ok(())
}

fn led_elsewhere(who: Who) -> Result<(), String> {
    let desk = Desk::of(who)?;
    desk.put("evil/ls", "#!/bin/sh\necho evil\n")?;
    let evil = desk.project.work.join("evil");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(evil.join("ls"), mode).map_err(|error| error.to_string())?;
    let path = format!("{}:/usr/bin:/bin", evil.display());
    let assigned = format!("PATH={path}");
    // Without a policy, these start it.
    let mut there = desk.project.command(["run", "-q", "--", "ls"]);
    let said = there.env("PATH", &path).output().map_err(|error| error.to_string())?;
    if said.stdout != b"evil\n" {
        return Err(format!("the control failed: {said:?}"));
    }
    desk.policy(&format!("extends = [\"locked\"]\n{NOBODY_ANSWERS}"))?;
    desk.expect(&["run", "--", "ls"], 0, "")?;
    let mut there = desk.project.command(["run", "--", "ls"]);
    expected(there.env("PATH", &path), 122, "nobody answered")?;
    for value in [assigned.as_str(), "LD_PRELOAD=./x.so", "GIT_EXTERNAL_DIFF=./x"] {
        desk.expect(&["run", "--env", value, "--", "ls"], 122, "nobody answered")?;
    }
    Ok(())
}

fn claimed(who: Who) -> Result<(), String> {
    let desk = Desk::of(who)?;
    let rule = |name: &str| {
        format!(
            "[defaults]\nexec = \"ask\"\n[[rule]]\nwhen = {{ action = \"exec\", agent = \"{name}\" }}\n\
             then = \"allow\"\nwhy = \"it is known\"\n{NOBODY_ANSWERS}"
        )
    };
    desk.policy(&rule("good"))?;
    desk.expect(&["run", "--agent", "good", "--", "true"], 122, "nobody answered")?;
    let mut two = desk.project.command(["run", "--agent", "good", "--", "true"]);
    expected(two.env("AI_AGENT", "bad"), 123, "rule: agent.name")?;
    // The user is known from the kernel.
    let user = if who == Who::Root { "root" } else { belljar_testkit::contestant::TEST_USER };
    desk.policy(&rule(&format!("user:{user}")))?;
    desk.expect(&["run", "--agent", "good", "--", "true"], 0, "").map(|_| ())
}
