//! The prompt at a real terminal: a process that has one of its own, and somebody who types.

use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, Command, Stdio};

use model::{Conversation, Decision, Person};
use rustix::event::{PollFd, PollFlags};
use rustix::fs::{Mode, OFlags};
use rustix::pty::OpenptFlags;

use super::Prompt;
use super::tests::{Desk, parked, said, standing};

/// Somebody at a terminal, with a process that asks them.
struct Sitting {
    keyboard: std::fs::File,
    child: Child,
    seen: String,
}

impl Sitting {
    /// `before`: what was typed before there was a question.
    fn down(before: &str, variables: &[(&str, &str)]) -> Sitting {
        let keyboard = rustix::pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        rustix::pty::grantpt(&keyboard).expect("it is ours");
        rustix::pty::unlockpt(&keyboard).expect("it is ours");
        let name = rustix::pty::ptsname(&keyboard, Vec::new()).expect("it has a name");
        let open = || -> OwnedFd {
            rustix::fs::open(name.as_c_str(), OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).expect("the other side")
        };
        let mut keyboard = std::fs::File::from(keyboard);
        let terminal = open();
        keyboard.write_all(before.as_bytes()).expect("it takes keys");
        let child = Command::new("setsid")
            .args(["--ctty", "--wait"])
            .arg(std::env::current_exe().expect("we are a program"))
            .args(["--exact", "approve::terminal_tests::asks_at_its_terminal", "--ignored", "--nocapture"])
            .env_clear()
            .env("BELLJAR_TEST_TERMINAL", "1")
            .envs(variables.iter().copied())
            .stdin(terminal)
            .stdout(Stdio::piped())
            .stderr(open())
            .spawn()
            .expect("it starts");
        Sitting { keyboard, child, seen: String::new() }
    }

    /// Reads until this is on the screen, and forgets what was before it.
    fn sees(&mut self, text: &str) {
        let mut bytes = [0; 1024];
        while !self.seen.contains(text) {
            let length = self.keyboard.read(&mut bytes).unwrap_or(0);
            assert_ne!(length, 0, "never seen: {text:?} in {:?}", self.seen);
            self.seen += &String::from_utf8_lossy(&bytes[..length]);
        }
        self.seen = self.seen.split_off(self.seen.find(text).unwrap_or(0) + text.len());
    }

    fn types(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).expect("it takes keys");
    }

    /// What the process took for the answer.
    fn said(mut self) -> String {
        let mut output = String::new();
        let mut stdout = self.child.stdout.take().expect("a pipe");
        stdout.read_to_string(&mut output).expect("text");
        self.child.wait().expect("it ends");
        let said = output.lines().find_map(|line| line.split_once("said: "));
        said.map_or_else(|| format!("nothing was said: {output}"), |(_, said)| said.to_owned())
    }
}

/// Not a test: the process that asks.
#[test]
#[ignore = "started by other tests, with a terminal of its own"]
fn asks_at_its_terminal() {
    if std::env::var_os("BELLJAR_TEST_TERMINAL").is_none() {
        return;
    }
    let said = match std::env::var("BELLJAR_TEST_WORDS") {
        Ok(words) => {
            let (code, said) = said(Desk::default(), &words.split(' ').collect::<Vec<_>>());
            format!("{} {code}", said.map_or("nothing", Decision::name))
        }
        Err(_) => match Prompt.ask(&parked(), &[standing()]) {
            None => "nobody".to_owned(),
            Some(conversation) => wait(conversation).name().to_owned(),
        },
    };
    writeln!(std::io::stdout(), "said: {said}").expect("somebody reads");
}

fn wait(mut conversation: Box<dyn Conversation>) -> Decision {
    loop {
        let input = conversation.input();
        rustix::event::poll(&mut [PollFd::new(&input.as_fd(), PollFlags::IN)], None).expect("it can be waited for");
        if let Some(answer) = conversation.heard() {
            conversation.end(None);
            return answer.decision;
        }
    }
}

const CHOICES: &str = "[o]nce, [s]ession, [a]lways, [n]o? ";

#[test]
fn a_person_at_the_terminal_is_asked() {
    for (keys, said) in [("o\n", "once"), ("s\n", "session"), ("n\n", "deny"), ("yes\n", "deny"), ("\u{4}", "deny")] {
        let mut person = Sitting::down("", &[]);
        person.sees("git push --force origin main");
        person.sees("digest 0f5c8a11b2d4");
        person.sees(CHOICES);
        person.types(keys);
        assert_eq!(person.said(), said, "{keys:?}");
    }
}

#[test]
fn what_was_typed_before_the_question_is_no_answer() {
    let mut person = Sitting::down("o\no\no\no\n", &[]);
    person.sees(CHOICES);
    person.types("n\n");
    assert_eq!(person.said(), "deny");
}

#[test]
fn always_is_shown_and_confirmed_and_can_not_be_typed_in_one_go() {
    let mut person = Sitting::down("", &[]);
    person.sees(CHOICES);
    person.types("a\n");
    person.sees("77e01b2c");
    person.sees("[yes/no] ");
    person.types("yes\n");
    assert_eq!(person.said(), "always");
    let mut person = Sitting::down("", &[]);
    person.sees(CHOICES);
    person.types("a\nyes\n");
    person.sees("[yes/no] ");
    person.types("n\n");
    assert_eq!(person.said(), "deny");
}

#[test]
fn agents_and_what_is_inside_a_sandbox_are_not_asked() {
    for variable in ["CLAUDECODE", "CODEX_SANDBOX", "AI_AGENT", "BELLJAR"] {
        assert_eq!(Sitting::down("o\n", &[(variable, "1")]).said(), "nobody", "{variable}");
    }
}

#[test]
fn approve_shows_the_question_and_asks() {
    for (keys, answer) in [("o\n", "once 0"), ("s\n", "session 0"), ("x\n", "deny 0"), ("\u{4}", "deny 0")] {
        let mut person = Sitting::down("", &[("BELLJAR_TEST_WORDS", "3f2a")]);
        person.sees("git push --force origin main");
        person.sees("digest 0f5c8a11b2d4");
        person.sees(CHOICES);
        person.types(keys);
        assert_eq!(person.said(), answer, "{keys:?}");
    }
}

#[test]
fn approve_asks_again_for_what_was_said_on_the_command_line() {
    let mut person = Sitting::down("yes\nyes\n", &[("BELLJAR_TEST_WORDS", "last --always")]);
    person.sees("git push --force origin main");
    person.sees("77e01b2c");
    person.sees("[yes/no] ");
    person.types("yes\n");
    assert_eq!(person.said(), "always 0");
    let mut person = Sitting::down("yes\nyes\n", &[("BELLJAR_TEST_WORDS", "last --once")]);
    person.sees("say yes (once)? [yes/no] ");
    person.types("y\n");
    assert_eq!(person.said(), "deny 0");
}
