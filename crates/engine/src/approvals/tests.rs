//! Questions and answers with real files, processes and users.

mod forged;
mod kept;
mod processes;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use model::{
    Action, Answer, Approval, Approvals as _, Conversation, Decision, Given, Parked, Person, Principal, Question,
    Reason, Refusal, Retry, Ruling, Standing, Watch,
};
use serde_json::{Value, json};

use super::{Approvals, Terms};

/// Folders of one test, removed afterwards.
struct Desk {
    root: PathBuf,
    approvals: Approvals,
}

impl Desk {
    fn new() -> Desk {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        Desk::at(std::env::temp_dir().join(format!("belljar-approvals-{}-{number}", std::process::id())))
    }

    fn at(root: PathBuf) -> Desk {
        let mut approvals = Approvals::at(root.join("state"), root.join("settings"), Vec::new());
        // As if we led our session: whatever started the tests may have ended.
        approvals.session = super::session::led_by(std::process::id().into());
        Desk { root, approvals }
    }

    fn folder(&self) -> PathBuf {
        self.root.join("state/approvals")
    }

    /// As root would, for a group of root's.
    fn make_spool(&self) {
        use std::os::unix::fs::PermissionsExt;
        let spool = self.root.join("state/spool");
        std::fs::create_dir_all(&spool).expect("a folder");
        std::fs::set_permissions(&spool, std::fs::Permissions::from_mode(0o3773)).expect("it is ours");
    }

    /// Where our own questions are in it.
    fn spooled(&self) -> PathBuf {
        self.root.join(format!("state/spool/{}", super::users::us()))
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder().join(name)
    }

    /// Asks in a thread; `then` goes on when the question is parked, and gets its id and what is told.
    fn asked<T>(
        &self,
        question: &Question,
        terms: &Terms,
        then: impl FnOnce(&str, &Receiver<String>) -> T,
    ) -> (Result<Approval, Refusal>, T) {
        std::thread::scope(|scope| {
            let (told, said) = channel();
            let asking = scope.spawn(move || self.approvals.ask(question, terms, None, &Told(told)));
            let first = said.recv().expect("it is told where to answer");
            let id = first.rsplit(' ').next().expect("words").trim_end_matches('`').to_owned();
            let then = then(&id, &said);
            (asking.join().expect("no panic"), then)
        })
    }

    fn find(&self, id: &str) -> Parked {
        self.approvals.find(id, None).expect("the folder can be read").expect("somebody waits")
    }

    fn answer(&self, id: &str, decision: Decision) -> Given {
        let answer = Answer { decision, reason: String::new() };
        self.approvals.answer(&self.find(id), &answer).expect("it can be answered")
    }

    fn left(&self) -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(self.folder())
            .expect("the folder is there")
            .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
            .filter(|name| name != "session")
            .collect();
        names.sort();
        names
    }

    /// What `belljar approve` would write.
    fn forged(&self, id: &str) -> Value {
        self.forged_in(&self.folder(), id)
    }

    fn forged_in(&self, folder: &Path, id: &str) -> Value {
        let text = std::fs::read(folder.join(format!("{id}.question"))).expect("it is parked");
        let question: Value = serde_json::from_slice(&text).expect("JSON");
        json!({
            "version": 1, "id": id, "nonce": question["nonce"], "digest": self.find(id).digest,
            "session": question["session"], "decision": "once", "reason": "",
        })
    }

    /// Puts a file where an answer is looked for, whole at once.
    fn put(&self, id: &str, bytes: &[u8]) {
        let beside = self.root.join(format!("beside-{id}"));
        std::fs::write(&beside, bytes).expect("a file");
        std::fs::rename(beside, self.file(&format!("{id}.answer"))).expect("it gets its name");
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        if self.root.exists() {
            std::fs::remove_dir_all(&self.root).expect("nothing holds it");
        }
    }
}

struct Told(Sender<String>);

impl Watch for Told {
    fn progress(&self, _: &str, _: u64, _: u64) {}
    fn warn(&self, text: &str) {
        self.0.send(text.to_owned()).expect("the test listens");
    }
}

fn reason(rule: &str, about: &str) -> Reason {
    Reason {
        ruling: Ruling::Ask,
        rule: rule.to_owned(),
        place: "belljar.toml:12".to_owned(),
        why: "rewrites what others have".to_owned(),
        action: Action::Exec,
        about: about.to_owned(),
        grant: "allow it".to_owned(),
    }
}

fn question() -> Question {
    Question {
        principal: Principal { user: "ann".to_owned(), agent: Some("codex".to_owned()) },
        shown: vec![
            ("command".to_owned(), "git push --force".to_owned()),
            ("workspace".to_owned(), "/home/ann/project".to_owned()),
        ],
        reasons: vec![reason("git.force", "git push --force")],
        findings: Vec::new(),
        revision: "aa".repeat(32),
        digest: "bb".repeat(32),
    }
}

fn terms() -> Terms {
    Terms { timeout: Duration::from_secs(60), approvers: Vec::new(), always: true }
}

fn soon() -> Terms {
    Terms { timeout: Duration::from_millis(50), ..terms() }
}

fn is_root() -> bool {
    super::users::us() == 0
}

/// Somebody who is not us: the user of the tests where there is one.
fn another_user() -> u32 {
    super::users::Users::read().expect("a list").named("belljar-test").map_or(65534, |user| user.id)
}

#[test]
fn a_yes_is_an_approval_of_what_was_asked_and_leaves_nothing() {
    let desk = Desk::new();
    let (asked, given) = desk.asked(&question(), &terms(), |id, _| desk.answer(id, Decision::Once));
    assert_eq!(given, Given::Taken);
    let approval = asked.expect("a yes");
    assert_eq!(approval.digest, question().digest);
    assert_eq!(desk.left(), [] as [&str; 0]);
}

#[test]
fn a_yes_holds_once() {
    let desk = Desk::new();
    desk.asked(&question(), &terms(), |id, _| desk.answer(id, Decision::Once)).0.expect("a yes");
    let (tell, _told) = channel();
    desk.approvals.ask(&question(), &soon(), None, &Told(tell)).expect_err("nobody answers again");
}

#[test]
fn silence_is_denial() {
    let desk = Desk::new();
    let begun = Instant::now();
    let (tell, _told) = channel();
    let refusal = desk.approvals.ask(&question(), &soon(), None, &Told(tell)).expect_err("nobody answers");
    assert!(begun.elapsed() >= soon().timeout);
    assert!(refusal.unanswered);
    assert_eq!(refusal.rule, "git.force");
    assert_eq!(refusal.message, "nobody answered within 50 ms");
    assert_eq!(refusal.denied.len(), 1);
    assert_eq!(refusal.denied[0].retry, Retry::AfterApproval);
    assert_eq!(desk.left(), [] as [&str; 0]);
}

#[test]
fn a_no_says_who_said_it_and_why() {
    let desk = Desk::new();
    let (asked, _) = desk.asked(&question(), &terms(), |id, _| {
        let reason = "don't \u{1b}[2J\u{202e}do".to_owned();
        desk.approvals.answer(&desk.find(id), &Answer { decision: Decision::Deny, reason })
    });
    let refusal = asked.expect_err("a no");
    assert!(refusal.unanswered);
    assert!(refusal.message.ends_with("said no: don't \\u{1b}[2J\\u{202e}do"), "{}", refusal.message);
    assert_eq!(refusal.denied[0].retry, Retry::No);
}

#[test]
fn what_can_not_be_a_question_is_refused_at_once() {
    let desk = Desk::new();
    let refused = |question: Question| {
        let (tell, told) = channel();
        desk.approvals.ask(&question, &terms(), None, &Told(tell)).expect_err("it is no question");
        assert!(told.recv().is_err(), "somebody was asked");
    };
    refused(Question { reasons: Vec::new(), ..question() });
    refused(Question { reasons: vec![Reason { ruling: Ruling::Deny, ..reason("a", "b") }], ..question() });
    refused(Question { shown: vec![("code".to_owned(), "x".repeat(20_001))], ..question() });
    refused(Question { shown: vec![("code".to_owned(), "x".repeat(15_000)); 7], ..question() });
}

#[test]
fn whoever_is_nobody_here_is_not_waited_for() {
    let desk = Desk::new();
    let (tell, told) = channel();
    let terms = Terms { approvers: vec!["no-such-user".to_owned()], ..terms() };
    let refusal = desk.approvals.ask(&question(), &terms, None, &Told(tell)).expect_err("nobody can answer");
    assert!(refusal.message.contains("no-such-user"), "{}", refusal.message);
    assert!(told.recv().is_err(), "somebody was asked");
}

/// Says these things, one by one, whenever it is given a line.
struct Sitting {
    says: Vec<Decision>,
}

struct Said {
    input: std::io::PipeReader,
    says: Vec<Decision>,
}

impl Person for Sitting {
    fn ask(&self, _: &Parked, _: &[Standing]) -> Option<Box<dyn Conversation>> {
        let (input, mut output) = std::io::pipe().expect("a pipe");
        std::io::Write::write_all(&mut output, b"x").expect("there is room");
        Some(Box::new(Said { input, says: self.says.clone() }))
    }
}

impl Conversation for Said {
    fn input(&self) -> std::os::fd::BorrowedFd<'_> {
        std::os::fd::AsFd::as_fd(&self.input)
    }
    fn heard(&mut self) -> Option<Answer> {
        self.says.pop().map(|decision| Answer { decision, reason: String::new() })
    }
    fn end(self: Box<Self>, said: Option<&str>) {
        assert_eq!(said, None, "it was this person's answer");
    }
}

#[test]
fn a_person_who_sits_here_is_asked_here() {
    let desk = Desk::new();
    let ask = |says: Decision| {
        let (tell, _told) = channel();
        desk.approvals.ask(&question(), &terms(), Some(&Sitting { says: vec![says] }), &Told(tell))
    };
    ask(Decision::Deny).expect_err("a no");
    ask(Decision::Once).expect("a yes");
    assert_eq!(desk.left(), [] as [&str; 0]);
    let nobody = || {
        let (tell, _told) = channel();
        desk.approvals.ask(&question(), &soon(), None, &Told(tell))
    };
    nobody().expect_err("it was for once");
    ask(Decision::Session).expect("a yes");
    assert_eq!(desk.left(), [] as [&str; 0]);
    nobody().expect("it holds for the session");
    std::fs::remove_dir_all(desk.file("session")).expect("it is ours");
    nobody().expect_err("it was forgotten");
    ask(Decision::Always).expect("a yes");
    nobody().expect("it stands");
}

/// Needs root, to have another user.
#[test]
fn a_person_who_may_not_answer_is_not_asked() {
    if !is_root() {
        return;
    }
    let desk = Desk::new();
    let name = super::users::Users::read().expect("a list").name(another_user());
    let theirs = Terms { approvers: vec![name], ..soon() };
    let (tell, _told) = channel();
    let person = Sitting { says: vec![Decision::Once] };
    desk.approvals.ask(&question(), &theirs, Some(&person), &Told(tell)).expect_err("their yes is none");
}

#[test]
fn a_question_is_found_by_its_start_and_the_newest_as_last() {
    let desk = Desk::new();
    assert_eq!(desk.approvals.find("last", None).expect("there is no folder yet"), None);
    let (asked, _) = desk.asked(&question(), &terms(), |id, _| {
        assert_eq!(desk.find(&id[..3]).id, id);
        assert_eq!(desk.find("last").id, id);
        assert_eq!(desk.approvals.find("", None).expect("it can be read"), None);
        assert_eq!(desk.approvals.find("x", None).expect("it can be read"), None);
        let parked = desk.find(id);
        assert_eq!(parked.question, question());
        assert!(parked.until > parked.asked);
        desk.answer(id, Decision::Deny)
    });
    asked.expect_err("a no");
}
