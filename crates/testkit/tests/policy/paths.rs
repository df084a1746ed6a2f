//! Paths in rules under other names: links, twins by case, ways around.

use std::fs;
use std::os::unix::fs::symlink;

use belljar_testkit::Who;
use belljar_testkit::twice::Check;

use crate::desk::Desk;

pub const ALL: &[(&str, Check)] = &[
    ("a_link_to_a_denied_folder_is_that_folder", links),
    ("a_rule_on_a_link_is_one_on_what_it_leads_to", spelled),
    ("a_twin_of_a_denied_name_is_denied", twins),
    ("where_one_is_does_not_widen_what_one_may", elsewhere),
    ("a_link_in_the_place_of_a_folder_is_what_is_in_it", in_its_place),
    ("a_protected_folder_is_taken_when_it_is_named_and_not_with_its_parent", named),
];

fn links(who: Who) -> Result<(), String> {
    let desk = Desk::of(who)?;
    let kept = desk.home.join("kept");
    fs::create_dir(&kept).and_then(|()| desk.project.give(&kept)).map_err(|error| error.to_string())?;
    desk.policy(&format!(
        "[[rule]]\nwhen = {{ action = [\"read\", \"write\"], path = \"{}\" }}\nthen = \"deny\"\nwhy = \"kept\"\n",
        kept.display()
    ))?;
    let around = desk.home.join("around");
    symlink(&kept, &around).map_err(|error| error.to_string())?;
    let up = format!("{}/work/../kept", desk.home.display());
    for path in [kept.display().to_string(), around.display().to_string(), up, "../kept/.".to_owned()] {
        for flag in ["--read", "--write"] {
            let said = desk.say(&["run", flag, &path, "--", "true"])?;
            // A link itself is refused before anybody looks at rules.
            let refused = said.code == Some(123) && said.error.contains("rule: rule.1")
                || said.code == Some(125) && said.error.contains("leads over a link");
            if !refused {
                return Err(format!("{flag} {path}: {said:?}"));
            }
        }
        let check = desk.say(&["check", "--path", &path, "--op", "write"])?;
        if check.code != Some(2) {
            return Err(format!("check --path {path}: {check:?}"));
        }
    }
    let other = desk.home.join("other");
    fs::create_dir(&other).and_then(|()| desk.project.give(&other)).map_err(|error| error.to_string())?;
    desk.expect(&["run", "--read", &other.display().to_string(), "--", "true"], 0, "").map(|_| ())
}

fn spelled(who: Who) -> Result<(), String> {
    let desk = Desk::of(who)?;
    let [elsewhere, open] = ["elsewhere", "open"].map(|name| desk.home.join(name));
    for folder in [&elsewhere, &open] {
        fs::create_dir(folder).and_then(|()| desk.project.give(folder)).map_err(|error| error.to_string())?;
    }
    let link = desk.home.join("link");
    symlink(&elsewhere, &link).map_err(|error| error.to_string())?;
    let rule = "when = { action = [\"exec\", \"read\", \"write\"], path = \"~/link\" }\nthen = \"deny\"\nwhy = \"x\"\n";
    desk.policy(&format!("[[rule]]\n{rule}"))?;
    let [real, open] = [&elsewhere, &open].map(|path| path.display().to_string());
    desk.expect(&["run", "--read", &real, "--", "true"], 123, "rule: rule.1")?;
    desk.expect(&["run", "--write", &real, "--", "true"], 123, "rule: rule.1")?;
    desk.expect(&["run", "--", "cat", &format!("{real}/x")], 123, "rule: rule.1")?;
    desk.expect(&["run", "--", "cat", &link.join("x").display().to_string()], 123, "rule: rule.1")?;
    desk.expect(&["run", "--read", &open, "--", "true"], 0, "").map(|_| ())
}

fn twins(who: Who) -> Result<(), String> {
    let desk = Desk::of(who)?;
    desk.policy("[commit]\ndeny = [\"deploy/keys\"]\n")?;
    let script = "mkdir -p Deploy deploy de\u{200b}ploy && echo a > Deploy/KEYS && echo b > deploy/keys && \
                  echo c > de\u{200b}ploy/keys && echo d > deploy/locks";
    desk.expect(&["run", "--", "sh", "-c", script], 0, "added")?;
    desk.say(&["apply"])?;
    let there = |name: &str| desk.project.work.join(name).exists();
    if !there("deploy/locks") {
        return Err("the control failed: what is not denied was not taken".to_owned());
    }
    match ["Deploy/KEYS", "deploy/keys", "de\u{200b}ploy/keys"].into_iter().find(|name| there(name)) {
        Some(name) => Err(format!("{name} was taken")),
        None => Ok(()),
    }
}

fn elsewhere(who: Who) -> Result<(), String> {
    let desk = Desk::of(who)?;
    let other = desk.home.join("elsewhere");
    fs::create_dir(&other).and_then(|()| desk.project.give(&other)).map_err(|error| error.to_string())?;
    desk.policy(&format!("[files]\nworkspaces = [\"{}\"]\n", desk.project.work.display()))?;
    desk.expect(&["run", "--", "true"], 0, "")?;
    let path = other.display().to_string();
    desk.expect(&["run", "--workspace", &path, "--", "true"], 123, "rule: files.workspaces")?;
    let mut there = desk.project.command(["run", "--", "true"]);
    there.current_dir(&other);
    crate::desk::expected(&mut there, 123, "rule: files.workspaces")?;
    desk.expect(&["run", "--cwd", &path, "--", "true"], 123, "rule: files.directory").map(|_| ())
}

fn in_its_place(who: Who) -> Result<(), String> {
    let desk = Desk::of(who)?;
    desk.policy("[files]\nprotect = [\"ops/**\"]\n[commit]\ndeny = [\"infra/**\", \"locked/keep\"]\n")?;
    let script = "mkdir other i2 l2 && echo evil > i2/main.tf && echo evil > l2/keep && ln -s i2 infra && ln -s l2 locked && \
                  ln -s i2 ops && ln -s i2 plain";
    desk.expect(&["run", "--", "sh", "-c", script], 0, "added")?;
    desk.say(&["apply"])?;
    let there = |name: &str| fs::symlink_metadata(desk.project.work.join(name)).is_ok();
    if !there("plain") {
        return Err("the control failed: a link that no rule is about was not taken".to_owned());
    }
    match ["infra", "locked", "ops"].into_iter().find(|name| there(name)) {
        Some(name) => Err(format!("{name} was taken")),
        None => Ok(()),
    }
}

fn named(who: Who) -> Result<(), String> {
    let desk = Desk::of(who)?;
    desk.policy("[files]\nprotect = [\"app/deploy\", \"app/deploy/keys\", \"app/infra/**\"]\n")?;
    let script = "mkdir -p app/deploy/keys app/infra/a app/src && \
                  touch app/deploy/one app/deploy/keys/two app/infra/a/three app/src/four";
    desk.expect(&["run", "--", "sh", "-c", script], 0, "added")?;
    let there = |name: &str| desk.project.work.join("app").join(name).exists();
    // What is named, and what is there then.
    let steps: &[(&[&str], &[&str])] = &[
        (&[], &["src/four"]),
        (&["app"], &["src/four"]),
        (&["."], &["src/four"]),
        (&["app/deploy"], &["src/four", "deploy/one"]),
        (&["app/infra/a/three"], &["src/four", "deploy/one", "infra/a/three"]),
        (&["app/infra", "app/deploy/keys"], &["src/four", "deploy/one", "infra/a/three", "deploy/keys/two"]),
    ];
    for (paths, wanted) in steps {
        desk.expect(&[&["apply", "last"], *paths].concat(), 0, "")?;
        for name in ["src/four", "deploy/one", "deploy/keys/two", "infra/a/three"] {
            if there(name) != wanted.contains(&name) {
                return Err(format!("after `apply last {}`, {name} is there: {}", paths.join(" "), there(name)));
            }
        }
    }
    Ok(())
}
