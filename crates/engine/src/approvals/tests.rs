//! Questions and answers with real files, processes and users; and what somebody would try who wants a yes.

use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
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
        let approvals = Approvals::at(root.join("state"), root.join("settings"), Vec::new());
        Desk { root, approvals }
    }

    fn folder(&self) -> PathBuf {
        self.root.join("state/approvals")
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
        let text = std::fs::read(self.file(&format!("{id}.question"))).expect("it is parked");
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

#[test]
fn answers_that_are_not_to_be_believed_are_removed_and_told_and_end_nothing() {
    let desk = Desk::new();
    type Change = fn(&mut Value);
    let cases: &[(&str, Change)] = &[
        ("answers another question", |answer| answer["id"] = json!("00000000")),
        ("answers another question", |answer| answer["nonce"] = json!("0".repeat(32))),
        ("answers something else", |answer| answer["digest"] = json!("0".repeat(64))),
        ("of another session", |answer| answer["session"] = json!("1-2-3")),
        ("version 2", |answer| answer["version"] = json!(2)),
        ("unknown field", |answer| answer["more"] = json!(true)),
        ("unknown variant", |answer| answer["decision"] = json!("yes")),
        ("more than 1000 characters", |answer| answer["reason"] = json!("x".repeat(1001))),
        ("more than 16384 bytes", |answer| answer["reason"] = json!("x".repeat(20_000))),
    ];
    for (why, change) in cases {
        let (asked, _) = desk.asked(&question(), &terms(), |id, said| {
            let mut answer = desk.forged(id);
            change(&mut answer);
            desk.put(id, answer.to_string().as_bytes());
            let told = said.recv().expect("it is told");
            assert!(told.contains("does not count and was removed") && told.contains(why), "{why}: {told}");
            assert_eq!(desk.answer(id, Decision::Once), Given::Taken);
        });
        asked.expect("the real answer counts");
    }
}

#[test]
fn bytes_that_are_no_answer_are_removed() {
    let desk = Desk::new();
    let (asked, _) = desk.asked(&question(), &terms(), |id, said| {
        for bytes in [&b""[..], b"yes\n", b"\xff\xfe", b"[[[[[[[["] {
            desk.put(id, bytes);
            assert!(said.recv().expect("it is told").contains("was removed"));
        }
        desk.answer(id, Decision::Once)
    });
    asked.expect("the real answer counts");
}

#[test]
fn links_pipes_and_folders_are_no_answers() {
    let desk = Desk::new();
    let real = desk.root.join("real");
    let (asked, _) = desk.asked(&question(), &terms(), |id, said| {
        let name = desk.file(&format!("{id}.answer"));
        let told = |why: &str| {
            let told = said.recv().expect("it is told");
            assert!(told.contains(why), "{why}: {told}");
        };
        std::fs::write(&real, desk.forged(id).to_string()).expect("a file");
        std::os::unix::fs::symlink(&real, &name).expect("a link");
        told("it is a link");
        std::fs::hard_link(&real, &name).expect("a second name");
        told("it has 2 names");
        rustix::fs::mknodat(rustix::fs::CWD, &name, rustix::fs::FileType::Fifo, 0o600.into(), 0).expect("a pipe");
        told("it is no plain file");
        std::fs::create_dir(&name).expect("a folder");
        told("it is no plain file");
        desk.answer(id, Decision::Once)
    });
    asked.expect("the real answer counts");
    assert!(real.exists(), "what a link led to was removed");
}

#[test]
fn a_file_that_others_may_write_to_is_no_answer() {
    use std::os::unix::fs::PermissionsExt;
    let desk = Desk::new();
    let (asked, _) = desk.asked(&question(), &terms(), |id, said| {
        let beside = desk.root.join("beside");
        std::fs::write(&beside, desk.forged(id).to_string()).expect("a file");
        std::fs::set_permissions(&beside, std::fs::Permissions::from_mode(0o666)).expect("it is ours");
        std::fs::rename(&beside, desk.file(&format!("{id}.answer"))).expect("it gets its name");
        assert!(said.recv().expect("it is told").contains("others may write to it"));
        desk.answer(id, Decision::Deny)
    });
    asked.expect_err("a no");
}

/// Needs root, to make files of others.
#[test]
fn the_owner_of_the_file_says_who_answered() {
    if !is_root() {
        return;
    }
    let desk = Desk::new();
    let give = |id: &str, owner: u32| {
        let beside = desk.root.join("beside");
        std::fs::write(&beside, desk.forged(id).to_string()).expect("a file");
        std::os::unix::fs::chown(&beside, Some(owner), None).expect("we are root");
        std::fs::rename(&beside, desk.file(&format!("{id}.answer"))).expect("it gets its name");
    };
    // Somebody who is not named, however right their answer is.
    let (asked, _) = desk.asked(&question(), &terms(), |id, said| {
        give(id, another_user());
        assert!(said.recv().expect("it is told").contains("who may not answer"));
        desk.answer(id, Decision::Once)
    });
    asked.expect("root may");
    // Who is named may, and not even root in their place.
    let name = super::users::Users::read().expect("a list").name(another_user());
    let theirs = Terms { approvers: vec![name.clone()], ..terms() };
    let (asked, _) = desk.asked(&question(), &theirs, |id, said| {
        give(id, 0);
        assert!(said.recv().expect("it is told").contains("it is of user 0, who may not answer"));
        let parked = desk.find(id);
        let answer = Answer { decision: Decision::Once, reason: String::new() };
        let trouble = desk.approvals.answer(&parked, &answer).expect_err("root is told early");
        assert!(trouble.message.contains(&format!("{name} may")), "{trouble}");
        give(id, another_user());
    });
    assert_eq!(asked.expect("they said yes").by, name);
}

#[test]
fn an_answer_can_not_be_used_again() {
    let desk = Desk::new();
    let (asked, answer) = desk.asked(&question(), &terms(), |id, _| {
        let answer = desk.forged(id);
        desk.put(id, answer.to_string().as_bytes());
        answer
    });
    asked.expect("the first time it counts");
    let (asked, _) = desk.asked(&question(), &terms(), |id, said| {
        desk.put(id, answer.to_string().as_bytes());
        assert!(said.recv().expect("it is told").contains("answers another question"));
        // With the new id, but the number of the question before.
        let mut answer = answer.clone();
        answer["id"] = json!(id);
        desk.put(id, answer.to_string().as_bytes());
        assert!(said.recv().expect("it is told").contains("answers another question"));
        desk.answer(id, Decision::Deny)
    });
    asked.expect_err("a no");
}

#[test]
fn an_answer_is_to_what_was_shown_and_not_to_what_is_asked_behind_it() {
    let desk = Desk::new();
    let (asked, _) = desk.asked(&question(), &terms(), |id, said| {
        // Somebody shows the person something harmless, in the place of what is asked.
        let name = format!("{id}.question");
        let text = std::fs::read_to_string(desk.file(&name)).expect("it is parked");
        let shown = text.replace("git push --force", "git status");
        std::fs::write(desk.file(&name), &shown).expect("the same file, and the same lock");
        let parked = desk.find(id);
        assert_eq!(parked.question.shown[0].1, "git status");
        let answer = Answer { decision: Decision::Once, reason: String::new() };
        assert_eq!(desk.approvals.answer(&parked, &answer).expect("it is written"), Given::NotAccepted);
        assert!(said.recv().expect("it is told").contains("something else than what was asked"));
        // What was shown stays what is answered, when the real question is back.
        std::fs::write(desk.file(&name), &text).expect("the same file");
        assert_eq!(desk.approvals.answer(&parked, &answer).expect("it is written"), Given::NotAccepted);
        assert!(said.recv().expect("it is told").contains("something else than what was asked"));
        desk.answer(id, Decision::Deny)
    });
    asked.expect_err("a no");
}

#[test]
fn a_yes_to_one_is_no_yes_to_another_that_asks_the_same() {
    let desk = Desk::new();
    let (outer, inner) = desk.asked(&question(), &terms(), |first, _| {
        let (inner, _) = desk.asked(&question(), &terms(), |second, _| {
            assert_ne!(first, second);
            assert_eq!(desk.approvals.parked(None).expect("both wait").len(), 2);
            assert_eq!(desk.answer(second, Decision::Once), Given::Taken);
        });
        // The first still waits.
        assert_eq!(desk.answer(first, Decision::Deny), Given::Taken);
        inner
    });
    inner.expect("a yes to this one");
    outer.expect_err("a no to this one");
}

#[test]
fn of_two_who_answer_at_once_one_wins() {
    for _ in 0..20 {
        let desk = Desk::new();
        let (asked, given) = desk.asked(&question(), &terms(), |id, _| {
            let parked = desk.find(id);
            let start = std::sync::Barrier::new(2);
            std::thread::scope(|scope| {
                let give = |decision| {
                    let (desk, parked, start) = (&desk, &parked, &start);
                    scope.spawn(move || {
                        start.wait();
                        desk.approvals.answer(parked, &Answer { decision, reason: String::new() })
                    })
                };
                let (yes, no) = (give(Decision::Once), give(Decision::Deny));
                let given = |thread: std::thread::ScopedJoinHandle<'_, _>| -> Result<Given, model::Trouble> {
                    thread.join().expect("no panic")
                };
                (given(yes).expect("it is answered"), given(no).expect("it is answered"))
            })
        });
        match given {
            (Given::Taken, Given::TooLate) => drop(asked.expect("yes was first")),
            (Given::TooLate, Given::Taken) => drop(asked.expect_err("no was first")),
            other => assert_eq!(other, (Given::Taken, Given::TooLate), "not exactly one won: {asked:?}"),
        }
        assert_eq!(desk.left(), [] as [&str; 0]);
    }
}

#[test]
fn agents_and_what_is_inside_a_sandbox_do_not_answer() {
    let desk = Desk::new();
    let (asked, _) = desk.asked(&question(), &terms(), |id, _| {
        let parked = desk.find(id);
        for name in ["BELLJAR", "CLAUDECODE", "CODEX_SANDBOX", "GEMINI_CLI", "CURSOR_AGENT", "AI_AGENT"] {
            let environment = vec![(name.into(), "1".into())];
            let agent = Approvals::at(desk.root.join("state"), desk.root.join("settings"), environment);
            let answer = Answer { decision: Decision::Once, reason: String::new() };
            let trouble = agent.answer(&parked, &answer).expect_err("it may not");
            assert!(trouble.message.ends_with("may not answer questions"), "{name}: {trouble}");
        }
        desk.answer(id, Decision::Deny)
    });
    asked.expect_err("a no");
}

#[test]
fn an_answer_for_the_session_holds_for_the_same_question_and_no_other() {
    let desk = Desk::new();
    let (asked, _) = desk.asked(&question(), &terms(), |id, _| desk.answer(id, Decision::Session));
    asked.expect("a yes");
    assert_eq!(desk.left(), [] as [&str; 0]);
    let again = |question: &Question| {
        let (tell, _told) = channel();
        desk.approvals.ask(question, &soon(), None, &Told(tell))
    };
    again(&question()).expect("it holds");
    again(&question()).expect("it holds still");
    again(&Question { revision: "cc".repeat(32), ..question() }).expect_err("another policy asks again");
    let other = vec![("command".to_owned(), "git push --force -u x".to_owned())];
    again(&Question { shown: other, ..question() }).expect_err("another command asks again");
    let another = Principal { user: "ann".to_owned(), agent: None };
    again(&Question { principal: another, ..question() }).expect_err("another who asks is asked about");
}

#[test]
fn an_answer_for_the_session_that_nobody_gave_does_not_hold() {
    let desk = Desk::new();
    // A yes for once, put where answers for the session are.
    let (_, mut answer) = desk.asked(&question(), &terms(), |id, _| {
        let answer = desk.forged(id);
        desk.answer(id, Decision::Once);
        answer
    });
    let session = super::session::current().expect("tests have a session");
    let digest = super::question::digest(&question());
    let name = desk.file("session").join(super::session::name(&session, &digest));
    let again = |question: &Question| {
        let (tell, _told) = channel();
        desk.approvals.ask(question, &soon(), None, &Told(tell))
    };
    std::fs::write(&name, answer.to_string()).expect("a file");
    again(&question()).expect_err("it was for once");
    // One for another question, or of another session, under the name of this.
    answer["decision"] = json!("session");
    for (field, value) in [("digest", json!("0".repeat(64))), ("session", json!("1-2-3"))] {
        let mut answer = answer.clone();
        answer[field] = value;
        std::fs::write(&name, answer.to_string()).expect("a file");
        again(&question()).expect_err("it is of another");
    }
    if is_root() {
        std::fs::write(&name, answer.to_string()).expect("a file");
        std::os::unix::fs::chown(&name, Some(another_user()), None).expect("we are root");
        again(&question()).expect_err("it is of somebody who may not answer");
    }
}

#[test]
fn answers_of_sessions_that_have_ended_are_removed() {
    let desk = Desk::new();
    let (asked, _) = desk.asked(&question(), &terms(), |id, _| desk.answer(id, Decision::Session));
    asked.expect("a yes");
    let folder = desk.file("session");
    std::fs::write(folder.join(format!("1-1-{}.{}", "0".repeat(32), "0".repeat(64))), "").expect("a file");
    let (tell, _told) = channel();
    desk.approvals.ask(&question(), &soon(), None, &Told(tell)).expect("ours goes on");
    assert_eq!(std::fs::read_dir(&folder).expect("it is there").count(), 1);
}

#[test]
fn a_standing_answer_holds_for_exactly_what_it_says() {
    let desk = Desk::new();
    let (asked, _) = desk.asked(&question(), &terms(), |id, _| desk.answer(id, Decision::Always));
    asked.expect("a yes");
    let again = |question: &Question, terms: &Terms| {
        let (tell, _told) = channel();
        desk.approvals.ask(question, terms, None, &Told(tell))
    };
    let approval = again(&question(), &soon()).expect("it stands");
    assert!(approval.by.contains("standing answer"), "{}", approval.by);
    // Another policy, but the same rule about the same.
    again(&Question { revision: "cc".repeat(32), ..question() }, &soon()).expect("it stands");
    again(&question(), &Terms { always: false, ..soon() }).expect_err("the policy wants to be asked");
    let asks = |question: Question| again(&question, &soon()).expect_err("this was not answered");
    asks(Question { reasons: vec![reason("git.other", "git push --force")], ..question() });
    asks(Question { reasons: vec![reason("git.force", "git push --force x")], ..question() });
    asks(Question { reasons: vec![reason("git.force", "git push --force"), reason("rm", "rm -rf x")], ..question() });
    asks(Question { principal: Principal { user: "ann".to_owned(), agent: None }, ..question() });
    asks(Question { shown: vec![("workspace".to_owned(), "/home/ann/other".to_owned())], ..question() });
    asks(Question { shown: Vec::new(), ..question() });
    asks(Question { findings: vec!["a secret in it".to_owned()], ..question() });
    asks(Question { reasons: vec![Reason { action: Action::Code, ..question().reasons[0].clone() }], ..question() });
}

#[test]
fn a_standing_answer_can_be_revoked() {
    let desk = Desk::new();
    let both = Question { reasons: vec![reason("a", "x"), reason("b", "y")], ..question() };
    desk.asked(&both, &terms(), |id, _| desk.answer(id, Decision::Always)).0.expect("a yes");
    let standing = desk.approvals.standing().expect("it can be read");
    assert_eq!(standing.iter().map(|entry| entry.rule.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(desk.approvals.revoke("no-such").expect("it can be read"), None);
    assert_eq!(desk.approvals.revoke("").expect("it can be read"), None);
    let revoked = desk.approvals.revoke(&standing[0].id).expect("it can be written");
    assert_eq!(revoked.as_ref(), Some(&standing[0]));
    assert_eq!(desk.approvals.standing().expect("it can be read"), standing[1..]);
    let (tell, _told) = channel();
    desk.approvals.ask(&both, &soon(), None, &Told(tell)).expect_err("half of it was revoked");
}

#[test]
fn a_file_of_standing_answers_that_can_not_be_understood_is_kept_and_counts_for_nothing() {
    use std::os::unix::fs::PermissionsExt;
    let desk = Desk::new();
    desk.asked(&question(), &terms(), |id, _| desk.answer(id, Decision::Always)).0.expect("a yes");
    let file = desk.root.join("settings/approved.toml");
    assert_eq!(std::fs::metadata(&file).expect("it is there").permissions().mode() & 0o777, 0o600);
    let good = std::fs::read_to_string(&file).expect("text");
    let link = desk.root.join("elsewhere");
    std::fs::write(&link, &good).expect("a file");
    let bad = [
        format!("{good}\nmore = 1\n"),
        good.replace("version = 1", "version = 2"),
        good.replace("about", "abut"),
        "version = 1\n[[approved]\n".to_owned(),
    ];
    let counts_for_nothing = |text: &str| {
        let (tell, told) = channel();
        desk.approvals.ask(&question(), &soon(), None, &Told(tell)).expect_err("it counts for nothing");
        assert!(told.recv().expect("it is told").contains("approved.toml"));
        let (asked, trouble) = desk.asked_after_a_warning(&question(), |id| {
            let answer = Answer { decision: Decision::Always, reason: String::new() };
            let trouble = desk.approvals.answer(&desk.find(id), &answer).expect_err("it is not written over");
            desk.answer(id, Decision::Deny);
            trouble
        });
        asked.expect_err("a no");
        assert!(trouble.message.contains("approved.toml"), "{trouble}");
        assert_eq!(std::fs::read_to_string(&file).expect("it is kept"), text);
        desk.approvals.standing().expect_err("it is named");
        desk.approvals.revoke("a").expect_err("it is named");
    };
    for text in bad {
        std::fs::write(&file, &text).expect("a file");
        counts_for_nothing(&text);
    }
    std::fs::write(&file, &good).expect("a file");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o666)).expect("it is ours");
    counts_for_nothing(&good);
    std::fs::remove_file(&file).expect("it is ours");
    std::os::unix::fs::symlink(&link, &file).expect("a link");
    counts_for_nothing(&good);
}

impl Desk {
    fn asked_after_a_warning<T>(
        &self,
        question: &Question,
        then: impl FnOnce(&str) -> T,
    ) -> (Result<Approval, Refusal>, T) {
        std::thread::scope(|scope| {
            let (told, said) = channel();
            let asking = scope.spawn(move || self.approvals.ask(question, &terms(), None, &Told(told)));
            said.recv().expect("what is wrong is told first");
            let second = said.recv().expect("it is told where to answer");
            let then = then(second.rsplit(' ').next().expect("words").trim_end_matches('`'));
            (asking.join().expect("no panic"), then)
        })
    }
}

/// Needs root, to make files of others.
#[test]
fn standing_answers_of_somebody_who_may_not_answer_do_not_stand() {
    if !is_root() {
        return;
    }
    let desk = Desk::new();
    desk.asked(&question(), &terms(), |id, _| desk.answer(id, Decision::Always)).0.expect("a yes");
    let file = desk.root.join("settings/approved.toml");
    std::os::unix::fs::chown(&file, Some(another_user()), None).expect("we are root");
    let (tell, _told) = channel();
    desk.approvals.ask(&question(), &soon(), None, &Told(tell)).expect_err("it is another's");
    // And where we may not answer, our own file is worth nothing.
    std::os::unix::fs::chown(&file, Some(0), None).expect("we are root");
    let name = super::users::Users::read().expect("a list").name(another_user());
    let (tell, _told) = channel();
    let theirs = Terms { approvers: vec![name], ..soon() };
    desk.approvals.ask(&question(), &theirs, None, &Told(tell)).expect_err("somebody else has to say so");
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

/// Not a test: another process that waits, for those below.
#[test]
#[ignore = "started by other tests, in a process of its own"]
fn waits_until_it_is_killed() {
    let Some(root) = std::env::var_os("BELLJAR_TEST_DESK") else { return };
    let desk = std::mem::ManuallyDrop::new(Desk::at(root.into()));
    struct Ready;
    impl Watch for Ready {
        fn progress(&self, _: &str, _: u64, _: u64) {}
        fn warn(&self, _: &str) {
            std::io::Write::write_all(&mut std::io::stdout(), b"ready\n").expect("somebody reads");
        }
    }
    let timeout = std::env::var("BELLJAR_TEST_TIMEOUT").expect("how long").parse().expect("a number");
    let terms = Terms { timeout: Duration::from_millis(timeout), ..terms() };
    desk.approvals.ask(&question(), &terms, None, &Ready).expect("a yes");
}

#[test]
fn a_killed_waiter_leaves_nothing_that_can_be_answered() {
    let desk = Desk::new();
    let (mut waiter, _output) = waiter(&desk.root, terms().timeout);
    let parked = desk.approvals.parked(None).expect("it can be read");
    assert_eq!(parked.len(), 1);
    waiter.kill().expect("it is ours");
    waiter.wait().expect("it is ours");
    let answer = Answer { decision: Decision::Once, reason: String::new() };
    assert_eq!(desk.left().len(), 1);
    assert_eq!(desk.approvals.answer(&parked[0], &answer).expect("nothing is written"), Given::TooLate);
    assert!(desk.approvals.parked(None).expect("it can be read").is_empty());
    assert_eq!(desk.left(), [] as [&str; 0], "the stale question is swept");
}

#[test]
fn another_process_that_waits_is_answered() {
    let desk = Desk::new();
    let (mut waiter, _output) = waiter(&desk.root, terms().timeout);
    assert_eq!(desk.answer("last", Decision::Once), Given::Taken);
    assert!(waiter.wait().expect("it ends").success());
    assert_eq!(desk.left(), [] as [&str; 0]);
}

#[test]
fn a_yes_that_came_too_late_to_somebody_who_slept_is_none() {
    let desk = Desk::new();
    let (mut waiter, _output) = waiter(&desk.root, Duration::from_millis(500));
    let process = rustix::process::Pid::from_child(&waiter);
    let answer = desk.forged(&desk.find("last").id);
    rustix::process::kill_process(process, rustix::process::Signal::STOP).expect("it is ours");
    while !desk.approvals.parked(None).expect("it can be read").is_empty() {
        std::thread::yield_now();
    }
    desk.put(answer["id"].as_str().expect("text"), answer.to_string().as_bytes());
    rustix::process::kill_process(process, rustix::process::Signal::CONT).expect("it is ours");
    assert!(!waiter.wait().expect("it ends").success(), "it took it for a yes");
}

/// The process, when it waits, and what it says.
fn waiter(root: &Path, timeout: Duration) -> (std::process::Child, impl std::io::Read) {
    let mut child = Command::new(std::env::current_exe().expect("we are a program"))
        .args(["--exact", "approvals::tests::waits_until_it_is_killed", "--ignored", "--nocapture"])
        .env("BELLJAR_TEST_DESK", root)
        .env("BELLJAR_TEST_TIMEOUT", timeout.as_millis().to_string())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut output = std::io::BufReader::new(child.stdout.take().expect("a pipe"));
    let mut line = String::new();
    while !line.contains("ready") {
        line.clear();
        assert_ne!(output.read_line(&mut line).expect("text"), 0, "it never waited");
    }
    (child, output)
}

#[test]
fn a_folder_that_others_can_reach_is_not_used() {
    use std::os::unix::fs::PermissionsExt;
    let refused = |desk: &Desk, why: &str| {
        let (tell, _told) = channel();
        let refusal = desk.approvals.ask(&question(), &soon(), None, &Told(tell)).expect_err("nobody is asked");
        assert!(refusal.message.contains(why), "{why}: {}", refusal.message);
        desk.approvals.parked(None).expect_err("nor is it listed");
    };
    let desk = Desk::new();
    std::fs::create_dir_all(desk.folder()).expect("a folder");
    std::fs::set_permissions(desk.folder(), std::fs::Permissions::from_mode(0o777)).expect("it is ours");
    refused(&desk, "others may write to it");
    let desk = Desk::new();
    std::fs::create_dir_all(desk.root.join("other/session")).expect("a folder");
    std::fs::create_dir_all(desk.root.join("state")).expect("a folder");
    std::os::unix::fs::symlink(desk.root.join("other"), desk.folder()).expect("a link");
    refused(&desk, "it is a link");
    if is_root() {
        let desk = Desk::new();
        std::fs::create_dir_all(desk.folder()).expect("a folder");
        std::os::unix::fs::chown(desk.folder(), Some(another_user()), None).expect("we are root");
        refused(&desk, "it belongs to user");
    }
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
