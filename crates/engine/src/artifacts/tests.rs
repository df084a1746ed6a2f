//! What the gate says, and what is looked into.

use std::path::PathBuf;

use model::{Finding, Severity, Spot};
use policy::Source;

use super::*;

/// Finds the same in everything.
struct Finds(Option<Severity>);

impl Examiner for Finds {
    fn examine(&self, name: &str, _: &File, _: u64) -> Result<Examined, Trouble> {
        let finding = |severity| Finding {
            rule: "secret.test".to_owned(),
            class: "secret".to_owned(),
            severity,
            cwe: None,
            message: "there is a secret in it".to_owned(),
            fix: String::new(),
            at: Spot { name: name.to_owned(), ..Spot::default() },
            excerpt: String::new(),
        };
        Ok(Examined { kind: "text/plain".to_owned(), findings: self.0.map(finding).into_iter().collect() })
    }
}

struct Fails;

impl Examiner for Fails {
    fn examine(&self, _: &str, _: &File, _: u64) -> Result<Examined, Trouble> {
        Err(Trouble { message: "the worker died".to_owned(), fix: "see why".to_owned() })
    }
}

/// Looks into nothing: everything is bytes.
struct Unexamined;

impl Examiner for Unexamined {
    fn examine(&self, _: &str, _: &File, _: u64) -> Result<Examined, Trouble> {
        Ok(Examined { kind: UNKNOWN_KIND.to_owned(), findings: Vec::new() })
    }
}

fn gate<'a>(text: &str, examiner: &'a dyn Examiner) -> Gate<'a> {
    let text = format!("version = 1\n{text}");
    let policy = Policy::of_one_file(Source { file: "policy.toml", text: &text }, "/home/u");
    let policy = policy.map_err(|_| text.clone()).expect("it is a policy");
    let (principal, context) = (Principal::default(), Context::default());
    Gate { policy, principal, context, examiner, seen: RefCell::default() }
}

fn within_says(text: &str, examiner: &dyn Examiner) -> Option<Withheld> {
    let contents = File::open("/dev/null").expect("it is there");
    gate(text, examiner).within("out/a", &contents, 0).1
}

#[test]
fn findings_withhold_what_they_are_about_as_the_policy_says() {
    let rules = "[findings]\nhigh = \"ask\"\ncritical = \"deny\"\nlow = \"allow\"\n";
    assert_eq!(within_says(rules, &Finds(None)), None);
    assert_eq!(within_says(rules, &Finds(Some(Severity::Low))), None);
    let asked = within_says(rules, &Finds(Some(Severity::High))).expect("it is withheld");
    assert!(asked.reason.starts_with("a person would have to agree: there is a secret in it"), "{asked:?}");
    let denied = within_says(rules, &Finds(Some(Severity::Critical))).expect("it is withheld");
    assert!(denied.rule.starts_with("findings.critical"), "{denied:?}");
    let ignored = format!("{rules}ignore = [\"secret.*\"]\n");
    assert_eq!(within_says(&ignored, &Finds(Some(Severity::Critical))), None);
}

#[test]
fn what_could_not_be_examined_is_withheld_whatever_the_policy_says() {
    let withheld = within_says("extends = [\"open\"]\n", &Fails).expect("it is withheld");
    assert_eq!(withheld.rule, "artifacts.examined");
    assert!(withheld.reason.contains("the worker died"));
}

#[test]
fn the_largest_is_ours_unless_a_policy_says_its_own() {
    assert_eq!(gate("", &Unexamined).largest(), LARGEST);
    let own = gate("[release]\nlargest = \"500M\"\n", &Unexamined);
    assert_eq!(own.largest(), TOTAL);
    assert_eq!(own.at_sight("out/a", 500 << 20), None);
    let withheld = own.at_sight("out/a", (500 << 20) + 1).expect("it is too large");
    assert!(withheld.rule.starts_with("release.largest"), "{withheld:?}");
}

#[test]
fn silence_and_a_no_by_name_withhold_before_anything_is_read() {
    let rule = "[[rule]]\nwhen = { action = \"release\", name = \"*.pem\" }\nthen = \"deny\"\nwhy = \"keys stay\"\n";
    let gate = gate(rule, &Unexamined);
    assert_eq!(gate.at_sight("out/a.txt", 1), None);
    assert_eq!(gate.at_sight("out/A.PEM", 1).expect("it is withheld").reason, "keys stay");
    assert_eq!(gate.seen.borrow().len(), 2, "what was asked is recorded");
}

#[test]
fn an_absolute_pattern_means_the_workspace_it_is_in_and_no_neighbour() {
    let request = |text: &str| Request { artifacts: vec![text.to_owned()], ..Request::default() };
    let count = |text: &str, workspace: &str| wanted(&request(text), Path::new(workspace)).patterns.len();
    assert_eq!(count("/a/b/out", "/a/b"), 1);
    assert_eq!(count("/a/b", "/a/b"), 1);
    assert_eq!(count("/a/bout", "/a/b"), 0);
    assert_eq!(count("/a", "/a/b"), 0);
    assert_eq!(count("out", "/a/b"), 1);
    let wanted = wanted(&request("/a/b"), Path::new("/a/b"));
    assert!(wanted.patterns[0].means(wanted.patterns[0].along(b"any/thing")));
}

#[test]
fn what_is_in_a_writable_place_and_not_for_the_run_is_excepted() {
    let place = |path: &str, access, origin| Place { path: path.into(), access, folder: true, origin, owner: (7, 7) };
    let files = Files {
        ground: model::Ground::Host,
        places: vec![
            place("/w", Access::Write, Origin::Workspace),
            place("/w/read", Access::Read, Origin::Asked),
            place("/elsewhere", Access::Write, Origin::Asked),
            place("/l", Access::Layered, Origin::Workspace),
            place("/l/direct", Access::Write, Origin::Asked),
        ],
        links: Vec::new(),
        hidden: vec![("/w/.env".into(), false), ("/l/.env".into(), false)],
        home: PathBuf::from("/home/u"),
        user_name: "u".to_owned(),
    };
    let found = writable(&files, &[Path::new("/w"), Path::new("/l")]);
    let told: Vec<_> = found.iter().map(|one| (one.workspace, one.place, one.except.clone(), one.owner)).collect();
    let path = Path::new;
    assert_eq!(
        told,
        [
            (path("/w"), path("/w"), vec![path("/w/read"), path("/w/.env")], 7),
            (path("/l"), path("/l/direct"), vec![], 7)
        ]
    );
}
