//! What goes out: given by somebody, and denied by nobody.

use std::net::IpAddr;

use belljar_policy::{Found, GateRules, Owner, Policy, Project, Source};
use model::{
    Action, Context, Endpoint, Envelope, ForeignRules, Host, HostName, Judgement, NetworkAsked, Opening,
    OutgoingRequest, Principal, Reason, Resource, Ruling,
};
use proptest::prelude::*;
use proptest::sample::{select, subsequence};

fn policy(managed: Option<&str>, user: &str, project: Option<(&str, bool)>) -> Result<Policy, String> {
    let source = |text| Source { file: "policy.toml", text };
    Policy::assemble(Found {
        home: "/home/user",
        managed: managed.map(source),
        user: vec![source(user)],
        projects: project
            .into_iter()
            .map(|(text, trusted)| Project { source: source(text), folder: "/project", trusted })
            .collect(),
        presets: &|_| Ok(None),
        foreign: Vec::new(),
        revision: String::new(),
    })
    .map_err(|bad| bad.to_string())
}

fn of(text: &str) -> Policy {
    policy(None, &format!("version = 1\n{text}"), None).expect("a policy")
}

fn asked(allow: &[&str]) -> NetworkAsked {
    NetworkAsked { allow: allow.iter().map(|text| (*text).to_owned()).collect(), ..NetworkAsked::default() }
}

fn gate<'a>(policy: &'a Policy, asked: &NetworkAsked) -> GateRules<&'a Policy> {
    GateRules::new(policy, Principal::default(), Context::default(), asked).expect("sound flags")
}

fn name(text: &str) -> HostName {
    HostName::read(text).expect("a name")
}

fn to(text: &str) -> Endpoint {
    let (host, port) = text.rsplit_once(':').unwrap_or((text, "443"));
    let host = match host.trim_matches(['[', ']']).parse::<IpAddr>() {
        Ok(address) => Host::Address(address),
        Err(_) => Host::Name(name(host)),
    };
    Endpoint { host, port: port.parse().expect("a port") }
}

fn request(method: &str, host: &str, path: &str) -> OutgoingRequest {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let [method, path, query] = [method, path, query].map(str::to_owned);
    OutgoingRequest { destination: to(host), method, path, query, body: None }
}

fn judged(opening: &Opening) -> &Judgement {
    match opening {
        Opening::Whole(judgement) | Opening::Read(judgement) => judgement,
    }
}

fn opens<P: std::borrow::Borrow<Policy>>(gate: &GateRules<P>, text: &str) -> (Ruling, bool) {
    let opening = gate.opening(&to(text));
    (judged(&opening).ruling, matches!(opening, Opening::Read(_)))
}

#[test]
fn a_default_opens_no_host_that_nobody_named() {
    for policy in [Policy::built_in(), of(""), of("[defaults]\nconnect = \"allow\"")] {
        let gate = gate(&policy, &NetworkAsked::default());
        let Opening::Whole(judgement) = gate.opening(&to("example.org:8443")) else { unreachable!("it is not read") };
        assert_eq!(judgement.ruling, Ruling::Deny);
        assert_eq!(judgement.reasons[0].rule, "network.silence");
        assert_eq!(judgement.reasons[0].why, "is not a granted host");
        assert_eq!(
            judgement.reasons[0].grant,
            "[network] allow = [\"example.org:8443\"], or `--allow-net example.org:8443`"
        );
        assert_eq!(gate.name(&name("example.org")).ruling, Ruling::Deny);
        assert_eq!(gate.request(&request("GET", "example.org", "/")).ruling, Ruling::Deny);
    }
}

#[test]
fn what_was_asked_for_and_admitted_is_not_asked_about_again() {
    let policy = of("extends = [\"balanced\"]\n[network]\ndeny = [\"evil.example.org\"]");
    let gate = gate(&policy, &asked(&["*.example.org", "other.net:22"]));
    assert_eq!(opens(&gate, "a.example.org"), (Ruling::Allow, false));
    assert_eq!(opens(&gate, "other.net:22").0, Ruling::Allow);
    assert_eq!(opens(&gate, "other.net:23").0, Ruling::Deny);
    assert_eq!(opens(&gate, "a.example.org:80").0, Ruling::Deny);
    assert_eq!(opens(&gate, "evil.example.org").0, Ruling::Deny);
    assert_eq!(gate.name(&name("evil.example.org")).ruling, Ruling::Deny);
    assert_eq!(gate.name(&name("other.net")).ruling, Ruling::Allow);
}

#[test]
fn a_question_that_was_not_put_at_the_start_is_put_at_the_gate() {
    let policy = of("[network]\nask = [\"ask.example.org\"]");
    assert_eq!(opens(&gate(&policy, &NetworkAsked::default()), "ask.example.org").0, Ruling::Ask);
    // To ask for a part of it is to be asked about that part.
    assert_eq!(opens(&gate(&policy, &asked(&["*.example.org"])), "ask.example.org").0, Ruling::Allow);
}

#[test]
fn what_is_not_wanted_is_not_reached() {
    let policy = of("[network]\nallow = [\"*:*\"]");
    let wanted = NetworkAsked { deny: vec!["a.org".to_owned(), "@pypi".to_owned()], ..asked(&["a.org:22"]) };
    let denied = gate(&policy, &wanted);
    for host in ["a.org", "a.org:22", "pypi.org", "files.pythonhosted.org:80"] {
        assert_eq!(opens(&denied, host).0, Ruling::Deny, "{host}");
    }
    assert_eq!(opens(&denied, "b.org").0, Ruling::Allow);
    let none = gate(&policy, &NetworkAsked { none: true, ..asked(&["b.org"]) });
    assert_eq!(opens(&none, "b.org").0, Ruling::Deny);
    assert_eq!(none.name(&name("b.org")).ruling, Ruling::Deny);
}

#[test]
fn registries_are_for_downloads() {
    let in_policy = of("extends = [\"locked\", \"python\"]");
    let by_flag = Policy::built_in();
    for gate in [gate(&in_policy, &NetworkAsked::default()), gate(&by_flag, &asked(&["@pypi"]))] {
        assert_eq!(opens(&gate, "pypi.org"), (Ruling::Allow, true));
        assert_eq!(opens(&gate, "pypi.org:80"), (Ruling::Allow, true));
        assert_eq!(opens(&gate, "pypi.org:22").0, Ruling::Deny);
        assert_eq!(gate.request(&request("GET", "pypi.org", "/simple/x/")).ruling, Ruling::Allow);
        assert_eq!(gate.request(&request("HEAD", "files.pythonhosted.org", "/x")).ruling, Ruling::Allow);
        for method in ["POST", "PUT", "DELETE", "get", "PROPFIND"] {
            assert_eq!(gate.request(&request(method, "pypi.org", "/legacy/")).ruling, Ruling::Ask, "{method}");
        }
        assert_eq!(gate.request(&request("GET", "upload.pypi.org", "/")).ruling, Ruling::Deny);
    }
    let bad = GateRules::new(&by_flag, Principal::default(), Context::default(), &asked(&["@pipy"]));
    assert_eq!(bad.err().expect("no registry").hint, "did you mean `@pypi`?");
}

#[test]
fn of_registries_files_are_kept_and_no_index() {
    let all = ["@pypi", "@npm", "@crates", "@goproxy", "@maven", "@rubygems", "@debian", "@git-hosts"];
    let policy = of("");
    let gate = gate(&policy, &asked(&all));
    let digest = "ab/cd/0123456789012345678901234567890123456789012345678901234567";
    let wheel = format!("/packages/{digest}/requests-2.32.0-py3-none-any.whl");
    for (host, path) in [
        ("files.pythonhosted.org", wheel.as_str()),
        ("registry.npmjs.org", "/left-pad/-/left-pad-1.3.0.tgz"),
        ("registry.npmjs.org", "/@types/node/-/node-22.0.0.tgz"),
        ("static.crates.io", "/crates/serde/serde-1.0.0.crate"),
        ("static.crates.io", "/crates/serde/1.0.0/download"),
        ("proxy.golang.org", "/github.com/a/b/@v/v1.2.3.zip"),
        ("repo.maven.apache.org", "/maven2/org/junit/junit/4.13/junit-4.13.jar"),
        ("rubygems.org", "/gems/rails-8.0.0.gem"),
        ("deb.debian.org", "/debian/pool/main/b/bash/bash_5.2_amd64.deb"),
    ] {
        assert!(gate.keeps(&request("GET", host, path)), "{host}{path}");
        assert!(gate.keeps_some_of(&to(host)));
        for other in [request("HEAD", host, path), request("GET", host, &format!("{path}?x")), {
            request("GET", &format!("{host}:80"), path)
        }] {
            assert!(!gate.keeps(&other), "{other:?}");
        }
    }
    for (host, path) in [
        ("pypi.org", "/simple/requests/"),
        ("pypi.org", wheel.as_str()),
        ("registry.npmjs.org", "/left-pad"),
        ("registry.npmjs.org", "/@types%2Fnode"),
        ("index.crates.io", "/se/rd/serde"),
        ("static.rust-lang.org", "/dist/channel-rust-stable.toml"),
        ("proxy.golang.org", "/github.com/a/b/@v/list"),
        ("proxy.golang.org", "/github.com/a/b/@v/master.info"),
        ("proxy.golang.org", "/github.com/a/b/@latest"),
        ("repo.maven.apache.org", "/maven2/org/junit/junit/maven-metadata.xml"),
        ("index.rubygems.org", "/versions"),
        ("deb.debian.org", "/debian/dists/stable/InRelease"),
        ("codeload.github.com", "/a/b/tar.gz/main"),
        ("example.org", "/gems/rails-8.0.0.gem"),
    ] {
        assert!(!gate.keeps(&request("GET", host, path)), "{host}{path}");
    }
}

#[test]
fn the_least_is_kept_that_anybody_says_and_a_stranger_adds_nothing() {
    let file = request("GET", "a.org", "/f/x.whl");
    let user = "version = 1\n[network]\nimmutable = [\"a.org/f/**\"]\ncache = \"1G\"\n";
    let kept = |managed, user, project| {
        let policy = policy(managed, user, project).expect("a policy");
        (policy.cache(), gate(&policy, &NetworkAsked::default()).keeps(&file))
    };
    let none = "version = 1\n[network]\ncache = \"none\"\n";
    assert_eq!(kept(None, user, None), (1 << 30, true));
    assert_eq!(kept(None, "version = 1\n", None), (8 << 30, false));
    assert_eq!(kept(Some(none), user, None), (0, false));
    assert_eq!(kept(None, user, Some((none, false))), (0, false));
    let project = "version = 1\n[network]\nimmutable = [\"a.org/f/**\"]\ncache = \"64G\"\n";
    assert_eq!(kept(None, "version = 1\n[network]\ncache = \"1G\"\n", Some((project, false))), (1 << 30, false));
    assert_eq!(kept(None, "version = 1\n", Some((project, true))), (64 << 30, true));
    for bad in ["cache = \"\"", "cache = \"much\"", "immutable = [\"a.org\"]", "immutable = [\"https://a.org/b\"]"] {
        assert!(policy(None, &format!("version = 1\n[network]\n{bad}\n"), None).is_err(), "{bad}");
    }
}

#[test]
fn to_fetch_is_allowed_and_to_push_asks() {
    let policy = of("[network]\ngit = [\"git.example\"]");
    let gate = gate(&policy, &NetworkAsked::default());
    let ruled = |method: &str, path: &str| gate.request(&request(method, "git.example", path));
    for (method, path) in [
        ("GET", "/a/b.git/info/refs?service=git-upload-pack"),
        ("POST", "/a/b.git/git-upload-pack"),
        ("POST", "/a/b.git/info/lfs/objects/batch"),
        ("GET", "/a/b/archive/main.tar.gz"),
        ("HEAD", "/"),
    ] {
        assert_eq!(ruled(method, path).ruling, Ruling::Allow, "{method} {path}");
    }
    for (method, path) in [
        ("GET", "/a/b.git/info/refs?service=git-receive-pack"),
        ("GET", "/a/b.git/info/refs?x=1&service=git%2Dreceive-pack"),
        ("POST", "/a/b.git/git-receive-pack"),
        ("POST", "/a/b.git/git%2dreceive-pack"),
        ("POST", "/a/b.git/git-receive-pack/"),
    ] {
        let judgement = ruled(method, path);
        assert_eq!(judgement.ruling, Ruling::Ask, "{method} {path}");
        assert!(judgement.reasons.iter().any(|one| one.why == "pushes commits" && one.ruling == Ruling::Ask), "{path}");
    }
    for (method, path) in [
        ("POST", "/a"),
        ("DELETE", "/a"),
        ("POST", "/x/../a/git-upload-pack"),
        ("POST", "/a?git-upload-pack"),
        ("PUT", "/a/b.git/info/lfs/objects/0"),
        ("POST", "/a/b.git/info/lfs/objects/batch/x"),
        ("POST", "/a/b.git/info/lfs/verify"),
    ] {
        assert_eq!(ruled(method, path).ruling, Ruling::Ask, "{method} {path}");
    }
    assert_eq!(opens(&gate, "git.example:22").0, Ruling::Deny);
}

#[test]
fn rules_on_requests_have_what_goes_to_their_host_read() {
    let policy = of(r#"
        [network]
        allow = ["api.example.org", "plain.example.org"]
        [[rule]]
        when = { host = "api.example.org", method = ["DELETE", "PUT"], url = "/repos/**" }
        then = "deny"
        why = "removes something"
        matches = ["DELETE https://api.example.org/repos/x", "PUT http://api.example.org:8080/repos/x?y=z"]
        passes = ["GET https://api.example.org/repos/x", "DELETE https://api.example.org/users", "DELETE https://b.org/repos/x"]
    "#);
    let gate = gate(&policy, &NetworkAsked::default());
    assert_eq!(opens(&gate, "api.example.org"), (Ruling::Allow, true));
    assert_eq!(opens(&gate, "plain.example.org"), (Ruling::Allow, false));
    assert_eq!(gate.request(&request("GET", "api.example.org", "/repos/x")).ruling, Ruling::Allow);
    assert_eq!(gate.request(&request("DELETE", "api.example.org", "/repos/x")).ruling, Ruling::Deny);
    assert_eq!(gate.request(&request("delete", "api.example.org", "/x/..%2frepos/x")).ruling, Ruling::Deny);
    assert_eq!(gate.request(&request("DELETE", "api.example.org", "/users")).ruling, Ruling::Allow);
}

#[test]
fn a_rule_that_allows_some_requests_allows_no_others() {
    let rule =
        "[[rule]]\nwhen = { host = \"a.org\", method = \"GET\", url = \"/public/**\" }\nthen = \"allow\"\nwhy = \"x\"";
    for level in ["open", "locked"] {
        let policy = of(&format!("extends = [\"{level}\"]\n{rule}"));
        let gate = gate(&policy, &NetworkAsked::default());
        assert_eq!(opens(&gate, "a.org"), (Ruling::Allow, true));
        assert_eq!(gate.request(&request("GET", "a.org", "/public/x")).ruling, Ruling::Allow);
        for (method, path) in [("POST", "/public/x"), ("GET", "/private"), ("GET", "/public/../private")] {
            let judgement = gate.request(&request(method, "a.org", path));
            assert_eq!(judgement.ruling, Ruling::Deny, "{level} {method} {path}");
            assert!(judgement.reasons[0].grant.contains("[[rule]] when = { host = \"a.org\""), "{judgement:?}");
        }
    }
}

#[test]
fn what_follows_the_question_mark_is_judged_and_not_told() {
    let rule = "[[rule]]\nwhen = { host = \"a.org\", url = \"/public/**\" }\nthen = \"allow\"\nwhy = \"x\"\n\
                [[rule]]\nwhen = { host = \"a.org\", url = \"**?*secret*\" }\nthen = \"deny\"\nwhy = \"y\"";
    let policy = of(rule);
    let gate = gate(&policy, &NetworkAsked::default());
    for path in ["/private", "/public/x"] {
        let judgement = gate.request(&request("GET", "a.org", &format!("{path}?token=secret")));
        assert_eq!(judgement.ruling, Ruling::Deny, "{path}");
        assert!(!format!("{judgement:?}").contains("token=secret"), "{judgement:?}");
    }
    // A rule that is copied from what was told allows no more than what was asked for.
    let judgement = gate.request(&request("GET", "a.org", "/**"));
    assert!(!judgement.reasons[0].grant.contains("/**"), "{judgement:?}");
}

#[test]
fn a_name_leads_to_no_private_address_unless_that_is_written() {
    let private: IpAddr = "10.1.2.3".parse().expect("an address");
    let policy = of(
        "[network]\nallow = [\"db.example:5432\", \"*:*\"]\n[[rule]]\nwhen = { action = \"connect\" }\nthen = \"allow\"\nwhy = \"x\"",
    );
    let wide = gate(&policy, &NetworkAsked::default());
    assert_eq!(wide.leads_to(&to("db.example:5432"), private).ruling, Ruling::Deny);
    assert_eq!(wide.leads_to(&to("db.example:5432"), private).reasons[0].rule, "network.private");
    assert_eq!(opens(&wide, "10.1.2.3:5432").0, Ruling::Deny);
    let policy = of("[network]\nallow = [\"10.0.0.0/8:5432\"]\ndeny = [\"10.1.2.4\"]");
    let written = gate(&policy, &NetworkAsked::default());
    assert_eq!(written.leads_to(&to("db.example:5432"), private).ruling, Ruling::Allow);
    assert_eq!(written.leads_to(&to("db.example:5432"), "::ffff:10.1.2.3".parse().expect("one")).ruling, Ruling::Allow);
    assert_eq!(written.leads_to(&to("db.example:5433"), private).ruling, Ruling::Deny);
    assert_eq!(written.leads_to(&to("db.example:5432"), "10.1.2.4".parse().expect("one")).ruling, Ruling::Deny);
    assert_eq!(written.leads_to(&to("x.example:5432"), "169.254.169.254".parse().expect("one")).ruling, Ruling::Deny);
    let own = gate(&policy, &asked(&["localhost:8080"]));
    for address in ["127.0.0.1", "::1"] {
        let address: IpAddr = address.parse().expect("one");
        assert_eq!(own.leads_to(&to("a.test:8080"), address).ruling, Ruling::Allow);
        assert_eq!(own.leads_to(&to("a.test:8081"), address).ruling, Ruling::Deny);
    }
    assert_eq!(own.leads_to(&to("a.test:8080"), "127.0.0.2".parse().expect("one")).ruling, Ruling::Deny);
}

#[test]
fn a_block_of_all_addresses_means_nobodys_own() {
    let home = [
        "127.0.0.1", "127.9.9.9", "10.1.2.3", "172.16.0.1", "192.168.1.1", "100.64.0.1", "169.254.169.254",
        "169.254.1.1", "::1", "fd00::1", "fe80::1", "fd00:ec2::254", "::ffff:10.1.2.3",
    ];
    let wide = [
        "0.0.0.0/0:*", "[::/0]:*", "0.0.0.0/1:*", "128.0.0.0/1:*", "8.0.0.0/5:*", "10.0.0.0/7:*", "126.0.0.0/7:*",
        "160.0.0.0/3:*", "[8000::/1]:*", "[f800::/5]:*", "[::/8]:*",
    ];
    let written = format!("[network]\nallow = {wide:?}");
    let asks = format!("[network]\nask = {wide:?}");
    let rule = format!("[[rule]]\nwhen = {{ host = {wide:?} }}\nthen = \"allow\"\nwhy = \"x\"");
    for policy in [&written, &asks, &rule].map(|text| of(text)) {
        let gate = gate(&policy, &NetworkAsked::default());
        for address in home.map(|address| address.parse::<IpAddr>().expect("an address")) {
            let judgement = gate.leads_to(&to("a.example:80"), address);
            assert_eq!(
                (judgement.ruling, judgement.reasons[0].rule.as_str()),
                (Ruling::Deny, "network.private"),
                "{address}"
            );
        }
        // The internet is still open: a public address needs nobody's word beyond the opening's.
        assert_ne!(opens(&gate, "8.8.8.8:80").0, Ruling::Deny);
        assert_ne!(opens(&gate, "[2606:4700::1]:80").0, Ruling::Deny);
    }
    let policy = of("");
    let asked = gate(&policy, &asked(&["0.0.0.0/0:*", "[::/0]:*"]));
    assert_eq!(asked.leads_to(&to("10.0.0.1:80"), "10.0.0.1".parse().expect("one")).ruling, Ruling::Deny);
}

#[test]
fn a_block_that_means_an_address_grants_it() {
    for (block, address, means) in [
        ("10.0.0.0/8:*", "10.1.2.3", true),
        ("192.168.0.0/16:*", "192.168.1.1", true),
        ("172.16.0.0/12:*", "172.20.0.1", true),
        ("127.0.0.0/8:*", "127.0.0.1", true),
        ("[fc00::/7]:*", "fd12::1", true),
        ("[fd00::/8]:*", "fd12::1", true),
        ("[fe80::/10]:*", "fe80::1", true),
        ("[::1]:*", "::1", true),
        // What is told there is worth an entry of its own.
        ("169.254.0.0/16:*", "169.254.1.1", true),
        ("169.254.0.0/16:*", "169.254.169.254", false),
        ("169.254.169.254:*", "169.254.169.254", true),
        ("100.64.0.0/10:*", "100.100.100.200", false),
        ("[fd00::/8]:*", "fd00:ec2::254", false),
        ("[fd00:ec2::254]:*", "fd00:ec2::254", true),
    ] {
        let policy = of(&format!("[network]\nallow = [{block:?}, \"0.0.0.0/0:*\"]"));
        let ruling = gate(&policy, &NetworkAsked::default())
            .leads_to(&to("a.example:80"), address.parse().expect("an address"))
            .ruling;
        assert_eq!(ruling == Ruling::Allow, means, "{block} {address}");
    }
}

#[test]
fn a_secret_goes_where_it_was_asked_for_and_nowhere_else() {
    let policy = of(
        "[secrets.TOKEN]\nhosts = [\"api.example.org\"]\nsource = \"env:T\"\nvariable = \"T\"\n[network]\nallow = [\"*:*\"]",
    );
    let with = |secrets: &[&str]| NetworkAsked {
        secrets: secrets.iter().map(|one| (*one).to_owned()).collect(),
        ..Default::default()
    };
    let listed = gate(&policy, &with(&["TOKEN"]));
    assert_eq!(listed.secret("TOKEN", &to("api.example.org")).ruling, Ruling::Allow);
    // In the clear it would be everybody's.
    assert_eq!(listed.secret("TOKEN", &to("api.example.org:80")).ruling, Ruling::Deny);
    assert_eq!(listed.secret("TOKEN", &to("evil.org")).ruling, Ruling::Deny);
    assert_eq!(listed.secret("OTHER", &to("api.example.org")).ruling, Ruling::Deny);
    assert_eq!(opens(&listed, "api.example.org"), (Ruling::Allow, true));
    assert_eq!(opens(&listed, "b.org"), (Ruling::Allow, false));
    // Where the policy says where it may go, the flag can't send it elsewhere.
    assert_eq!(gate(&policy, &with(&["TOKEN@evil.org"])).secret("TOKEN", &to("evil.org")).ruling, Ruling::Deny);
    assert_eq!(gate(&policy, &with(&["FREE@b.org"])).secret("FREE", &to("b.org")).ruling, Ruling::Allow);
    let nowhere = GateRules::new(&policy, Principal::default(), Context::default(), &with(&["FREE"]));
    let refusal = nowhere.err().expect("nobody says where");
    assert!(refusal.hint.contains("--secret FREE@HOST") && refusal.hint.contains("[secrets.FREE]"), "{refusal:?}");
    assert_eq!(policy.secret_source("TOKEN"), Some("env:T"));
    for wrong in [
        "source = \"env:T\"\nttl = \"5m\"", "ttl = \"5m\"", "source = \"cmd:x\"\nttl = \"soon\"",
        "source = \"cmd:x\"\nttl = \"0s\"", "source = \"keyring:x\"",
    ] {
        let text = format!("version = 1\n[secrets.T]\n{wrong}\n");
        assert!(self::policy(None, &text, None).is_err(), "{wrong}");
    }
    let policy = of("[secrets.MINTED]\nsource = \"cmd:mint\"\nttl = \"5m\"\n[secrets.RING]\nsource = \"keyring\"");
    assert_eq!(policy.secret_ttl("MINTED"), Some(std::time::Duration::from_secs(300)));
    assert_eq!((policy.secret_ttl("RING"), policy.secret_source("RING")), (None, Some("keyring")));
    assert_eq!(policy.secret_source("FREE"), None);
}

#[test]
fn a_project_only_tightens_where_a_secret_goes() {
    let project = "version = 1\n[secrets.TOKEN]\nhosts = [\"a.org\"]";
    let joined = policy(None, "version = 1", Some((project, false))).expect("a policy");
    let wanted = NetworkAsked { secrets: vec!["TOKEN@b.org".to_owned()], ..Default::default() };
    assert_eq!(gate(&joined, &wanted).secret("TOKEN", &to("b.org")).ruling, Ruling::Deny);
    for key in ["source = \"cmd:evil\"", "variable = \"X\"", "prefix = \"x\""] {
        for trusted in [false, true] {
            let text = format!("version = 1\n[secrets.TOKEN]\n{key}");
            let message = policy(None, "version = 1", Some((&text, trusted))).err().expect("not for a project");
            assert!(message.contains("is not for a project's file"), "{message}");
        }
    }
}

#[test]
fn a_stranger_gives_nothing() {
    let project =
        "version = 1\n[network]\nallow = [\"a.org\"]\ngit = [\"b.org\"]\ndownload = [\"c.org\"]\nask = [\"d.org\"]";
    let joined = policy(None, "version = 1", Some((project, false))).expect("a policy");
    let gate = gate(&joined, &NetworkAsked::default());
    for host in ["a.org", "b.org", "c.org", "d.org"] {
        assert_eq!(opens(&gate, host).0, Ruling::Deny, "{host}");
    }
}

#[test]
fn bad_text_in_a_flag_is_named_with_the_fix() {
    let policy = Policy::built_in();
    for bad in
        ["https://a.org/x", "127.1", "a.org:0", "localhost", "a\0.org", "user@a.org", "10.0.0.1/8", "@nothing", ""]
    {
        let refusal = GateRules::new(&policy, Principal::default(), Context::default(), &asked(&[bad])).err();
        let refusal = refusal.unwrap_or_else(|| unreachable!("{bad:?} was taken"));
        assert!(!refusal.hint.is_empty() && refusal.message.contains(&*bad.escape_debug().to_string()), "{refusal:?}");
    }
}

/// Rules in another language that allow `a.org` to be looked at.
struct Looking;

impl ForeignRules for Looking {
    fn judge(&self, envelope: &Envelope) -> Vec<Reason> {
        let looks =
            matches!(&envelope.resource, Resource::Request { host, method, .. } if host == "a.org" && method == "GET");
        vec![Reason {
            ruling: if looks { Ruling::Allow } else { Ruling::Deny },
            rule: "other.looking".to_owned(),
            place: String::new(),
            why: "x".to_owned(),
            action: envelope.action,
            about: envelope.resource.to_string(),
            grant: "x".to_owned(),
        }]
    }

    fn speaks_of(&self, action: Action) -> bool {
        action == Action::Connect
    }

    fn reads_requests(&self) -> bool {
        true
    }

    fn count(&self) -> usize {
        1
    }
}

#[test]
fn rules_in_other_languages_are_heard_on_every_request() {
    let joined = Policy::assemble(Found {
        home: "/home/user",
        managed: None,
        user: Vec::new(),
        projects: Vec::new(),
        presets: &|_| Ok(None),
        foreign: vec![(Owner::User, Box::new(Looking))],
        revision: String::new(),
    });
    let joined = joined.expect("a policy");
    let gate = gate(&joined, &NetworkAsked::default());
    assert_eq!(opens(&gate, "a.org"), (Ruling::Allow, true));
    assert_eq!(gate.request(&request("GET", "a.org", "/")).ruling, Ruling::Allow);
    assert_eq!(gate.request(&request("POST", "a.org", "/")).ruling, Ruling::Deny);
    assert_eq!(gate.request(&request("GET", "b.org", "/")).ruling, Ruling::Deny);
    assert_eq!(gate.leads_to(&to("a.org"), "10.0.0.1".parse().expect("one")).ruling, Ruling::Deny);
    assert_eq!(opens(&gate, "10.0.0.1").0, Ruling::Deny);
}

const HOSTS: &[&str] = &["a.org", "b.a.org", "c.net", "localhost:80", "10.0.0.7", "127.0.0.1:80"];
const PATTERNS: &[&str] = &[
    "a.org", "a.org:22", "*.a.org", "*.a.org:*", "*", "*:*", "10.0.0.0/8", "10.0.0.7:22", "0.0.0.0/0:*", "localhost:80",
];

#[derive(Clone, Debug)]
struct Rules {
    lists: Vec<(&'static str, Vec<&'static str>)>,
    default: &'static str,
    rule: Option<(&'static str, &'static str, &'static str)>,
}

impl Rules {
    fn text(&self) -> String {
        let mut text = format!("version = 1\n[defaults]\nconnect = {:?}\n[network]\n", self.default);
        self.lists.iter().for_each(|(key, hosts)| text += &format!("{key} = {hosts:?}\n"));
        if let Some((host, when, then)) = self.rule {
            text += &format!("[[rule]]\nwhen = {{ host = {host:?}, {when} }}\nthen = {then:?}\nwhy = \"x\"\n");
        }
        text
    }
}

fn rules() -> impl Strategy<Value = Rules> {
    let list = |key: &'static str| subsequence(PATTERNS.to_vec(), 0..=2).prop_map(move |hosts| (key, hosts));
    let then = || select(vec!["allow", "ask", "deny"]);
    let when = select(vec!["method = \"GET\"", "url = \"/x/**\"", "method = [\"POST\", \"PUT\"], url = \"/x?*\""]);
    let rule = proptest::option::of((select(PATTERNS.to_vec()), when, then()));
    ((list("allow"), list("ask"), list("deny"), list("download"), list("git")), then(), rule).prop_map(
        |((allow, ask, deny, download, git), default, rule)| Rules {
            lists: vec![allow, ask, deny, download, git],
            default,
            rule,
        },
    )
}

fn wanted() -> impl Strategy<Value = NetworkAsked> {
    let texts = |list: Vec<&str>| list.into_iter().map(str::to_owned).collect::<Vec<_>>();
    let with = [PATTERNS, &["@pypi"]].concat();
    (subsequence(with, 0..=3), subsequence(PATTERNS.to_vec(), 0..=1)).prop_map(move |(allow, deny)| NetworkAsked {
        allow: texts(allow),
        deny: texts(deny),
        ..NetworkAsked::default()
    })
}

fn outgoing() -> impl Strategy<Value = OutgoingRequest> {
    let port = select(vec![443u16, 80, 22, 9]);
    let path =
        select(vec!["/", "/x/y", "/x?a", "/x/../y", "/r/git-upload-pack", "/r/info/refs?service=git-receive-pack"]);
    (select(HOSTS.to_vec()), port, select(vec!["GET", "POST", "PUT", "get"]), path).prop_map(
        |(host, port, method, path)| {
            let mut request = request(method, host, path);
            request.destination.port = port;
            request
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn name_connection_and_request_agree(user in rules(), managed in proptest::option::of(rules()), wanted in wanted(), request in outgoing()) {
        let joined = policy(managed.as_ref().map(Rules::text).as_deref(), &user.text(), None).expect("a policy");
        let gate = gate(&joined, &wanted);
        let opening = gate.opening(&request.destination);
        let opened = judged(&opening).ruling;
        if gate.request(&request).ruling != Ruling::Deny {
            prop_assert_ne!(opened, Ruling::Deny);
        }
        if let (Host::Name(name), true) = (&request.destination.host, opened != Ruling::Deny) {
            prop_assert!(gate.name(name).ruling <= opened);
        }
        // What is not read is the same for every request.
        if let Opening::Whole(judgement) = &opening && judgement.ruling != Ruling::Ask {
            prop_assert_eq!(gate.request(&request).ruling, judgement.ruling);
        }
        for judgement in [judged(&opening).clone(), gate.request(&request)] {
            let strictest = judgement.reasons.iter().map(|reason| reason.ruling).max();
            prop_assert_eq!(strictest, Some(judgement.ruling));
            prop_assert!(judgement.ruling != Ruling::Deny || !judgement.reasons[0].grant.is_empty());
        }
    }

    #[test]
    fn a_deny_wins_over_everything(user in rules(), wanted in wanted(), request in outgoing()) {
        let host = match &request.destination.host { Host::Name(name) if name.as_str() == "localhost" => return Ok(()), host => host.to_string() };
        let denied = format!("version = 1\n[network]\ndeny = [{host:?}]");
        for joined in [policy(Some(&denied), &user.text(), None), policy(None, &user.text(), Some((&denied, false)))] {
            let joined = joined.expect("a policy");
            let gate = gate(&joined, &wanted);
            prop_assert_eq!(judged(&gate.opening(&request.destination)).ruling, Ruling::Deny);
            prop_assert_eq!(gate.request(&request).ruling, Ruling::Deny);
            if let Host::Name(name) = &request.destination.host {
                prop_assert_eq!(gate.name(name).ruling, Ruling::Deny);
            }
        }
    }

    /// What is asked for never opens what the policy denies, nor a host beyond it.
    #[test]
    fn a_request_never_widens_what_the_policy_says(user in rules(), wanted in wanted(), request in outgoing()) {
        let policy = of(user.text().trim_start_matches("version = 1\n"));
        let resource = Resource::Request {
            host: request.destination.host.to_string(),
            port: request.destination.port,
            method: request.method.clone(),
            path: if request.query.is_empty() { request.path.clone() } else { format!("{}?{}", request.path, request.query) },
        };
        let envelope = Envelope { principal: Principal::default(), action: Action::Connect, resource, context: Context::default() };
        if policy.weigh(&envelope).ruling == Ruling::Deny {
            prop_assert_eq!(gate(&policy, &wanted).request(&request).ruling, Ruling::Deny);
        }
    }

    #[test]
    fn what_is_denied_by_a_flag_stays_closed(user in rules(), wanted in wanted(), request in outgoing()) {
        let policy = of(user.text().trim_start_matches("version = 1\n"));
        let before = gate(&policy, &NetworkAsked { deny: Vec::new(), ..wanted.clone() });
        let after = gate(&policy, &wanted);
        prop_assert!(after.request(&request).ruling >= before.request(&request).ruling);
        prop_assert!(judged(&after.opening(&request.destination)).ruling >= judged(&before.opening(&request.destination)).ruling);
    }

    #[test]
    fn no_text_of_a_flag_is_a_way_to_another_host(text in "[a-z0-9.*:/@%\\[\\]\\x00-]{0,20}", host in select(HOSTS.to_vec())) {
        let policy = Policy::built_in();
        let Ok(gate) = GateRules::new(&policy, Principal::default(), Context::default(), &asked(&[&text])) else { return Ok(()) };
        let plain = to(host).host.to_string();
        if judged(&gate.opening(&to(host))).ruling == Ruling::Allow {
            let bare = text.trim_start_matches('[');
            let is_it = bare.starts_with(&plain) || text.starts_with('*') || bare.contains('/') || text.starts_with("localhost") || text.starts_with("127.0.0.1");
            prop_assert!(is_it, "{text:?} opened {host}");
        }
    }
}

#[test]
fn no_list_an_empty_one_and_null_are_no_network() {
    for text in ["", "[network]", "[network]\nallow = []\nask = []\ndownload = []\ngit = []"] {
        let policy = of(text);
        for flags in ["{}", "{\"allow\": [], \"secrets\": []}"] {
            let wanted: NetworkAsked = serde_json::from_str(flags).expect("flags");
            let gate = gate(&policy, &wanted);
            for host in HOSTS {
                assert_eq!(opens(&gate, host).0, Ruling::Deny, "{text} {flags} {host}");
            }
        }
    }
    // TOML has no null, and what is none is an error, not a way out.
    assert!(policy(None, "version = 1\n[network]\nallow = \"\"", None).is_err());
}
