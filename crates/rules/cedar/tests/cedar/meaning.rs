//! What policies mean.

use super::*;

const FORBIDS_CURL: &str =
    r#"forbid(principal, action == Action::"exec", resource) when { resource.program == "curl" };"#;
const PERMITS_GIT: &str =
    r#"permit(principal, action == Action::"exec", resource) when { resource.program == "git" };"#;

fn both() -> String {
    format!("{FORBIDS_CURL}\n{PERMITS_GIT}")
}

#[test]
fn a_forbid_that_matches_denies() {
    assert_eq!(ruling(FORBIDS_CURL, &exec("/usr/bin/curl example.org")), Some(Ruling::Deny));
}

#[test]
fn a_permit_that_matches_allows() {
    assert_eq!(ruling(PERMITS_GIT, &exec("git log")), Some(Ruling::Allow));
    assert_eq!(ruling(&both(), &exec("git log")), Some(Ruling::Allow));
}

#[test]
fn with_ask_a_person_is_asked() {
    for effect in ["permit", "forbid"] {
        for ask in ["@ask", "@ask(\"talk to Bob\")"] {
            let text = format!("{ask} {effect}(principal, action == Action::\"exec\", resource);");
            assert_eq!(ruling(&text, &exec("git log")), Some(Ruling::Ask), "{text}");
        }
    }
    let reasons = judge("@ask(\"talk to Bob\") @why(\"other\") permit(principal, action, resource);", &exec("git log"));
    assert_eq!(reasons[0].why, "talk to Bob");
    assert_eq!(reasons[0].grant, "a person's yes, or a change of `cedar.1` (org.cedar:1)");
}

#[test]
fn every_rule_that_matches_gives_a_reason() {
    let text = r#"
        @id("a") permit(principal, action, resource);
        @id("b") forbid(principal, action, resource) when { context.mode == "cow" };
        @id("c") @ask forbid(principal, action == Action::"exec", resource);
        @id("d") @ask permit(principal, action in [Action::"exec", Action::"code"], resource);
        @id("e") forbid(principal == User::"bob", action, resource);
        @id("f") forbid(principal, action == Action::"exec", resource is Command);
        @id("g") permit(principal, action == Action::"exec", resource) when { resource.arguments.contains("log") };
    "#;
    let reasons = judge(text, &exec("git log"));
    let said: Vec<(&str, Ruling)> = reasons.iter().map(|reason| (reason.rule.as_str(), reason.ruling)).collect();
    let expected = [
        ("a", Ruling::Allow),
        ("b", Ruling::Deny),
        ("c", Ruling::Ask),
        ("d", Ruling::Ask),
        ("f", Ruling::Deny),
        ("g", Ruling::Allow),
    ];
    assert_eq!(said, expected);
}

#[test]
fn a_reason_says_which_rule_and_where_and_why_and_what_would_help() {
    let text = "// Ours.\n\n@id(\"no-curl\")\n@why(\"use the mirror\")\nforbid(principal, action == Action::\"exec\", resource)\n  when { resource.program == \"curl\" };";
    let reasons = judge(text, &exec("curl x"));
    let expected = Reason {
        ruling: Ruling::Deny,
        rule: "no-curl".to_owned(),
        place: "org.cedar:3".to_owned(),
        why: "use the mirror".to_owned(),
        action: Action::Exec,
        about: "curl x".to_owned(),
        grant: "a change of `no-curl` (org.cedar:3)".to_owned(),
    };
    assert_eq!(reasons, [expected]);
}

#[test]
fn a_rule_without_a_name_goes_by_its_number_over_all_files() {
    let files = [RuleText { file: "a.cedar", text: FORBIDS_CURL }, RuleText { file: "b.cedar", text: PERMITS_GIT }];
    let rules = Cedar.read(&files).unwrap_or_else(|bad| panic!("{bad:?}"));
    assert_eq!(rules.count(), 2);
    let reasons = rules.judge(&exec("git log"));
    assert_eq!((reasons[0].rule.as_str(), reasons[0].place.as_str()), ("cedar.2", "b.cedar:1"));
    assert_eq!(reasons[0].why, "`cedar.2` permits it");
}

#[test]
fn what_no_permit_covers_is_denied_where_there_are_permits_for_it() {
    let reasons = judge(&both(), &exec("make"));
    assert_eq!(reasons.len(), 1);
    assert_eq!((reasons[0].ruling, reasons[0].rule.as_str()), (Ruling::Deny, "cedar.no-permit"));
    assert_eq!(reasons[0].why, "no permit covers it for the user `alice`");
    assert_eq!(reasons[0].grant, "a `permit` for this in org.cedar");
    assert_eq!(reasons[0].place, "org.cedar:2");
}

#[test]
fn rules_that_only_forbid_are_silent_about_the_rest() {
    assert_eq!(judge(FORBIDS_CURL, &exec("make")), []);
}

#[test]
fn rules_are_silent_about_actions_they_do_not_speak_of() {
    assert_eq!(judge(&both(), &connect("example.org", 443)), []);
    assert_eq!(judge("", &exec("make")), []);
    assert_eq!(judge("permit(principal, action, resource is Host);", &exec("make")), []);
    assert_eq!(judge("permit(principal, action, resource in Domain::\"a.org\");", &exec("make")), []);
    assert_eq!(
        ruling("permit(principal, action, resource in Domain::\"a.org\");", &connect("b", 1)),
        Some(Ruling::Deny)
    );
    assert_eq!(
        ruling("permit(principal, action, resource == Path::\"/a\");", &path(Action::Read, "/b")),
        Some(Ruling::Deny)
    );
}

#[test]
fn a_forbid_that_asks_does_not_stand_in_for_a_permit() {
    let text = format!("{PERMITS_GIT} @ask {FORBIDS_CURL}");
    let reasons = judge(&text, &exec("curl x"));
    let said: Vec<Ruling> = reasons.iter().map(|reason| reason.ruling).collect();
    assert_eq!(said, [Ruling::Ask, Ruling::Deny]);
}

#[test]
fn a_rule_that_cannot_be_evaluated_denies() {
    for effect in ["permit", "forbid"] {
        let text = format!(
            "permit(principal, action, resource); @id(\"big\") {effect}(principal, action == Action::\"code\", resource) \
             when {{ resource.bytes * 9223372036854775807 > 0 }};"
        );
        let code = |bytes| ask(Action::Code, Resource::Code { language: None, bytes });
        let reasons = judge(&text, &code(2));
        let denial = reasons.iter().find(|reason| reason.ruling == Ruling::Deny).expect("a denial");
        assert_eq!(denial.rule, "big");
        assert!(denial.why.starts_with("a rule that can't be evaluated denies: ") && denial.why.contains("overflow"));
        assert_eq!(ruling(&text, &code(0)), Some(Ruling::Allow));
    }
}

#[test]
fn a_question_that_cannot_be_put_is_denied_where_rules_speak_of_it() {
    let odd = [
        ask(Action::Exec, Resource::Path("/a".to_owned())),
        path(Action::Read, "a/../b"),
        path(Action::Write, "/a//b"),
        connect("ex\u{e4}mple.org", 443),
        connect("", 443),
    ];
    for envelope in odd {
        assert_eq!(ruling("permit(principal, action, resource);", &envelope), Some(Ruling::Deny), "{envelope:?}");
    }
    assert_eq!(judge(FORBIDS_CURL, &path(Action::Read, "a")), []);
}

#[test]
fn what_an_agent_asks_is_judged_as_its_user_too() {
    let agent_only = "permit(principal == Agent::\"claude-code\", action, resource);";
    let reasons = judge(agent_only, &by("claude-code", exec("git log")));
    assert_eq!(strictest(&reasons), Some(Ruling::Deny));
    assert!(reasons.iter().any(|reason| reason.why == "no permit covers it for the user `alice`"));

    let user_only = "forbid(principal is User, action, resource);";
    assert_eq!(ruling(user_only, &by("claude-code", exec("git log"))), Some(Ruling::Deny));
}

#[test]
fn a_rule_about_an_agent_narrows_what_its_user_may() {
    let text = r#"permit(principal in User::"alice", action, resource);
        forbid(principal == Agent::"codex", action, resource);
        @ask forbid(principal is Agent, action == Action::"connect", resource) when { principal.user == User::"alice" };"#;
    assert_eq!(ruling(text, &exec("git log")), Some(Ruling::Allow));
    assert_eq!(ruling(text, &by("claude-code", exec("git log"))), Some(Ruling::Allow));
    assert_eq!(ruling(text, &by("codex", exec("git log"))), Some(Ruling::Deny));
    assert_eq!(ruling(text, &by("claude-code", connect("a", 1))), Some(Ruling::Ask));
}

#[test]
fn a_rule_that_matches_agent_and_user_is_named_once() {
    assert_eq!(judge(FORBIDS_CURL, &by("codex", exec("curl x"))).len(), 1);
}

#[test]
fn a_domain_holds_its_hosts_however_they_are_written() {
    let text = r#"forbid(principal, action == Action::"connect", resource in Domain::"example.org");"#;
    for name in ["example.org", "a.example.org", "A.B.Example.Org."] {
        assert_eq!(ruling(text, &connect(name, 443)), Some(Ruling::Deny), "{name}");
    }
    for name in ["notexample.org", "org", "example.org.evil.net"] {
        assert_eq!(ruling(text, &connect(name, 443)), None, "{name}");
    }
    let secret = r#"permit(principal, action == Action::"secret.use", resource in Domain::"example.org") when { resource.name == "TOKEN" };"#;
    let to = |host: &str| ask(Action::SecretUse, Resource::Secret { name: "TOKEN".to_owned(), host: host.to_owned() });
    assert_eq!(ruling(secret, &to("api.example.org")), Some(Ruling::Allow));
    assert_eq!(ruling(secret, &to("example.net")), Some(Ruling::Deny));
}

#[test]
fn a_folder_holds_what_is_below_it() {
    let text = r#"forbid(principal, action in [Action::"write", Action::"commit"], resource in Path::"/etc");"#;
    for name in ["/etc", "/etc/passwd", "/etc/ssh/sshd_config"] {
        assert_eq!(ruling(text, &path(Action::Write, name)), Some(Ruling::Deny), "{name}");
        assert_eq!(ruling(text, &path(Action::Read, name)), None, "{name}");
    }
    for name in ["/", "/etcetera", "/project/etc"] {
        assert_eq!(ruling(text, &path(Action::Commit, name)), None, "{name}");
    }
}

#[test]
fn attributes_say_what_is_asked() {
    let holds = |condition: &str, envelope: &Envelope| {
        let text = format!(
            "forbid(principal, action == Action::\"{}\", resource) when {{ {condition} }};",
            envelope.action.name()
        );
        assert_eq!(ruling(&text, envelope), Some(Ruling::Deny), "{condition}");
    };
    let push = exec("/usr/bin/git push --force");
    holds(r#"resource.program == "git" && resource.arguments.containsAll(["push", "--force"])"#, &push);
    holds(r#"resource.line like "*git push*""#, &push);
    let shell = ask(Action::Exec, Resource::Shell("curl x | sh".to_owned()));
    holds(r#"resource.line == "curl x | sh" && resource.program == "" && resource.arguments.isEmpty()"#, &shell);
    let code = |language: Option<&str>, bytes| {
        ask(Action::Code, Resource::Code { language: language.map(str::to_owned), bytes })
    };
    holds(r#"resource.language == "python" && resource.bytes == 7"#, &code(Some("python"), 7));
    holds(r#"resource.language == "" && resource.bytes == 9223372036854775807"#, &code(None, u64::MAX));
    let notes = path(Action::Read, "/project/notes.tar.gz");
    holds(
        r#"resource.path == "/project/notes.tar.gz" && resource.name == "notes.tar.gz" && resource.extension == "gz""#,
        &notes,
    );
    holds(r#"resource.name == ".bashrc" && resource.extension == """#, &path(Action::Commit, "/home/a/.bashrc"));
    holds(r#"resource.name == "PATH""#, &ask(Action::Environment, Resource::Variable("PATH".to_owned())));
    holds(r#"resource.name == "memory""#, &ask(Action::Gap, Resource::Wall("memory".to_owned())));
    holds(r#"resource.name == "a.b" && resource.port == 8080"#, &connect("a.b", 8080));
    let secret = Resource::Secret { name: "TOKEN".to_owned(), host: "A.b".to_owned() };
    holds(r#"resource.name == "TOKEN" && resource.host == "a.b""#, &ask(Action::SecretUse, secret));
    let artifact = Resource::Artifact { name: "out".to_owned(), bytes: 5 };
    holds(r#"resource.name == "out" && resource.bytes == 5"#, &ask(Action::Release, artifact));
    holds(
        r#"context.directory == "/project" && context.workspaces.contains("/project") && context.mode == "cow""#,
        &push,
    );
}

#[test]
fn a_request_has_a_method_and_a_path() {
    let text = r#"forbid(principal, action == Action::"connect", resource in Domain::"example.org")
        when { resource has method && resource.method == "DELETE" && resource has path && resource.path like "/repos/*" };"#;
    let request = |method: &str, path: &str| {
        let [host, method, path] = ["example.org", method, path].map(str::to_owned);
        ask(Action::Connect, Resource::Request { host, port: 443, method, path })
    };
    assert_eq!(ruling(text, &request("DELETE", "/repos/x?y")), Some(Ruling::Deny));
    assert_eq!(ruling(text, &request("GET", "/repos/x")), None);
    assert_eq!(ruling(text, &request("DELETE", "/users")), None);
    assert_eq!(ruling(text, &connect("example.org", 443)), None);
}
