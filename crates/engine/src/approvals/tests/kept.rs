//! Answers that outlive their question: for a session, or until they are revoked.

use super::*;

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
    let session = desk.approvals.session.clone().expect("we lead one");
    let digest = question().compute_digest();
    let name = desk.file("session").join(crate::approvals::session::name(&session, &digest));
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
    let name = crate::approvals::users::Users::read().expect("a list").name(another_user());
    let (tell, _told) = channel();
    let theirs = Terms { approvers: vec![name], ..soon() };
    desk.approvals.ask(&question(), &theirs, None, &Told(tell)).expect_err("somebody else has to say so");
}

#[test]
fn a_yes_that_was_asked_for_first_is_worth_the_same_question_once() {
    let desk = Desk::new();
    let first = |decision: Decision| {
        std::thread::scope(|scope| {
            let (told, said) = channel();
            let approvals = &desk.approvals;
            let asking = scope.spawn(move || {
                approvals.ask_for(crate::approvals::When::Later, &question(), &terms(), None, &Told(told))
            });
            let words = said.recv().expect("it is told where to answer");
            let id = words.rsplit(' ').next().expect("words").trim_end_matches('`').to_owned();
            desk.answer(&id, decision);
            asking.join().expect("no panic")
        })
    };
    let now = |question: &Question| {
        let (tell, _told) = channel();
        desk.approvals.ask(question, &soon(), None, &Told(tell))
    };
    first(Decision::Deny).expect_err("a no");
    now(&question()).expect_err("and nothing is kept of it");
    first(Decision::Once).expect("a yes");
    assert_eq!(desk.left(), [] as [&str; 0]);
    now(&Question { revision: "cc".repeat(32), ..question() }).expect_err("another policy asks again");
    let other = vec![("command".to_owned(), "git push --force -u x".to_owned())];
    now(&Question { shown: other, ..question() }).expect_err("another command asks again");
    let approval = now(&question()).expect("it was asked for first");
    assert!(approval.by.ends_with("who was asked first"), "{approval:?}");
    now(&question()).expect_err("it was worth one");
    // To ask first again does not use it up.
    first(Decision::Once).expect("a yes");
    let name = desk.file("session").join(crate::approvals::session::name_for_once(
        desk.approvals.session.as_deref().expect("we lead one"),
        &question().compute_digest(),
    ));
    assert!(name.exists());
    // Somebody else's file in its place is none.
    let text = std::fs::read_to_string(&name).expect("a file").replace("once", "deny");
    std::fs::write(&name, text).expect("written");
    now(&question()).expect_err("that is no yes");
}
