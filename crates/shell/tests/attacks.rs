//! Lines that hide `git push`, as in `attacks.txt`: `$` is a line, `>` more of it, and `!` one that needs what may not be
//! here. `⇥` stands for a tab and `␍` for a carriage return.
//!
//! Bash really runs each, with a `git` and a `curl` that only tell that they ran: an attack that does not work proves
//! nothing. What it runs must have been foreseen, or the line called unclear.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use shell::of_line;

const ATTACKS: &str = include_str!("attacks.txt");

struct Attack {
    line: String,
    /// Can it be tried wherever there is bash?
    is_tried: bool,
}

fn attacks() -> Vec<Attack> {
    let mut attacks: Vec<Attack> = Vec::new();
    for written in ATTACKS.lines() {
        let text = written.replace('⇥', "\t").replace('␍', "\r");
        if let Some(line) = text.strip_prefix("$ ").or(text.strip_prefix("! ")) {
            attacks.push(Attack { line: line.to_owned(), is_tried: text.starts_with('$') });
        } else if let Some(more) = text.strip_prefix("> ").or(text.strip_prefix('>')) {
            let attack = attacks.last_mut().expect("a line before more of it");
            attack.line.push('\n');
            attack.line.push_str(more);
        } else {
            assert!(text.is_empty() || text.starts_with('#'), "{text:?} is neither a line nor a heading");
        }
    }
    attacks
}

#[test]
fn what_is_hidden_is_found_or_the_line_is_unclear() {
    let attacks = attacks();
    assert!(attacks.len() >= 150, "there are only {} attacks", attacks.len());
    let missed: Vec<&str> =
        attacks.iter().map(|attack| attack.line.as_str()).filter(|line| !is_foreseen(line)).collect();
    assert!(missed.is_empty(), "seem harmless: {missed:#?}");
}

#[test]
fn each_attack_works_in_bash() {
    let place = Place::new();
    let attacks = attacks();
    let tried: Vec<&Attack> = attacks.iter().filter(|attack| attack.is_tried).collect();
    assert!(tried.len() >= 120, "only {} attacks are tried", tried.len());
    let failed: Vec<&str> =
        tried.iter().map(|attack| attack.line.as_str()).filter(|line| !place.pushes(line)).collect();
    assert!(failed.is_empty(), "push nothing: {failed:#?}");
}

fn is_foreseen(line: &str) -> bool {
    let reading = of_line(line);
    let pushes = |simple: &shell::Simple| {
        simple.name() == Some("git") && simple.arguments.iter().any(|word| word.may_be("push"))
    };
    !reading.unclear.is_empty() || reading.commands.iter().any(pushes)
}

/// A folder with programs that only tell that they ran.
struct Place(PathBuf);

impl Place {
    fn new() -> Place {
        let folder = std::env::temp_dir().join(format!("belljar-shell-attacks-{}", std::process::id()));
        fs::create_dir_all(folder.join("bin")).expect("a folder for programs");
        let place = Place(folder);
        let told = place.told();
        place.program(
            "git",
            &format!("#!/bin/sh\ncase \" $* \" in *' push '*) echo push >> '{}';; esac\n", told.display()),
        );
        place.program("curl", "#!/bin/sh\necho git push\n");
        place
    }

    fn told(&self) -> PathBuf {
        self.0.join("told")
    }

    fn program(&self, name: &str, text: &str) {
        let file = self.0.join("bin").join(name);
        fs::write(&file, text).expect("a program is written");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("and can be run");
    }

    /// Does bash run `git push` for this line?
    fn pushes(&self, line: &str) -> bool {
        if self.told().exists() {
            fs::remove_file(self.told()).expect("what was told before goes");
        }
        let workspace = self.0.join("workspace");
        fs::create_dir_all(&workspace).expect("a folder to run in");
        let status = Command::new("timeout")
            .args(["10", "bash", "--norc", "-c"])
            // Substitutions that run beside the line are waited for, as long as they keep this open.
            .arg(format!("{line}\n"))
            .env_clear()
            .env("PATH", format!("{}:/usr/bin:/bin", self.0.join("bin").display()))
            .env("HOME", &workspace)
            .current_dir(&workspace)
            .stdin(Stdio::null())
            .output();
        assert!(status.is_ok(), "bash runs");
        let is_told = Path::new(&self.told()).exists();
        fs::remove_dir_all(&workspace).expect("the folder goes");
        is_told
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // Left behind it would only be rubbish.
        fs::remove_dir_all(&self.0).unwrap_or_default();
    }
}
