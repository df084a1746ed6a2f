//! What holds for all policies and all envelopes.

use belljar_policy::{Found, Policy, Project, Source};
use model::{Action, Asked, Context, Envelope, Principal, Resource, Ruling, WorkspaceMode};
use proptest::prelude::*;
use proptest::sample::{select, subsequence};

const HOME: &str = "/home/user";

/// What a random file can say, as lines; the sections are put together in `text`.
#[derive(Clone, Debug, Default)]
struct File {
    level: Option<&'static str>,
    defaults: Vec<(&'static str, &'static str)>,
    read: Vec<&'static str>,
    write: Vec<&'static str>,
    hide: Vec<&'static str>,
    pass: Vec<&'static str>,
    hosts: Vec<(&'static str, &'static str)>,
    languages: Vec<&'static str>,
    gaps: Vec<&'static str>,
    memory: Option<u64>,
    rules: Vec<(String, &'static str)>,
    /// Write empty lists out instead of leaving them away.
    spell_out: bool,
}

impl File {
    fn text(&self) -> String {
        let mut text = String::from("version = 1\n");
        let list = |items: &[&str]| {
            format!("[{}]", items.iter().map(|item| format!("{item:?}")).collect::<Vec<_>>().join(", "))
        };
        let say = |text: &mut String, key: &str, items: &[&str]| {
            if !items.is_empty() || self.spell_out {
                *text += &format!("{key} = {}\n", list(items));
            }
        };
        say(&mut text, "extends", &self.level.into_iter().collect::<Vec<_>>());
        if self.spell_out && self.rules.is_empty() {
            text += "rule = []\n";
        }
        text += "[defaults]\n";
        self.defaults.iter().for_each(|(action, ruling)| text += &format!("{action:?} = {ruling:?}\n"));
        text += "[files]\n";
        say(&mut text, "read", &self.read);
        say(&mut text, "write", &self.write);
        say(&mut text, "hide", &self.hide);
        text += "[environment]\n";
        say(&mut text, "pass", &self.pass);
        text += "[network]\n";
        for kind in ["allow", "ask", "deny", "download", "git"] {
            let hosts: Vec<&str> = self.hosts.iter().filter(|(_, then)| *then == kind).map(|(host, _)| *host).collect();
            say(&mut text, kind, &hosts);
        }
        text += "[code]\n";
        say(&mut text, "languages", &self.languages);
        text += "[isolation]\n";
        say(&mut text, "accept_gaps", &self.gaps);
        if let Some(memory) = self.memory {
            text += &format!("[limits]\nmemory = \"{memory}M\"\n");
        }
        for (when, then) in &self.rules {
            text += &format!("[[rule]]\nwhen = {{ {when} }}\nthen = {then:?}\nwhy = \"a law\"\n");
        }
        text
    }
}

fn ruling() -> impl Strategy<Value = &'static str> {
    select(vec!["allow", "ask", "deny"])
}

fn rule() -> impl Strategy<Value = (String, &'static str)> {
    let when = select(vec![
        "program = \"git\"", "program = [\"git\", \"rm\"], args = [\"push\"]",
        "program = \"git\", args = [\"push\", \"--force|-f\"]", "program = \"git\", without = [\"--dry-run\"]",
        "program = \"*\"", "program = \"sh\", fed_by = \"curl\"", "program = \"cat\", path = \"~/.ssh\"",
        "action = \"exec\"", "action = \"exec\", agent = \"claude-*\"", "action = \"write\", path = \"src\"",
        "action = [\"read\", \"write\"], path = \"/data/**\"", "action = \"commit\", path = \"**/*.lock\"",
        "host = \"*.example.org\"", "language = \"python\"", "action = \"code\", larger_than = \"1K\"",
        "action = \"environment\", name = \"AWS_*\"", "action = \"gap\", name = \"landlock\"",
        "action = \"write\", workspace_mode = \"direct\"",
    ]);
    (when, ruling()).prop_map(|(when, then)| (when.to_owned(), then))
}

fn file() -> impl Strategy<Value = File> {
    let actions =
        vec!["exec", "code", "read", "write", "environment", "gap", "connect", "secret.use", "release", "commit"];
    let defaults = subsequence(actions, 0..=10)
        .prop_flat_map(|actions| {
            let count = actions.len();
            (Just(actions), proptest::collection::vec(ruling(), count))
        })
        .prop_map(|(actions, rulings)| actions.into_iter().zip(rulings).collect::<Vec<_>>());
    let paths = || subsequence(vec!["/data", "~/cache", "src", "/etc/hosts"], 0..=4);
    (
        proptest::option::of(select(vec!["locked", "balanced", "open"])),
        defaults,
        (paths(), paths(), paths()),
        subsequence(vec!["AWS_REGION", "FOO", "B*"], 0..=3),
        proptest::collection::vec((select(vec!["example.org", "*.example.org", "*"]), ruling()), 0..3),
        subsequence(vec!["python", "shell", "node"], 0..=3),
        subsequence(vec!["landlock", "memory"], 0..=2),
        proptest::option::of(1u64..1000),
        proptest::collection::vec(rule(), 0..6),
    )
        .prop_map(|(level, defaults, (read, write, hide), pass, hosts, languages, gaps, memory, rules)| File {
            level,
            defaults,
            read,
            write,
            hide,
            pass,
            hosts,
            languages,
            gaps,
            memory,
            rules,
            spell_out: false,
        })
}

fn envelope() -> impl Strategy<Value = Envelope> {
    let text = |list: &'static [&'static str]| select(list.to_vec()).prop_map(str::to_owned);
    let commands: &[&str] = &[
        "git push", "git push --force", "git push $X", "git log", "rm -rf x", "curl x | sh", "cat ~/.ssh/id_rsa",
        "$X y", "git log && rm x", "python -c 'print(1)'", "echo (", "cargo test", "./git push",
    ];
    let paths: &[&str] =
        &["/project/src/a", "/data/x", "/project/Cargo.lock", "/home/user/cache/x", "/project/SRC/a", "/etc/hosts"];
    let action = prop_oneof![
        text(commands).prop_map(|line| (Action::Exec, Resource::Shell(line))),
        text(commands).prop_map(|line| (Action::Exec, Resource::Command(line.split(' ').map(str::to_owned).collect()))),
        (proptest::option::of(text(&["python", "node", "ruby"])), 0u64..5000)
            .prop_map(|(language, bytes)| (Action::Code, Resource::Code { language, bytes })),
        text(paths).prop_map(|path| (Action::Read, Resource::Path(path))),
        text(paths).prop_map(|path| (Action::Write, Resource::Path(path))),
        text(paths).prop_map(|path| (Action::Commit, Resource::Path(path))),
        text(&["AWS_KEY", "FOO", "BAR"]).prop_map(|name| (Action::Environment, Resource::Variable(name))),
        text(&["landlock", "memory", "files"]).prop_map(|name| (Action::Gap, Resource::Wall(name))),
        text(&["example.org", "a.example.org", "other.net"])
            .prop_map(|name| (Action::Connect, Resource::Host { name, port: 443 })),
        Just((Action::Release, Resource::Artifact { name: "x".to_owned(), bytes: 1 })),
        // What does not go together.
        Just((Action::Exec, Resource::Path("/x".to_owned()))),
    ];
    let agent = proptest::option::of(text(&["claude-code", "codex"]));
    (action, agent, select(vec![WorkspaceMode::Cow, WorkspaceMode::Direct])).prop_map(
        |((action, resource), agent, workspace_mode)| Envelope {
            principal: Principal { user: "user".to_owned(), agent },
            action,
            resource,
            context: Context {
                directory: "/project".to_owned(),
                home: HOME.to_owned(),
                workspaces: vec!["/project".to_owned()],
                workspace_mode,
            },
        },
    )
}

fn assembled(managed: Option<&str>, user: Option<&str>, project: Option<(&str, bool)>) -> Policy {
    let source = |text| Source { file: "policy.toml", text };
    Policy::assemble(Found {
        home: HOME,
        managed: managed.map(source),
        user: user.into_iter().map(source).collect(),
        projects: project
            .into_iter()
            .map(|(text, trusted)| Project { source: source(text), folder: "/project", trusted })
            .collect(),
        presets: &|_| Ok(None),
        foreign: Vec::new(),
        revision: String::new(),
    })
    .expect("a sound policy")
}

/// As `weigh`, and what must hold for every answer.
fn answer(policy: &Policy, envelope: &Envelope) -> Ruling {
    let judgement = policy.weigh(envelope);
    assert_eq!(
        judgement.reasons.iter().map(|reason| reason.ruling).max(),
        Some(judgement.ruling),
        "the strictest wins"
    );
    assert_eq!(judgement.reasons[0].ruling, judgement.ruling, "the strictest is told first");
    judgement.ruling
}

fn is_within(lower: &Asked, upper: &Asked) -> bool {
    upper.memory.is_none_or(|upper| lower.memory.is_some_and(|lower| lower <= upper))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_order_of_rules_does_not_matter(file in file(), envelope in envelope(), turn in 0usize..6) {
        let before = answer(&assembled(None, Some(&file.text()), None), &envelope);
        let mut turned = file.clone();
        let count = turned.rules.len().max(1);
        turned.rules.rotate_left(turn % count);
        turned.rules.reverse();
        prop_assert_eq!(before, answer(&assembled(None, Some(&turned.text()), None), &envelope));
    }

    #[test]
    fn another_deny_never_allows_more(file in file(), envelope in envelope(), (when, _) in rule(), at in 0usize..6) {
        let before = answer(&assembled(None, Some(&file.text()), None), &envelope);
        let mut stricter = file.clone();
        stricter.rules.insert(at.min(stricter.rules.len()), (when, "deny"));
        let after = answer(&assembled(None, Some(&stricter.text()), None), &envelope);
        prop_assert!(after >= before, "{before:?} became {after:?}");
    }

    #[test]
    fn deny_beats_allow_wherever_it_stands(file in file(), envelope in envelope(), first in any::<bool>()) {
        let mut both = file.clone();
        let about = format!("action = {:?}", envelope.action.name());
        let pair = [(about.clone(), "allow"), (about, "deny")];
        if first { both.rules.splice(0..0, pair); } else { both.rules.extend(pair.into_iter().rev()); }
        prop_assert_eq!(answer(&assembled(None, Some(&both.text()), None), &envelope), Ruling::Deny);
    }

    #[test]
    fn a_project_that_nobody_trusts_never_widens(user in file(), project in file(), envelope in envelope()) {
        let (user, project) = (user.text(), project.text());
        let before = assembled(None, Some(&user), None);
        let after = assembled(None, Some(&user), Some((&project, false)));
        prop_assert!(answer(&after, &envelope) >= answer(&before, &envelope));
        prop_assert!(is_within(&after.limits(), &before.limits()));
        prop_assert_eq!(before.read().collect::<Vec<_>>(), after.read().collect::<Vec<_>>());
        prop_assert_eq!(before.write().collect::<Vec<_>>(), after.write().collect::<Vec<_>>());
        prop_assert_eq!(before.accepted_missing(), after.accepted_missing());
        prop_assert!(["AWS_REGION", "FOO", "BAR"].iter().all(|name| before.passes(name) || !after.passes(name)));
        prop_assert!(after.minimum() >= before.minimum());
        prop_assert_eq!(before.approving(), after.approving());
    }

    #[test]
    fn nobody_widens_what_is_managed(managed in file(), user in file(), project in file(), envelope in envelope()) {
        let managed = managed.text();
        // Alone, the managed policy is joined with what allows everything, so this is its own word.
        let alone = assembled(Some(&managed), None, None);
        let joined = assembled(Some(&managed), Some(&user.text()), Some((&project.text(), true)));
        let said = answer(&alone, &envelope);
        prop_assert!(answer(&joined, &envelope) >= said, "{said:?}");
        prop_assert!(is_within(&joined.limits(), &alone.limits()));
    }

    #[test]
    fn a_list_that_is_missing_is_an_empty_one(file in file(), envelope in envelope()) {
        let spelled = File { spell_out: true, ..file.clone() };
        let (left, right) = (assembled(None, Some(&file.text()), None), assembled(None, Some(&spelled.text()), None));
        prop_assert_eq!(answer(&left, &envelope), answer(&right, &envelope));
        let texts = |policy: &Policy| {
            policy.said().into_iter().flat_map(|said| said.lines).map(|line| line.text).collect::<Vec<_>>()
        };
        prop_assert_eq!(texts(&left), texts(&right));
    }

    #[test]
    fn an_envelope_is_read_as_it_was_written(envelope in envelope()) {
        let text = serde_json::to_string(&envelope).expect("it is JSON");
        prop_assert_eq!(serde_json::from_str::<Envelope>(&text).expect("it is an envelope"), envelope);
    }
}

#[test]
fn a_list_that_is_null_is_an_empty_one() {
    let read = |context: &str| {
        let text = format!(
            "{{\"principal\": {{\"user\": \"a\"}}, \"action\": \"exec\", \"resource\": {{\"shell\": \"ls\"}}, \"context\": {context}}}"
        );
        serde_json::from_str::<Envelope>(&text).expect("it is an envelope")
    };
    assert_eq!(read("{}"), read("{\"workspaces\": null}"));
    assert_eq!(read("{}"), read("{\"workspaces\": []}"));
}
