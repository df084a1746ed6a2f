//! From a question to its answer, with the real binary on both sides: what a person says is done, and nothing else is.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStderr, Command, Stdio};

use belljar_testkit::Who;
use belljar_testkit::twice::Check;

use crate::desk::{Desk, expected};

pub const ALL: &[(&str, Check)] = &[
    ("a_yes_lets_it_run_and_is_used_once", yes),
    ("a_no_is_final_and_says_why", no),
    ("a_yes_to_something_else_is_none", other),
    ("what_is_taken_is_what_was_agreed_to", agreed),
    ("who_is_asked_about_changes_sees_them", seen),
    ("a_yes_for_good_is_as_narrow_as_can_be", for_good),
    ("a_variable_brings_no_answers", brought),
];

const ASKS: &str =
    "[[rule]]\nid = \"touching\"\nwhen = { program = \"touch\" }\nthen = \"ask\"\nwhy = \"it touches\"\n";
/// Longer than any test takes, so that only an answer ends a question.
const WAITS: &str = "[approvals]\ntimeout = \"10m\"\n";
const NOBODY: &str = "[approvals]\ntimeout = \"1ms\"\n";

/// belljar, waiting for an answer.
pub struct Asker {
    child: Child,
    said: BufReader<ChildStderr>,
    pub id: String,
}

impl Asker {
    /// Until it says that it waits, and for which answer.
    pub fn of(desk: &Desk, words: &[&str]) -> Result<Asker, String> {
        Asker::of_command(desk.project.command(words))
    }

    pub fn of_command(mut command: Command) -> Result<Asker, String> {
        let spawned = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
        let mut child = spawned.map_err(|error| error.to_string())?;
        let mut said = BufReader::new(child.stderr.take().ok_or("no standard error")?);
        let mut line = String::new();
        said.read_line(&mut line).map_err(|error| error.to_string())?;
        let words = line.split("belljar approve ").nth(1).and_then(|rest| rest.split_whitespace().last());
        let id = words.map(|id| id.trim_end_matches('`').to_owned());
        let id = id.ok_or_else(|| format!("it does not wait: {line}"))?;
        Ok(Asker { child, said, id })
    }

    fn digest(&self, desk: &Desk) -> Result<String, String> {
        let list = desk.project.json(["approve", "list", "--json"])?;
        let parked = list["parked"].as_array().into_iter().flatten().find(|one| one["id"] == self.id.as_str());
        let digest = parked.and_then(|one| one["digest"].as_str());
        digest.and_then(|digest| digest.get(..12)).map(str::to_owned).ok_or_else(|| format!("not listed: {list}"))
    }

    fn answer(&self, desk: &Desk, how: &[&str]) -> Result<(), String> {
        let digest = self.digest(desk)?;
        let words = [&["approve", &self.id], how, &["--yes", "--digest", &digest]].concat();
        desk.expect(&words, 0, "").map(|_| ())
    }

    /// The next line that it says.
    pub fn line(&mut self) -> Result<String, String> {
        let mut line = String::new();
        self.said.read_line(&mut line).map_err(|error| error.to_string())?;
        Ok(line)
    }

    /// Its exit code, and what it said since.
    fn end(mut self) -> Result<(Option<i32>, String), String> {
        let mut rest = String::new();
        self.said.read_to_string(&mut rest).map_err(|error| error.to_string())?;
        let status = self.child.wait().map_err(|error| error.to_string())?;
        Ok((status.code(), rest))
    }
}

pub fn ended(asker: Asker, code: i32, said: &str) -> Result<(), String> {
    match asker.end()? {
        (Some(known), text) if known == code && text.contains(said) => Ok(()),
        (known, text) => Err(format!("wanted {code} and `{said}`, but got {known:?}: {text}")),
    }
}

fn yes(who: Who) -> Result<(), String> {
    let desk = Desk::of(who)?;
    desk.policy(&format!("{ASKS}{WAITS}"))?;
    let asker = Asker::of(&desk, &["run", "--", "touch", "x"])?;
    // Nobody who acts for an agent, or is inside, answers.
    let digest = asker.digest(&desk)?;
    let words = ["approve", &asker.id, "--once", "--yes", "--digest", &digest];
    expected(desk.project.command(words).env("AI_AGENT", "any"), 125, "may not answer")?;
    expected(desk.project.command(words).env("BELLJAR", "1"), 125, "may not answer")?;
    asker.answer(&desk, &["--once"])?;
    let id = asker.id.clone();
    ended(asker, 0, "1 added")?;
    // The same answer again is nobody's, and the same command is asked about again.
    let said = desk.say(&["approve", &id, "--once", "--yes", "--digest", &digest])?;
    if said.code == Some(0) {
        return Err(format!("an answer was taken twice: {said:?}"));
    }
    desk.policy(&format!("{ASKS}{NOBODY}"))?;
    desk.expect(&["run", "--", "touch", "x"], 122, "nobody answered").map(|_| ())
}

fn no(who: Who) -> Result<(), String> {
    let desk = Desk::of(who)?;
    desk.policy(&format!("{ASKS}{WAITS}"))?;
    let asker = Asker::of(&desk, &["run", "--json", "--", "touch", "x"])?;
    asker.answer(&desk, &["--deny", "--reason", "use the other one"])?;
    let (code, said) = asker.end()?;
    let told = said.contains("use the other one") && said.contains("\"retry\":\"no\"");
    if code != Some(122) || !told || desk.project.work.join("x").exists() {
        return Err(format!("{code:?}: {said}"));
    }
    Ok(())
}

fn other(who: Who) -> Result<(), String> {
    let desk = Desk::of(who)?;
    desk.policy(&format!("{ASKS}{WAITS}"))?;
    let harmless = Asker::of(&desk, &["run", "--", "touch", "harmless"])?;
    let harmful = Asker::of(&desk, &["run", "--", "touch", "harmful"])?;
    let digest = harmless.digest(&desk)?;
    // The digest that a person looked at is of the other question.
    desk.expect(&["approve", &harmful.id, "--once", "--yes", "--digest", &digest], 125, "")?;
    // Nor does the other's answer count when it is put in place of this one's.
    let folder = desk.project.state.join("belljar/approvals");
    let forged = folder.join(format!("{}.answer", harmful.id));
    let text = format!(
        "{{\"version\":1,\"id\":\"{}\",\"nonce\":\"{}\",\"digest\":\"{digest}\",\"decision\":\"once\",\"reason\":\"\"}}",
        harmful.id,
        "0".repeat(32)
    );
    let forge = || -> std::io::Result<()> {
        let beside = folder.join("beside");
        std::fs::write(&beside, text)?;
        desk.project.give(&beside)?;
        std::fs::rename(&beside, &forged)
    };
    forge().map_err(|error| error.to_string())?;
    harmless.answer(&desk, &["--once"])?;
    ended(harmless, 0, "1 added")?;
    harmful.answer(&desk, &["--deny"])?;
    ended(harmful, 122, "")
}

fn agreed(who: Who) -> Result<(), String> {
    let desk = Desk::of(who)?;
    desk.policy(&format!("[commit]\nask = [\"*.sql\"]\n{WAITS}"))?;
    let id = desk.project.create()?;
    let write =
        |text: &str| desk.expect(&["exec", &id, "--", "sh", "-c", &format!("echo {text} > q.sql; echo n > n")], 0, "");
    write("harmless")?;
    let asker = Asker::of(&desk, &["apply", &id])?;
    write("harmful")?;
    asker.answer(&desk, &["--once"])?;
    ended(asker, 125, "changed since somebody was asked")?;
    let there = |name: &str| std::fs::read_to_string(desk.project.work.join(name)).ok();
    if there("q.sql").is_some() || there("n").is_some() {
        return Err("something was taken".to_owned());
    }
    // The control: what does not change is taken.
    let asker = Asker::of(&desk, &["apply", &id])?;
    asker.answer(&desk, &["--once"])?;
    ended(asker, 0, "")?;
    match (there("q.sql").as_deref(), there("n").as_deref()) {
        (Some("harmful\n"), Some("n\n")) => Ok(()),
        other => Err(format!("{other:?}")),
    }
}

fn seen(who: Who) -> Result<(), String> {
    let desk = Desk::of(who)?;
    desk.policy(&format!("[commit]\nask = [\"*.sql\", \"long\"]\n{WAITS}"))?;
    desk.put("q.sql", "one\ntwo\n")?;
    let id = desk.project.create()?;
    let script = "printf 'one\\n\\033[2Jdrop\\n' > q.sql; seq 20000 > long; printf '\\377' > \"$(printf 'a\\nb.sql')\"";
    desk.expect(&["exec", &id, "--", "sh", "-c", script], 0, "")?;
    let asker = Asker::of(&desk, &["apply", &id])?;
    // Without an answer: it is shown, and nobody can be asked here.
    let shown = desk.expect(&["approve", &asker.id], 125, "standard input is no terminal")?.error;
    let lines = [
        "added a\\nb.sql, +1 -0, mode 644", "added long, +20000 -0, mode 644", "modified q.sql, +1 -1", "-two",
        "+⟨U+001B⟩[2Jdrop", "\\xff", "+1000", "not shown", "more lines, ", "bytes, of long; ",
        "the whole diff has the digest",
    ];
    if let Some(missing) = lines.iter().find(|line| !shown.contains(**line)) {
        return Err(format!("`{missing}` is not shown: {shown}"));
    }
    if shown.contains('\u{1b}') || shown.contains("19999") {
        return Err(format!("too much is shown: {shown}"));
    }
    // What it would take the place of is part of what was agreed to.
    desk.put("q.sql", "one\ntwo\nthree\n")?;
    asker.answer(&desk, &["--once"])?;
    ended(asker, 125, "changed since somebody was asked")?;
    desk.put("q.sql", "one\ntwo\n")?;
    // The end of what nobody sees counts like its beginning.
    let asker = Asker::of(&desk, &["apply", &id, "--theirs"])?;
    desk.expect(&["exec", &id, "--", "sh", "-c", "sed -i 's/^20000$/20001/' long"], 0, "")?;
    asker.answer(&desk, &["--once"])?;
    ended(asker, 125, "changed since somebody was asked")?;
    let asker = Asker::of(&desk, &["apply", &id, "--theirs"])?;
    asker.answer(&desk, &["--once"])?;
    ended(asker, 0, "")?;
    match std::fs::read_to_string(desk.project.work.join("q.sql")) {
        Ok(text) if text.contains("drop") => Ok(()),
        other => Err(format!("{other:?}")),
    }
}

fn for_good(who: Who) -> Result<(), String> {
    let desk = Desk::of(who)?;
    desk.policy(&format!("{ASKS}{WAITS}"))?;
    let asker = Asker::of(&desk, &["run", "--", "touch", "x"])?;
    asker.answer(&desk, &["--always"])?;
    ended(asker, 0, "1 added")?;
    desk.policy(&format!("{ASKS}{NOBODY}"))?;
    desk.expect(&["run", "--", "touch", "x"], 0, "1 added")?;
    // Neither more of the same, nor another asker, nor another rule.
    desk.expect(&["run", "--", "touch", "x", "y"], 122, "nobody answered")?;
    desk.expect(&["run", "--agent", "other", "--", "touch", "x"], 122, "nobody answered")?;
    let deny = ASKS.replace("ask", "deny");
    desk.policy(&format!("{deny}{NOBODY}"))?;
    desk.expect(&["run", "--", "touch", "x"], 123, "it touches")?;
    desk.policy(&format!("{ASKS}{NOBODY}"))?;
    let standing = desk.project.json(["approve", "list", "--all", "--json"])?;
    let id = standing["standing"][0]["id"].as_str().ok_or_else(|| format!("none stands: {standing}"))?.to_owned();
    desk.expect(&["approve", "revoke", &id], 0, "")?;
    desk.expect(&["run", "--", "touch", "x"], 122, "nobody answered").map(|_| ())
}

fn brought(who: Who) -> Result<(), String> {
    let desk = Desk::of(who)?;
    // The project asks; all that the user says is how long.
    desk.put("belljar.toml", &format!("version = 1\n{ASKS}"))?;
    desk.policy(WAITS)?;
    let asker = Asker::of(&desk, &["run", "--", "touch", "x"])?;
    asker.answer(&desk, &["--always"])?;
    ended(asker, 0, "1 added")?;
    // The control: where it was given, it stands.
    desk.policy(NOBODY)?;
    desk.expect(&["run", "--", "touch", "x"], 0, "1 added")?;
    // Now there is nothing in the user's home, and all of it where a variable says.
    let other = desk.home.join("other");
    let moved =
        std::fs::create_dir(&other).and_then(|()| std::fs::rename(desk.home.join(".config"), other.join(".config")));
    moved.map_err(|error| error.to_string())?;
    for (name, folder) in [("XDG_CONFIG_HOME", other.join(".config")), ("HOME", other)] {
        let mut command = desk.project.command(["run", "--", "touch", "x"]);
        expected(command.env(name, folder), 122, "nobody answered")?;
    }
    Ok(())
}
