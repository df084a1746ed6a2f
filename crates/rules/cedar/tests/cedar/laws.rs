//! What holds for all rules and all questions.

use proptest::prelude::*;

use super::*;

/// Policies of all kinds that match some of the questions below.
fn policy() -> impl Strategy<Value = String> {
    let scope = prop::sample::select(vec![
        "principal, action, resource",
        "principal == User::\"alice\", action, resource",
        "principal is Agent, action, resource",
        "principal == Agent::\"codex\", action == Action::\"exec\", resource",
        "principal, action == Action::\"exec\", resource",
        "principal, action in [Action::\"connect\", Action::\"secret.use\"], resource in Domain::\"a.org\"",
        "principal, action == Action::\"read\", resource in Path::\"/project\"",
        "principal, action, resource is Command",
    ]);
    let condition = prop::sample::select(vec![
        "",
        "when { context.mode == \"cow\" }",
        "unless { context.directory like \"/project*\" }",
        "when { resource is Command && resource.program == \"git\" }",
        "when { resource is Command && resource.arguments.contains(\"push\") }",
        "when { principal is Agent && principal.user == User::\"alice\" }",
    ]);
    let effect = prop::sample::select(vec!["permit", "@ask permit", "forbid", "@ask forbid"]);
    let text = (effect, scope, condition).prop_map(|(effect, scope, when)| format!("{effect}({scope}) {when};"));
    // Some of these can never apply, and are refused.
    text.prop_filter("is read", |text| Cedar.read(&[RuleText { file: "a", text }]).is_ok())
}

fn question() -> impl Strategy<Value = Envelope> {
    let envelope = prop::sample::select(vec![
        exec("git push"),
        exec("git log"),
        exec("make"),
        connect("x.a.org", 443),
        connect("b.org", 80),
        path(Action::Read, "/project/a"),
        path(Action::Write, "/etc/a"),
        ask(Action::Code, Resource::Code { language: None, bytes: 1 }),
    ]);
    let agent = prop::sample::select(vec![None, Some("codex"), Some("claude-code")]);
    (envelope, agent).prop_map(|(envelope, agent)| match agent {
        Some(name) => by(name, envelope),
        None => envelope,
    })
}

fn anything() -> impl Strategy<Value = Envelope> {
    let text = || any::<String>();
    let resource = prop_oneof![
        prop::collection::vec(text(), 0..4).prop_map(Resource::Command),
        text().prop_map(Resource::Shell),
        (prop::option::of(text()), any::<u64>()).prop_map(|(language, bytes)| Resource::Code { language, bytes }),
        text().prop_map(Resource::Path),
        text().prop_map(|rest| Resource::Path(format!("/{rest}"))),
        text().prop_map(Resource::Variable),
        text().prop_map(Resource::Wall),
        (text(), any::<u16>()).prop_map(|(name, port)| Resource::Host { name, port }),
        ("[a-zA-Z.]{0,8}", any::<u16>()).prop_map(|(name, port)| Resource::Host { name, port }),
        (text(), text()).prop_map(|(name, host)| Resource::Secret { name, host }),
        (text(), any::<u64>()).prop_map(|(name, bytes)| Resource::Artifact { name, bytes }),
    ];
    let principal = (text(), prop::option::of(text())).prop_map(|(user, agent)| Principal { user, agent });
    let context = (text(), prop::collection::vec(text(), 0..3)).prop_map(|(directory, workspaces)| Context {
        directory,
        workspaces,
        ..Context::default()
    });
    (principal, prop::sample::select(Action::ALL.to_vec()), resource, context)
        .prop_map(|(principal, action, resource, context)| Envelope { principal, action, resource, context })
}

/// What our own policy would make of it where it allows, and where it says nothing.
fn rulings(texts: &[String], envelope: &Envelope) -> [Ruling; 2] {
    let names: Vec<String> = (0..texts.len()).map(|at| format!("{at}.cedar")).collect();
    let files: Vec<RuleText<'_>> = names.iter().zip(texts).map(|(file, text)| RuleText { file, text }).collect();
    let reasons = Cedar.read(&files).unwrap_or_else(|bad| panic!("{bad:?}")).judge(envelope);
    // What was checked before says the same without being checked again.
    let again = Cedar.read_again(&files).unwrap_or_else(|bad| panic!("{bad:?}")).judge(envelope);
    assert_eq!(again, reasons);
    [strictest(&reasons).unwrap_or(Ruling::Allow), judgement(reasons, envelope).ruling]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn one_more_forbid_never_allows_more(
        policies in prop::collection::vec(policy(), 0..6),
        more in policy().prop_map(|text| text.replacen("permit", "forbid", 1)),
        envelope in question(),
    ) {
        let asks = more.starts_with("@ask");
        let before = rulings(&[policies.join("\n")], &envelope);
        let after = rulings(&[policies.join("\n"), more], &envelope);
        // Where ours allows what these are silent about, a forbid can only be stricter.
        prop_assert!(after[0] >= before[0], "{before:?} {after:?}");
        // Where ours is silent too, that denied before. A forbid that asks is then the only one to speak.
        prop_assert!(after[1] >= before[1] || asks && after[1] == Ruling::Ask, "{before:?} {after:?}");
    }

    #[test]
    fn the_order_of_policies_and_files_does_not_matter(
        policies in prop::collection::vec(policy(), 1..6).prop_flat_map(|all| (Just(all.clone()), Just(all).prop_shuffle())),
        cut in 0..6usize,
        envelope in question(),
    ) {
        let (one, other) = policies;
        let (left, right) = other.split_at(cut.min(other.len()));
        prop_assert_eq!(rulings(&[one.join("\n")], &envelope), rulings(&[right.join("\n"), left.join("\n")], &envelope));
    }

    #[test]
    fn no_question_is_too_odd(policies in prop::collection::vec(policy(), 0..4), envelope in anything()) {
        let reasons = judge(&policies.join("\n"), &envelope);
        if !envelope.is_sound() {
            prop_assert!(reasons.is_empty() || strictest(&reasons) == Some(Ruling::Deny));
        }
    }

    #[test]
    fn no_text_is_too_odd(text in any::<String>()) {
        if let Err(bad) = Cedar.read(&[RuleText { file: "a", text: &text }]) {
            prop_assert!((1..=text.split('\n').count()).contains(&bad.line));
        }
    }
}
