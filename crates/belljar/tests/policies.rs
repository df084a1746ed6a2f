//! What people see of policies: the words of the real binary to sound and to broken files.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use testkit::home;

/// A project and a home of its own for each test, removed afterwards.
struct Desk {
    root: PathBuf,
    /// Its user lives here: what counts of a user's settings is in the home that the list of users names.
    users: PathBuf,
}

impl Desk {
    fn make(name: &str) -> Desk {
        let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("policy-{name}-{}", std::process::id()));
        for folder in ["home/.config/belljar", "project/src"] {
            std::fs::create_dir_all(root.join(folder)).expect("a folder for the test");
        }
        let root = root.canonicalize().expect("it is there");
        let users = home::furnish(&root.join("home"), home::our_user()).expect("a list of users");
        Desk { root, users }
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.root.join(name), text).expect("a file");
    }

    fn policy(&self, text: &str) {
        self.write("home/.config/belljar/policy.toml", text);
    }

    /// The words, all that is said, and the exit code, with what differs from time to time replaced.
    fn say(&self, words: &[&str]) -> String {
        let user = home::our_user();
        let output = home::command(&self.users, user, Path::new(env!("CARGO_BIN_EXE_belljar")))
            .args(words)
            .current_dir(self.root.join("project"))
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", self.root.join("home"))
            .env("XDG_STATE_HOME", self.root.join("state"))
            .stdin(Stdio::null())
            .output()
            .expect("belljar starts");
        let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        let text = text.replace(&self.root.display().to_string(), "ROOT");
        // A revision is of all texts and where they lie.
        let steady = |line: &str| match line.strip_prefix("revision ") {
            Some(_) => "revision REVISION".to_owned(),
            None => line.to_owned(),
        };
        let lines: Vec<String> = text.lines().map(steady).collect();
        format!("$ belljar {}\n{}\n[{}]\n", words.join(" "), lines.join("\n"), output.status.code().unwrap_or(-1))
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.root).expect("nothing holds it");
    }
}

const OWN: &str = r#"version = 1
extends = ["open"]

[defaults]
write = "ask"

[files]
workspaces = ["/"]
protect = ["deploy"]

[network]
allow = ["example.org"]
deny = ["*.example.net"]

[code]
languages = ["python"]
largest = "1K"

[[agent]]
name = "claude-*"
actions = ["exec", "code"]
rate = "60/m"
concurrent = 4

[[rule]]
id = "migrate"
when = { program = "make", args = ["migrate"] }
then = "ask"
why = "changes the shared database"
matches = ["make migrate"]
passes = ["make test"]

[[rule]]
id = "no-force"
when = { program = "git", subcommand = "push", args = ["--force|-f"] }
then = "deny"
why = "rewrites what others have; `--force-with-lease` is usually enough"
matches = ["git push --force origin main"]
passes = ["git push origin main"]
"#;

#[test]
fn a_verdict_says_which_rule_where_and_why() {
    let desk = Desk::make("check");
    desk.policy(OWN);
    desk.write("project/a.py", "print(1)\n");
    desk.write("project/b", "#!/usr/bin/env node\n1\n");
    desk.write("project/c.py", &"#\n".repeat(1000));
    let said: String = [
        vec!["check", "make test"],
        vec!["check", "cd db && make migrate"],
        vec!["check", "git push --force && make migrate"],
        vec!["check", "--", "git", "push", "-f"],
        vec!["check", "$TOOL build"],
        vec!["check", "echo ("],
        vec!["check", "ls \u{1b}[2J\u{202e}x"],
        vec!["check", "--agent", "claude-code", "--host", "example.org"],
        vec!["check", "--host", "example.org"],
        vec!["check", "--host", "a.example.net"],
        vec!["check", "--host", "elsewhere.test:80"],
        vec!["check", "--path", "src/x", "--op", "write"],
        vec!["check", "--path", "src/x", "--op", "read"],
        vec!["check", "--path", "src/x", "--op", "commit"],
        vec!["check", "--code", "a.py"],
        vec!["check", "--code", "b"],
        vec!["check", "--code", "c.py"],
        vec!["check", "--code", "nowhere.py"],
        vec!["check", "--host", ":"],
        vec!["check"],
        vec!["check", "--op", "read"],
    ]
    .iter()
    .map(|words| desk.say(words) + "\n")
    .collect();
    insta::assert_snapshot!(said);
}

#[test]
fn what_is_in_force_is_shown_with_its_places() {
    let desk = Desk::make("show");
    let nothing = desk.say(&["policy", "show"]);
    desk.policy(OWN);
    desk.write("project/belljar.toml", "version = 1\n[limits]\nmemory = \"1G\"\n[environment]\npass = [\"TOKEN\"]\n");
    let untrusted = desk.say(&["policy", "show"]);
    let trust = desk.say(&["policy", "trust"]);
    let trusted = desk.say(&["policy", "show"]);
    let untrust = desk.say(&["policy", "untrust"]) + &desk.say(&["policy", "untrust"]);
    insta::assert_snapshot!([nothing, untrusted, trust, trusted, untrust].join("\n"));
}

#[test]
fn another_policy_is_compared_and_tried_on_the_past() {
    let desk = Desk::make("test");
    desk.policy("version = 1\n");
    desk.write("project/other.toml", OWN);
    desk.write(
        "project/past.jsonl",
        concat!(
            r#"{"principal":{"user":"ann","agent":"codex"},"action":"exec","resource":{"command":["make","migrate"]}}"#,
            "\n",
            r#"{"principal":{"user":"ann"},"action":"exec","resource":{"shell":"git push -f"},"context":{"workspaces":null}}"#,
            "\n",
            r#"{"principal":{"user":"ann"},"action":"connect","resource":{"host":{"name":"example.org","port":443}}}"#,
            "\n",
            r#"{"principal":{"user":"ann"},"action":"exec","resource":{"shell":"ls"}}"#,
            "\n",
        ),
    );
    desk.write("project/bad.jsonl", "{}\n");
    let said: String = [
        vec!["policy", "diff", "other.toml"],
        vec!["policy", "diff", "nowhere.toml"],
        vec!["policy", "test", "other.toml", "--envelopes", "past.jsonl"],
        vec!["policy", "test", "other.toml", "--envelopes", "bad.jsonl"],
        vec!["policy", "test", "other.toml"],
        vec!["run", "-q", "--", "make", "migrate"],
        vec!["policy", "schema", "rego"],
    ]
    .iter()
    .map(|words| desk.say(words) + "\n")
    .collect();
    insta::assert_snapshot!(said);
}

#[test]
fn every_mistake_is_told_with_its_line() {
    let desk = Desk::make("lint");
    let rule = "then = \"deny\"\nwhy = \"no\"\n";
    let texts = [
        "extends = []\n".to_owned(),
        "version = 7\n".to_owned(),
        "version = 1\nversion = 1\n".to_owned(),
        "version = 1\n[limit]\n".to_owned(),
        "version = 1\n[limits]\nmemry = \"1G\"\n".to_owned(),
        "version = 1\n[limits]\nmemory = \"1X\"\n".to_owned(),
        "version = 1\n[limits]\npids = 0\n".to_owned(),
        "version = 1\nextends = [\"pyton\"]\n".to_owned(),
        "version = 1\nextends = [\"balanced\"]\ndisable = [\"git.psh\"]\n".to_owned(),
        "version = 1\n[defaults]\nexec = \"maybe\"\n".to_owned(),
        "version = 1\n[files]\nread = [\"../x\"]\n".to_owned(),
        "version = 1\n[files]\nhide = [\"**/*.key\"]\n".to_owned(),
        "version = 1\n[files]\nworkspaces = [\"src\"]\n".to_owned(),
        "version = 1\n[files]\nread = [\"~bob/x\"]\n".to_owned(),
        "version = 1\n[environment]\npass = [\"A B\"]\n".to_owned(),
        "version = 1\n[network]\nallow = [\"http://example.org\"]\n".to_owned(),
        "version = 1\n[network]\nallow = [\"example.org:99999\"]\n".to_owned(),
        "version = 1\n[code]\nlanguages = [\"pyhton\"]\n".to_owned(),
        "version = 1\n[isolation]\nminimum = \"docker\"\n".to_owned(),
        "version = 1\n[isolation]\naccept_gaps = [\"landlok\"]\n".to_owned(),
        "version = 1\n[[agent]]\nname = \"a\"\nrate = \"often\"\n".to_owned(),
        "version = 1\n[[agent]]\nname = \"a\"\nconcurrent = 0\n".to_owned(),
        "version = 1\n[[agent]]\nname = \"a\"\nactions = [\"exe\"]\n".to_owned(),
        format!("version = 1\n[[rule]]\nwhen = {{}}\n{rule}"),
        format!("version = 1\n[[rule]]\nwhen = {{ program = \"/bin/sh\" }}\n{rule}"),
        format!("version = 1\n[[rule]]\nwhen = {{ program = \"a\", host = \"b\" }}\n{rule}"),
        format!("version = 1\n[[rule]]\nid = \"a b\"\nwhen = {{ program = \"a\" }}\n{rule}"),
        "version = 1\n[[rule]]\nwhen = { program = \"a\" }\nthen = \"deny\"\nwhy = \"\"\n".to_owned(),
        "version = 1\n[[rule]]\nwhen = { program = \"a\" }\nthen = \"forbid\"\nwhy = \"x\"\n".to_owned(),
        format!("version = 1\n[[rule]]\nwhen = {{ program = \"a\" }}\n{rule}matches = [\"b\"]\n"),
        format!("version = 1\n[[rule]]\nwhen = {{ program = \"a\" }}\n{rule}passes = [\"x | a\"]\n"),
        format!(
            "version = 1\n[[rule]]\nwhen = {{ program = \"a\" }}\n{rule}[[rule]]\nid = \"rule.1\"\nwhen = {{ program = \"b\" }}\n{rule}"
        ),
        "version = 1\n[[rule]]\nwhen = { program = \"a\" }\nthen = \"allow\"\nwhy = \"x\"\n".to_owned(),
        "version = 1\n".to_owned(),
    ];
    let said: String = texts
        .iter()
        .map(|text| {
            desk.write("project/policy.toml", text);
            format!("{text}{}\n", desk.say(&["policy", "lint", "policy.toml"]))
        })
        .collect();
    insta::assert_snapshot!(said);
}

#[test]
fn help_teaches() {
    let desk = Desk::make("help");
    let words = [
        vec!["check", "--help"],
        vec!["policy", "--help"],
        vec!["policy", "test", "--help"],
        vec!["policy", "trust", "--help"],
    ];
    insta::assert_snapshot!(words.iter().map(|words| desk.say(words) + "\n").collect::<String>());
}

#[cfg(feature = "cedar")]
#[test]
fn rules_in_cedar_are_heard_as_well() {
    let desk = Desk::make("cedar");
    desk.write(
        "home/.config/belljar/org.cedar",
        "@id(\"no-make\") @why(\"use just\")\nforbid(principal, action == Action::\"exec\", resource)\n\
         when { resource.program == \"make\" };\n",
    );
    let heard = desk.say(&["check", "cd src && make all"]) + &desk.say(&["check", "ls"]);
    let shown = desk.say(&["policy", "show"]);
    desk.write("home/.config/belljar/org.cedar", "forbid(principal, action == Action::\"exek\", resource);\n");
    let broken = desk.say(&["check", "ls"]) + &desk.say(&["run", "--", "true"]) + &desk.say(&["policy", "lint"]);
    insta::assert_snapshot!([heard, shown, broken].join("\n"));
}
