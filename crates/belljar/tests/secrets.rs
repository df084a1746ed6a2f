//! `belljar secret` as people use it: the real binary, as root and as an ordinary user, at a terminal and through pipes.
// What is skipped is said.
#![allow(clippy::print_stderr)]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use testkit::home;

const VALUE: &str = "fish-under-glass-9137";
const SPELLINGS: [&str; 3] = [VALUE, "ZmlzaC11bmRlci1nbGFzcy05MTM3", "666973682d756e6465722d676c6173732d39313337"];

/// A home of its own for each test, removed afterwards.
struct Desk {
    root: PathBuf,
    users: PathBuf,
    user: u32,
}

impl Desk {
    fn make(name: &str, user: u32) -> Desk {
        let root = std::env::temp_dir().join(format!("belljar-secret-{name}-{user}-{}", std::process::id()));
        std::fs::create_dir_all(root.join("home")).expect("a folder for the test");
        let users = home::furnish(&root.join("home"), user).expect("a list of users");
        if home::our_user() == 0 {
            std::os::unix::fs::chown(root.join("home"), Some(user), Some(user)).expect("we are root");
        }
        Desk { root, users, user }
    }

    fn command(&self, program: &str, words: &[&str]) -> Command {
        let mut command = home::command(&self.users, self.user, Path::new(program));
        command.args(words).current_dir("/").env_clear().env("PATH", "/usr/bin:/bin").env("HOME", "/nowhere");
        command
    }

    fn belljar(&self, words: &[&str]) -> Command {
        self.command(env!("CARGO_BIN_EXE_belljar"), words)
    }

    fn say(&self, words: &[&str], input: &[u8]) -> Output {
        let mut child = self
            .belljar(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut pipe = child.stdin.take().expect("a pipe");
        // Who refuses the words reads none of it.
        pipe.write_all(input).ok();
        drop(pipe);
        let output = child.wait_with_output().expect("it ends");
        for spelling in SPELLINGS {
            assert!(!text(&output).contains(spelling), "{}", text(&output));
        }
        output
    }

    /// The words, what is said, and the code, with what differs replaced.
    fn shown(&self, words: &[&str], input: &[u8]) -> String {
        let output = self.say(words, input);
        let said = text(&output).replace(&self.root.display().to_string(), "ROOT");
        format!(
            "$ belljar {}\n{said}[{}]\n",
            words.join(" ").replace(VALUE, "VALUE"),
            output.status.code().unwrap_or(-1)
        )
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.root).ok();
    }
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&[output.stdout.as_slice(), &output.stderr].concat()).into_owned()
}

/// Ourselves, and where we may be somebody else, an ordinary user too.
fn users() -> Vec<u32> {
    let list = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let ordinary = list.lines().find_map(|line| line.strip_prefix("belljar-test:")?.split(':').nth(1)?.parse().ok());
    match (home::our_user(), ordinary) {
        (0, Some(ordinary)) => vec![0, ordinary],
        (0, None) => {
            eprintln!("only as root: there is no user belljar-test");
            vec![0]
        }
        (user, _) => vec![user],
    }
}

#[test]
fn a_secret_is_set_listed_recorded_and_removed_and_its_value_is_nowhere() {
    for user in users() {
        let desk = Desk::make("whole", user);
        let set = ["secret", "set", "GITHUB_TOKEN", "--host", "api.github.com", "--prefix", "ghp_"];
        let output = desk.say(&set, format!("{VALUE}\n").as_bytes());
        assert!(output.status.success(), "as {user}: {}", text(&output));
        let list = text(&desk.say(&["secret", "ls"], b""));
        assert!(list.contains("GITHUB_TOKEN") && list.contains("api.github.com"), "{list}");
        let json = text(&desk.say(&["secret", "ls", "--json"], b""));
        let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        assert_eq!((&json[0]["source"], &json[0]["prefix"]), (&"store".into(), &"ghp_".into()));
        let secrets = desk.root.join("home/.local/state/belljar/secrets");
        assert!(secrets.join("GITHUB_TOKEN.secret").exists(), "it is in the home that the record names");
        let output = desk.say(&["secret", "rm", "GITHUB_TOKN"], b"");
        assert!(text(&output).contains("did you mean `GITHUB_TOKEN`?"), "{}", text(&output));
        let output = desk.say(&["secret", "rm", "GITHUB_TOKEN"], b"");
        assert!(output.status.success() && !secrets.join("GITHUB_TOKEN.secret").exists(), "{}", text(&output));
        let log = text(&desk.say(&["log", "--json"], b""));
        assert!(log.contains("secret.set") && log.contains("secret.removed"), "{log}");
        let mut folders = vec![desk.root.clone()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).expect("ours") {
                let path = entry.expect("a name").path();
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                let bytes = String::from_utf8_lossy(&std::fs::read(&path).expect("ours")).into_owned();
                assert!(SPELLINGS.iter().all(|spelling| !bytes.contains(spelling)), "{}", path.display());
            }
        }
    }
}

#[test]
fn what_is_wrong_is_said_with_its_fix() {
    let desk = Desk::make("wrong", home::our_user());
    let mut said = String::new();
    for (words, input) in [
        (&["secret", "set", "A"][..], &b""[..]),
        (&["secret", "set", "A"], b"two\nlines"),
        (&["secret", "set", "-A"], b"value"),
        (&["secret", "set", "a/b"], b"value"),
        (&["secret", "set", "A", VALUE], b"value"),
        (&["secret", "set", "A", "--source", "file:x"], b"value"),
        (&["secret", "set", "A", "--host", "https://a"], b"value"),
        (&["secret", "set", "A", "--ttl", "5m"], b"value"),
        (&["secret", "rm", "A"], b""),
        (&["secret", "ls"], b""),
    ] {
        said += &desk.shown(words, input);
    }
    insta::assert_snapshot!(said);
    assert!(!desk.root.join("home/.local/state/belljar/secrets").exists(), "nothing was kept");
}

#[test]
fn help_of_secrets_teaches() {
    let desk = Desk::make("help", home::our_user());
    let pages = [&["secret", "--help"][..], &["secret", "set", "--help"], &["secret", "ls", "--help"]];
    insta::assert_snapshot!(pages.map(|words| desk.shown(words, b"")).concat());
}

#[test]
fn an_agent_changes_no_secret() {
    let desk = Desk::make("agent", home::our_user());
    for words in [&["secret", "set", "A", "--source", "env:HOME", "--host", "a.test"][..], &["secret", "rm", "A"]] {
        for (marker, value) in [("CLAUDECODE", "1"), ("BELLJAR", "1")] {
            let output = desk.belljar(words).env(marker, value).stdin(Stdio::null()).output().expect("it starts");
            assert!(text(&output).contains("may not change secrets"), "{}", text(&output));
            assert!(!output.status.success());
        }
    }
}

/// Types at a terminal once it is asked to, and tells: what was shown, how it ended, whether the terminal is as it was,
/// and whether the value was in the words or variables of the process.
const TYPIST: &str = r#"
import os, pty, sys, termios
keys, words = sys.argv[1].encode().decode("unicode_escape").encode(), sys.argv[2:]
main, other = pty.openpty()
before = termios.tcgetattr(other)
pid = os.fork()
if pid == 0:
    os.setsid()
    os.close(main)
    import fcntl
    fcntl.ioctl(other, termios.TIOCSCTTY, 0)
    for fd in (0, 1, 2): os.dup2(other, fd)
    os.execv(words[0], words)
shown = b""
while b"(it is not shown): " not in shown: shown += os.read(main, 1000)
for what in ("cmdline", "environ"):
    held = open(f"/proc/{pid}/{what}", "rb").read()
    assert b"fish-under" not in held, what
limits = open(f"/proc/{pid}/limits").read()
assert [line.split()[4] for line in limits.splitlines() if line.startswith("Max core")] <= ["1"], limits
os.write(main, keys)
_, status = os.waitpid(pid, 0)
after = termios.tcgetattr(other)
os.set_blocking(main, False)
try:
    while True:
        part = os.read(main, 1000)
        if not part: break
        shown += part
except OSError: pass
print("code", os.waitstatus_to_exitcode(status))
print("terminal", "as it was" if after == before else "changed")
print(shown.decode())
"#;

#[test]
fn what_is_typed_is_not_shown_and_the_terminal_is_as_it_was() {
    for user in users() {
        let desk = Desk::make("typed", user);
        let typed = |keys: &str| {
            let belljar = env!("CARGO_BIN_EXE_belljar");
            let words = ["-c", TYPIST, keys, belljar, "secret", "set", "TOKEN"];
            let output = desk.command("/usr/bin/python3", &words).stdin(Stdio::null()).output().expect("it starts");
            text(&output)
        };
        let said = typed(&format!("wrong\\x15{VALUE}x\\x7f\\r"));
        assert!(said.contains("code 0\nterminal as it was") && said.contains("TOKEN is kept"), "as {user}: {said}");
        assert!(!said.contains("fish") && !said.contains("wrong"), "{said}");
        // Longer than a line that a terminal edits by itself.
        let long = typed(&format!("{}\\r", "a".repeat(6000)));
        assert!(long.contains("code 0\n") && !long.contains("aaaa"), "{long}");
        let file = desk.root.join("home/.local/state/belljar/secrets/TOKEN.secret");
        let kept = std::fs::read(&file).expect("it is there");
        assert!(kept.len() > 8000, "all of it was kept");
        let said = typed("fish-under\\x03");
        assert!(said.contains("code 125\nterminal as it was") && said.contains("no value was given"), "{said}");
        assert!(!said.contains("fish"), "{said}");
        assert_eq!(std::fs::read(&file).expect("it is there"), kept, "nothing was changed");
    }
}
