//! What is said about a policy file that is wrong, and where; and what its keys do.

use belljar_policy::{Found, Monitored, Owner, Policy, Source, lint};
use model::{Action, Context, Detector, Envelope, Principal, Resource, Response, Ruling};

const HOME: &str = "/home/user";

fn wrong(text: &str, owner: Owner) -> String {
    let remarks = lint(Source { file: "/p/policy.toml", text }, HOME, owner);
    let remark = remarks.into_iter().find(|remark| remark.is_error).expect("an error");
    format!("{}: {}", remark.place, remark.message)
}

#[test]
fn an_error_points_at_its_line() {
    let text = "version = 1\n\n[environment]\nset = { A = \"1\", \"B-C\" = \"2\" }\n";
    assert_eq!(wrong(text, Owner::User), "/p/policy.toml:4: environment.set: `B-C` is no name for a variable");
    let text = "version = 1\n[environment.set]\nA = \"1\"\nB = \"a\\u0000b\"\n";
    assert_eq!(wrong(text, Owner::User), "/p/policy.toml:4: environment.set.B has a zero byte in it");
    let text = "version = 1\n\n\n[secrets.\"a b\"]\nhosts = [\"example.org\"]\n";
    assert!(wrong(text, Owner::User).starts_with("/p/policy.toml:4: `a b` is no name for a secret"));
    let text = "version = 1\n\n[approvals]\n\nalways = true\n";
    assert!(wrong(text, Owner::Project).starts_with("/p/policy.toml:5: who is asked is not for a project's file"));
}

#[test]
fn what_the_guide_shows_is_a_policy() {
    let guide = include_str!("../../../docs/policy.md");
    let examples: Vec<&str> = guide.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert!(examples.len() >= 3, "{examples:?}");
    for example in examples {
        let version = if example.contains("version = 1") { "" } else { "version = 1\n" };
        let text = format!("{version}{example}");
        let read = Policy::of_one_file(Source { file: "docs/policy.md", text: &text }, HOME);
        assert_eq!(read.err().map(|bad| bad.to_string()), None);
    }
}

fn with_preset(preset: &str, text: &str) -> Result<Policy, String> {
    let presets = |name: &str| Ok((name == "own").then(|| ("own.toml".to_owned(), preset.to_owned())));
    Policy::assemble(Found {
        home: HOME,
        managed: None,
        user: vec![Source { file: "policy.toml", text }],
        projects: Vec::new(),
        presets: &presets,
        foreign: Vec::new(),
        revision: String::new(),
    })
    .map_err(|bad| bad.to_string())
}

fn ruling(policy: &Policy, action: Action, resource: Resource) -> Ruling {
    let context = Context { directory: "/project".to_owned(), home: HOME.to_owned(), ..Context::default() };
    policy.weigh(&Envelope { principal: Principal::default(), action, resource, context }).ruling
}

#[test]
fn a_preset_disables_rules_of_what_it_extends() {
    let push = || Resource::Shell("git push".to_owned());
    let text = "version = 1\nextends = [\"own\"]";
    let policy = with_preset("version = 1\nextends = [\"balanced\"]", text).expect("a policy");
    assert_eq!(ruling(&policy, Action::Exec, push()), Ruling::Ask);
    let preset = "version = 1\nextends = [\"balanced\"]\ndisable = [\"git.push\"]";
    let policy = with_preset(preset, text).expect("a policy");
    assert_eq!(ruling(&policy, Action::Exec, push()), Ruling::Allow);
    let preset = "version = 1\nextends = [\"balanced\"]\n\ndisable = [\"git.pusch\"]";
    let message = with_preset(preset, text).err().expect("an error");
    assert_eq!(message, "own.toml:4: no preset that is extended has a rule `git.pusch`; did you mean `git.push`?");
}

#[test]
fn examples_of_a_rule_about_sizes_have_one() {
    let with = |examples: &str| {
        let rule =
            "[[rule]]\nwhen = { action = [\"code\", \"release\"], larger_than = \"1M\" }\nthen = \"ask\"\nwhy = \"x\"";
        with_preset("version = 1", &format!("version = 1\n{rule}\n{examples}\n"))
    };
    let policy = with("matches = [\"python of 2M\"]\npasses = [\"python of 1M\", \"a of b of 3\"]").expect("a policy");
    let code = |bytes| Resource::Code { language: Some("python".to_owned()), bytes };
    assert_eq!(ruling(&policy, Action::Code, code(2 << 20)), Ruling::Ask);
    assert_eq!(ruling(&policy, Action::Code, code(1 << 20)), Ruling::Allow);
    let message = with("matches = [\"python\"]").err().expect("an error");
    assert_eq!(
        message,
        "policy.toml:6: the rule `rule.1` is about sizes, and its example `python` has none; write `python of 2M`"
    );
    assert!(with("matches = [\"python of much\"]").is_err());
    assert!(with("passes = [\"python of 2M\"]").is_err());
}

/// The same rule, over what links on most systems lead to.
#[test]
fn a_rule_on_a_link_is_a_rule_on_what_it_leads_to() {
    let text = "version = 1\n[[rule]]\nwhen = { action = [\"exec\", \"read\"], path = \"/var/run/x\" }\nthen = \"deny\"\nwhy = \"x\"";
    let policy = with_preset("version = 1", text).expect("a policy");
    for path in ["/run/x", "/var/run/x", "/run/x/y"] {
        assert_eq!(ruling(&policy, Action::Read, Resource::Path(path.to_owned())), Ruling::Deny, "{path}");
        assert_eq!(ruling(&policy, Action::Exec, Resource::Shell(format!("cat {path}"))), Ruling::Deny, "{path}");
    }
    assert_eq!(ruling(&policy, Action::Read, Resource::Path("/run/y".to_owned())), Ruling::Allow);
}

fn monitored(managed: Option<&str>, user: &str) -> Monitored {
    let policy = Policy::assemble(Found {
        home: HOME,
        managed: managed.map(|text| Source { file: "/etc/belljar/policy.toml", text }),
        user: vec![Source { file: "policy.toml", text: user }],
        projects: Vec::new(),
        presets: &|_| Ok(None),
        foreign: Vec::new(),
        revision: String::new(),
    });
    policy.expect("a policy that reads").monitored()
}

#[test]
fn of_what_follows_from_an_alert_the_strictest_wins() {
    let user = "version = 1\n[monitor]\ndefault = \"off\"\nmining = \"ask\"\nmining_after = \"1h\"\n";
    let alone = monitored(None, user);
    assert_eq!(alone.response(Detector::Rate), Response::Off);
    assert_eq!(alone.response(Detector::Mining), Response::Ask);
    let managed =
        "version = 1\n[monitor]\ndefault = \"throttle\"\nmining_after = \"5m\"\nwebhook = \"https://a.example/x\"\n";
    let both = monitored(Some(managed), user);
    assert_eq!(both.response(Detector::Rate), Response::Throttle);
    assert_eq!(both.response(Detector::Mining), Response::Ask);
    assert_eq!(both.mining_after, Some(std::time::Duration::from_secs(300)));
    assert_eq!(both.webhooks, ["https://a.example/x"]);
    assert_eq!(monitored(None, "version = 1\n").response(Detector::Scan), Response::Alert);
    assert_eq!(Policy::built_in().monitored().response(Detector::Scan), Response::Alert);
}

#[test]
fn what_is_wrong_with_the_monitor_is_said_with_its_line() {
    let text = "version = 1\n[monitor]\nmining = \"suspended\"\n";
    assert!(
        wrong(text, Owner::User).starts_with("/p/policy.toml:3: `suspended` is no response of the monitor; did you")
    );
    let text = "version = 1\n[monitor]\nwebhook = \"http://a.example\"\n";
    assert!(wrong(text, Owner::User).contains("is no address; write `https://host/path`"));
    let text = "version = 1\n\n[monitor]\ndefault = \"off\"\n";
    assert!(wrong(text, Owner::Project).starts_with("/p/policy.toml:4: who is watched, and what follows, is not for"));
    let text = "version = 1\n[monitor]\nminning = \"ask\"\n";
    assert!(wrong(text, Owner::User).contains("minning"));
}
