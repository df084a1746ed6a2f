//! What somebody would try who wants a yes.

use super::*;

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
    let name = crate::approvals::users::Users::read().expect("a list").name(another_user());
    let theirs = Terms { approvers: vec![name.clone()], ..terms() };
    desk.make_spool();
    let give = |id: &str, owner: u32| {
        let beside = desk.root.join("beside");
        std::fs::write(&beside, desk.forged_in(&desk.spooled(), id).to_string()).expect("a file");
        std::os::unix::fs::chown(&beside, Some(owner), None).expect("we are root");
        std::fs::rename(&beside, desk.spooled().join(format!("{id}.answer"))).expect("it gets its name");
    };
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
