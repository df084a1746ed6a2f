//! What of the network a request gets in its grant, and when somebody is asked.

use std::ffi::OsStr;
use std::path::PathBuf;

use belljar_policy::{Facts, Located, Policy, Source, judge};
use model::{
    AUTHORITIES, Gated, Grant, Network, NetworkAsked, Principal, Published, Refusal, Request, Verdict, WorkspaceMode,
};

fn of(text: &str) -> Policy {
    let text = format!("version = 1\n{text}");
    Policy::of_one_file(Source { file: "policy.toml", text: &text }, "/home/user").expect("a policy")
}

fn facts() -> Facts {
    Facts {
        ground: model::Ground::Host,
        principal: Principal { user: "user".to_owned(), agent: None },
        workspace_mode: WorkspaceMode::default(),
        directory: "/tmp".into(),
        start: "/tmp".into(),
        home: "/home/user".into(),
        homes: vec!["/home/user".into()],
        user_name: "user".to_owned(),
        environment: vec![("TOKEN".into(), "real".into()), ("JAVA_TOOL_OPTIONS".into(), "-Xmx1g".into())],
        system: Vec::new(),
        links: Vec::new(),
        toolchains: Vec::new(),
        workspaces: Vec::new(),
        workspaces_named: false,
        asked: Vec::new(),
        given: Vec::new(),
        hide: Vec::new(),
        linked_stores: Vec::new(),
        state: Vec::new(),
        policies: Vec::new(),
        policy_files: Vec::new(),
        loose_secrets: Vec::new(),
        program: Located { path: PathBuf::from("/usr/bin/true") },
        findings: Vec::new(),
        code: None,
        reasons: Vec::new(),
        stored: Vec::new(),
        seed: [7; 32],
        java: false,
        memory: 1 << 30,
        inherited_size: 0,
    }
}

fn request(network: NetworkAsked) -> Request {
    Request { command: vec!["true".into()], network, ..Request::default() }
}

fn texts(list: &[&str]) -> Vec<String> {
    list.iter().map(|text| (*text).to_owned()).collect()
}

fn allow(list: &[&str]) -> NetworkAsked {
    NetworkAsked { allow: texts(list), ..NetworkAsked::default() }
}

#[track_caller]
fn granted(policy: &Policy, network: NetworkAsked) -> Grant {
    match judge(&request(network), policy, &facts()) {
        Verdict::Allowed(grant, _) => *grant,
        other => unreachable!("{other:?}"),
    }
}

#[track_caller]
fn refused(policy: &Policy, network: NetworkAsked) -> Refusal {
    match judge(&request(network), policy, &facts()) {
        Verdict::Refused(refusal) => refusal,
        other => unreachable!("{other:?}"),
    }
}

#[track_caller]
fn gated(grant: &Grant) -> &Gated {
    match &grant.powers().network {
        Network::Gated(gated) => gated,
        Network::Closed => unreachable!("it is closed"),
    }
}

fn variable<'a>(grant: &'a Grant, name: &str) -> Option<&'a OsStr> {
    let found = grant.powers().environment.iter().find(|(known, _)| known == name);
    found.map(|(_, value)| value.as_os_str())
}

#[test]
fn nothing_is_open_until_somebody_names_it() {
    for policy in
        [Policy::built_in(), of(""), of("[network]\nallow = []\ndeny = [\"a.org\"]"), of("extends = [\"balanced\"]")]
    {
        let grant = granted(&policy, NetworkAsked::default());
        assert_eq!(grant.powers().network, Network::Closed);
        assert_eq!(variable(&grant, "SSL_CERT_FILE"), None);
    }
}

#[test]
fn who_types_a_flag_gets_that_and_no_more() {
    let grant = granted(&Policy::built_in(), allow(&["a.org", "10.0.0.0/8:5432", "localhost:8080", "[::1]:99"]));
    let Gated { hosts, loopback, reads, pinned, secrets, published } = gated(&grant);
    assert_eq!(*hosts, ["a.org", "10.0.0.0/8:5432", "localhost:8080", "[::1]:99"]);
    assert_eq!(*loopback, [99, 8080]);
    assert!(!reads && pinned.is_empty() && secrets.is_empty() && published.is_empty());
    assert_eq!(variable(&grant, "SSL_CERT_FILE"), None);
}

#[test]
fn no_net_closes_what_a_policy_gives() {
    let policy = of("[network]\nallow = [\"a.org\"]");
    assert_eq!(gated(&granted(&policy, NetworkAsked::default())).hosts, ["a.org"]);
    let none = NetworkAsked { none: true, ..allow(&["b.org"]) };
    assert_eq!(granted(&policy, none).powers().network, Network::Closed);
    let denied = NetworkAsked { deny: texts(&["*.org", "a.org"]), ..NetworkAsked::default() };
    assert_eq!(granted(&policy, denied).powers().network, Network::Closed);
}

#[test]
fn levels_ask_or_deny_and_a_listed_host_needs_no_answer() {
    let balanced = of(
        "extends = [\"balanced\"]\n[network]\nallow = [\"*.listed.org\"]\nask = [\"asks.org\"]\ndeny = [\"no.org\"]",
    );
    let verdict = |network| judge(&request(network), &balanced, &facts());
    assert!(matches!(verdict(allow(&["x.listed.org", "*.y.listed.org"])), Verdict::Allowed(..)));
    let Verdict::Ask(pending) = verdict(NetworkAsked { publish: vec![(8080, 80)], ..allow(&["other.org:22"]) }) else {
        unreachable!("it is asked")
    };
    let shown = &pending.question().shown;
    assert!(shown.contains(&("network".to_owned(), "other.org:22".to_owned())), "{shown:?}");
    assert!(shown.contains(&("published".to_owned(), "127.0.0.1:8080 to 80 inside".to_owned())), "{shown:?}");
    assert!(matches!(verdict(allow(&["*.org"])), Verdict::Ask(_)));
    assert!(matches!(verdict(allow(&["@pypi"])), Verdict::Ask(_)));
    assert_eq!(refused(&balanced, allow(&["no.org:22"])).denied[0].rule, "network.deny");
    let locked = of("extends = [\"locked\"]");
    let refusal = refused(&locked, allow(&["a.org"]));
    assert!(refusal.hint.contains("[network] allow = [\"a.org\"]"), "{refusal:?}");
}

#[test]
fn a_bad_flag_is_refused_by_name() {
    let refusal = refused(&Policy::built_in(), allow(&["http://a.org"]));
    assert!(refusal.message.contains("`http://a.org`"), "{refusal:?}");
}

#[test]
fn a_secret_is_never_inside_and_what_stands_for_it_is() {
    let policy = of(
        "[environment]\npass = [\"TOKEN\"]\n[secrets.OTHER]\nhosts = [\"b.org\"]\nvariable = \"OTHER_KEY\"\nprefix = \"ghp_\"",
    );
    let mut asked =
        request(NetworkAsked { secrets: texts(&["TOKEN@a.org", "OTHER"]), ..allow(&["*.org", "a.org", "b.org"]) });
    asked.environment = vec![("TOKEN".into(), None), ("SSL_CERT_FILE".into(), Some("/own".into()))];
    let Verdict::Allowed(grant, _) = judge(&asked, &policy, &facts()) else { unreachable!("it is allowed") };
    let gated = gated(&grant);
    assert!(gated.reads);
    assert_eq!(gated.secrets[0].hosts, ["a.org"]);
    assert_eq!(gated.secrets[1].hosts, ["b.org"]);
    let token = variable(&grant, "TOKEN").expect("a stand-in").to_string_lossy().into_owned();
    assert_eq!(token, gated.secrets[0].stand_in);
    assert!(token.starts_with("belljar-TOKEN-"), "{token}");
    assert!(variable(&grant, "OTHER_KEY").expect("a stand-in").to_string_lossy().starts_with("ghp_"));
    assert!(grant.powers().environment.iter().all(|(_, value)| value != "real"));
    // What somebody sets by hand is theirs; all else is led to the gate's authority.
    assert_eq!(variable(&grant, "SSL_CERT_FILE"), Some(OsStr::new("/own")));
    assert_eq!(variable(&grant, "NODE_EXTRA_CA_CERTS"), Some(OsStr::new(AUTHORITIES)));
    assert_eq!(variable(&grant, "JAVA_TOOL_OPTIONS"), None);
}

#[test]
fn a_secret_that_can_go_nowhere_is_refused_with_the_fix() {
    let nowhere = NetworkAsked { secrets: texts(&["TOKEN@a.org"]), ..allow(&["b.org"]) };
    assert!(refused(&Policy::built_in(), nowhere).hint.contains("--allow-net a.org"));
    let unsaid = NetworkAsked { secrets: texts(&["TOKEN"]), ..allow(&["b.org"]) };
    assert!(refused(&Policy::built_in(), unsaid).hint.contains("--secret TOKEN@HOST"));
    let odd = NetworkAsked { secrets: texts(&["MY-TOKEN@a.org"]), ..allow(&["a.org"]) };
    assert!(refused(&Policy::built_in(), odd).hint.contains("[secrets.MY-TOKEN] variable"));
}

#[test]
fn registries_and_rules_on_requests_are_read() {
    assert!(gated(&granted(&Policy::built_in(), allow(&["@pypi"]))).reads);
    let policy = of("extends = [\"open\", \"rust\"]");
    let grant = granted(&policy, NetworkAsked::default());
    assert!(gated(&grant).reads && gated(&grant).hosts.contains(&"index.crates.io".to_owned()));
    let mut facts = facts();
    facts.java = true;
    let policy = of("extends = [\"open\", \"java\"]");
    let Verdict::Allowed(grant, _) = judge(&request(NetworkAsked::default()), &policy, &facts) else {
        unreachable!("allowed")
    };
    let options = variable(&grant, "JAVA_TOOL_OPTIONS").expect("a trust store").to_string_lossy();
    assert!(options.starts_with("-Xmx1g -Djavax.net.ssl.trustStore=/etc/belljar/"), "{options}");
}

#[test]
fn a_server_inside_is_published_without_any_way_out() {
    let grant =
        granted(&Policy::built_in(), NetworkAsked { publish: vec![(8080, 80), (8080, 80)], ..Default::default() });
    assert_eq!(gated(&grant).published, [Published { host: 8080, guest: 80 }]);
    assert!(gated(&grant).hosts.is_empty());
    refused(&Policy::built_in(), NetworkAsked { publish: vec![(8080, 80), (8080, 81)], ..Default::default() });
}
