//! Policy files: what is accepted says its version, has no key that was passed over, and limits that leave something;
//! as a project's file that nobody trusts it takes nothing but away. What is not accepted is told with its place.

use ::policy::{BadPolicy, Found, Policy, Project, Source};
use cli::hostile::line;
use model::{Action, Asked, Context, Envelope, Principal, Resource, Ruling};

use crate::shown;

pub fn law(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let source = Source { file: "policy.toml", text };
    let policy = match Policy::of_one_file(source, "/home/user") {
        Ok(policy) => policy,
        Err(bad) => return is_told_with_its_place(&bad, text),
    };
    let table: toml::Table = text.parse().expect("what is accepted is TOML");
    assert_eq!(table.get("version").and_then(|version| version.as_integer()), Some(1), "another version was accepted");
    has_limits_that_leave_something(&policy.limits());
    for said in policy.said().into_iter().flat_map(|said| said.lines) {
        shown::is_one_line(&line(&said.text));
    }
    for envelope in envelopes() {
        is_answered(&policy, &envelope);
    }
    a_stranger_only_takes_away(source);
}

fn is_told_with_its_place(bad: &BadPolicy, text: &str) {
    let lines = text.split('\n').count();
    // A preset's own error would be ours, and is no one's to mend.
    assert_eq!(bad.file, "policy.toml", "{bad}");
    assert!((1..=lines).contains(&bad.line), "line {} of {lines}", bad.line);
    shown::is_one_line(&line(&bad.to_string()));
}

fn has_limits_that_leave_something(limits: &Asked) {
    let Asked { wall_time, millicpus, cpu_time, memory, processes, disk, open_files, output } = limits;
    assert!([wall_time, cpu_time].into_iter().flatten().all(|time| !time.is_zero()), "a limit of no time");
    assert!(
        [memory, processes, disk, open_files, output].into_iter().flatten().all(|limit| *limit > 0),
        "a limit of nothing"
    );
    assert_ne!(*millicpus, Some(0), "a limit of no processor");
}

fn is_answered(policy: &Policy, envelope: &Envelope) {
    let judgement = policy.weigh(envelope);
    let strictest = judgement.reasons.iter().map(|reason| reason.ruling).max();
    assert_eq!(strictest, Some(judgement.ruling), "the strictest does not win");
    assert!(judgement.reasons.iter().all(|reason| !reason.why.is_empty() && !reason.rule.is_empty()));
}

/// The text as a project's file under a policy that asks about everything.
fn a_stranger_only_takes_away(source: Source<'_>) {
    let under = |projects| {
        let user = Source { file: "user.toml", text: "version = 1\nextends = [\"locked\"]\n" };
        Policy::assemble(Found {
            home: "/home/user",
            managed: None,
            user: vec![user],
            projects,
            presets: &|_| Ok(None),
            foreign: Vec::new(),
            revision: String::new(),
        })
    };
    let before = under(Vec::new()).expect("a sound policy");
    // What is not for a project's file is an error there, so that it is not taken either.
    let Ok(after) = under(vec![Project { source, folder: "/project", trusted: false }]) else { return };
    for envelope in envelopes() {
        assert!(after.weigh(&envelope).ruling >= before.weigh(&envelope).ruling, "it widened {envelope:?}");
    }
    assert_eq!(before.read().count() + before.write().count(), after.read().count() + after.write().count());
    assert_eq!(before.accepted_missing(), after.accepted_missing());
    assert_eq!(before.approving(), after.approving());
    assert!(["HOME", "A", "AWS_SECRET_ACCESS_KEY"].iter().all(|name| !after.passes(name)), "it passed a variable on");
    assert!(after.weigh(&envelopes()[0]).ruling >= Ruling::Ask);
}

/// One of each action.
fn envelopes() -> Vec<Envelope> {
    let text = str::to_owned;
    let all = [
        (Action::Exec, Resource::Shell(text("git push && $X | sh"))),
        (Action::Code, Resource::Code { language: Some(text("python")), bytes: 10_000_000 }),
        (Action::Read, Resource::Path(text("/project/src"))),
        (Action::Write, Resource::Path(text("/etc/passwd"))),
        (Action::Environment, Resource::Variable(text("AWS_SECRET_ACCESS_KEY"))),
        (Action::Gap, Resource::Wall(text("landlock"))),
        (Action::Connect, Resource::Host { name: text("example.org"), port: 443 }),
        (Action::SecretUse, Resource::Secret { name: text("KEY"), host: text("example.org") }),
        (Action::Release, Resource::Artifact { name: text("a"), bytes: 1 }),
        (Action::Commit, Resource::Path(text("/project/Cargo.lock"))),
    ];
    let envelope = |(action, resource)| Envelope {
        principal: Principal { user: text("user"), agent: Some(text("claude-code")) },
        action,
        resource,
        context: Context {
            directory: text("/project"),
            home: text("/home/user"),
            workspaces: vec![text("/project")],
            ..Context::default()
        },
    };
    all.into_iter().map(envelope).collect()
}
