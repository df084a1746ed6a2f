//! What each level says to commands as coding agents run them: `commands.txt`, of which every line was looked at.
//!
//! A line is the answers of `locked`, `balanced` and `open`, the rule that decided in `balanced` (`-` is its default), and
//! after `$` the command, in which `\n` begins a new line. `RENEW_TABLE=1` writes the answers anew; then read the diff.

use std::fmt::Write;

use belljar_policy::{Policy, Source, preset_names};
use model::{Action, Context, Envelope, Judgement, Principal, Resource, Ruling};

const TABLE: &str = include_str!("commands.txt");
const LEVELS: [&str; 3] = ["locked", "balanced", "open"];
const HOME: &str = "/home/user";

/// What a heading says of the commands below it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// What agents do all day; few questions, no refusals.
    Ordinary,
    /// What leaves the sandbox, hides what it does or can't be meant; never without a question.
    Dangerous,
    /// Some of each.
    Mixed,
}

struct Row<'a> {
    line: usize,
    kind: Kind,
    answers: Vec<&'a str>,
    rule: &'a str,
    written: &'a str,
}

impl Row<'_> {
    fn command(&self) -> String {
        self.written.replace(r"\n", "\n")
    }
}

fn kind_of(heading: &str) -> Option<Kind> {
    let kinds = [("[ordinary]", Kind::Ordinary), ("[dangerous]", Kind::Dangerous), ("[mixed]", Kind::Mixed)];
    kinds.into_iter().find(|(mark, _)| heading.ends_with(mark)).map(|(_, kind)| kind)
}

fn rows() -> Vec<Row<'static>> {
    let mut kind = Kind::Mixed;
    let mut rows = Vec::new();
    for (number, line) in TABLE.lines().enumerate() {
        if line.starts_with('#') {
            kind = kind_of(line).expect("a heading that is marked [ordinary], [dangerous] or [mixed]");
        } else if !line.is_empty() {
            let (before, written) = line.split_once("$ ").expect("a command after `$ `");
            let mut words = before.split_whitespace();
            let answers = words.by_ref().take(LEVELS.len()).collect();
            rows.push(Row { line: number + 1, kind, answers, rule: words.next().unwrap_or(""), written });
        }
    }
    rows
}

fn policy(extends: &[&str]) -> Policy {
    let text = format!("version = 1\nextends = {extends:?}");
    Policy::of_one_file(Source { file: "policy.toml", text: &text }, HOME).expect("presets that read")
}

fn envelope(action: Action, resource: Resource) -> Envelope {
    Envelope {
        principal: Principal { user: "user".to_owned(), agent: Some("claude-code".to_owned()) },
        action,
        resource,
        context: Context {
            directory: format!("{HOME}/project"),
            home: HOME.to_owned(),
            workspaces: vec![format!("{HOME}/project")],
            ..Context::default()
        },
    }
}

fn judged(policy: &Policy, command: &str) -> Judgement {
    policy.weigh(&envelope(Action::Exec, Resource::Shell(command.to_owned())))
}

/// The rule that decided, as the table names it.
fn decided(judgement: &Judgement) -> &str {
    match judgement.reasons[0].rule.as_str() {
        "defaults.exec" => "-",
        rule => rule,
    }
}

#[test]
fn each_level_answers_as_the_table_says() {
    let levels = LEVELS.map(|level| policy(&[level]));
    if std::env::var_os("RENEW_TABLE").is_some() {
        return renew(&levels);
    }
    let mut wrong = String::new();
    for row in rows() {
        let judgements: Vec<Judgement> = levels.iter().map(|level| judged(level, &row.command())).collect();
        let answers: Vec<&str> = judgements.iter().map(|judgement| judgement.ruling.name()).collect();
        let rule = decided(&judgements[1]);
        if answers != row.answers || rule != row.rule {
            let Row { line, answers: wanted, rule: wanted_rule, written, .. } = row;
            let (wanted, answers) = (wanted.join(" "), answers.join(" "));
            writeln!(wrong, "{line}: {written}\n    wanted {wanted} ({wanted_rule}), found {answers} ({rule})")
                .expect("a string takes all");
        }
    }
    assert!(wrong.is_empty(), "the table says otherwise:\n{wrong}");
}

fn renew(levels: &[Policy]) {
    let mut renewed = String::new();
    for line in TABLE.lines() {
        let Some((_, written)) = line.split_once("$ ").filter(|_| !line.starts_with('#')) else {
            renewed.push_str(line);
            renewed.push('\n');
            continue;
        };
        let judgements: Vec<Judgement> =
            levels.iter().map(|level| judged(level, &written.replace(r"\n", "\n"))).collect();
        let answers: Vec<&str> = judgements.iter().map(|judgement| judgement.ruling.name()).collect();
        let rule = decided(&judgements[1]);
        writeln!(renewed, "{:5} {:5} {:5}  {rule:16} $ {written}", answers[0], answers[1], answers[2])
            .expect("a string takes all");
    }
    std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/commands.txt"), renewed).expect("the table is written");
}

#[test]
fn ordinary_work_is_hardly_ever_interrupted() {
    let rows = rows();
    let ordinary: Vec<&Row<'_>> = rows.iter().filter(|row| row.kind == Kind::Ordinary).collect();
    let balanced = policy(&["balanced"]);
    let ruled = |ruling: Ruling| -> Vec<&str> {
        let found = ordinary.iter().filter(|row| judged(&balanced, &row.command()).ruling == ruling);
        found.map(|row| row.written).collect()
    };
    assert!(ordinary.len() >= 180, "the table has only {} ordinary commands", ordinary.len());
    assert_eq!(ruled(Ruling::Deny), Vec::<&str>::new());
    let asked = ruled(Ruling::Ask);
    assert!(asked.len() * 100 <= ordinary.len() * 3, "{} of {} ask: {asked:#?}", asked.len(), ordinary.len());
}

#[test]
fn nothing_dangerous_is_done_without_a_question() {
    let rows = rows();
    let dangerous: Vec<&Row<'_>> = rows.iter().filter(|row| row.kind == Kind::Dangerous).collect();
    assert!(dangerous.len() >= 100, "the table has only {} dangerous commands", dangerous.len());
    for level in ["locked", "balanced"] {
        let level = policy(&[level]);
        let allowed: Vec<&str> = dangerous
            .iter()
            .filter(|row| judged(&level, &row.command()).ruling == Ruling::Allow)
            .map(|row| row.written)
            .collect();
        assert_eq!(allowed, Vec::<&str>::new());
    }
}

#[test]
fn the_table_is_long_enough_and_says_nothing_twice() {
    let rows = rows();
    assert!(rows.len() >= 320, "the table has only {} commands", rows.len());
    let mut commands: Vec<&str> = rows.iter().map(|row| row.written).collect();
    commands.sort_unstable();
    let twice: Vec<&[&str]> = commands.windows(2).filter(|pair| pair[0] == pair[1]).collect();
    assert_eq!(twice, Vec::<&[&str]>::new());
}

/// `locked` is never looser than `balanced`, nor that than `open`.
#[test]
fn each_level_is_stricter_than_the_next() {
    let levels = LEVELS.map(|level| policy(&[level]));
    for row in rows() {
        let [locked, balanced, open] = levels.each_ref().map(|level| judged(level, &row.command()).ruling);
        assert!(locked >= balanced && balanced >= open, "{}", row.written);
    }
}

/// Languages and agents are about files, hosts and variables: they change no answer to a command. All at once, since of
/// what they could say the strictest would win.
#[test]
fn languages_and_agents_change_no_answer_to_a_command() {
    let others: Vec<&str> = preset_names().into_iter().filter(|name| !LEVELS.contains(name)).collect();
    assert!(others.len() >= 10, "{others:?}");
    for level in LEVELS {
        let alone = policy(&[level]);
        let together = policy(&[vec![level], others.clone()].concat());
        for row in rows() {
            let (wanted, found) = (judged(&alone, &row.command()), judged(&together, &row.command()));
            assert_eq!((found.ruling, decided(&found)), (wanted.ruling, decided(&wanted)), "{level}: {}", row.written);
        }
    }
    // Only a default could make anything looser.
    for other in others {
        let text = written(other);
        assert!(!text.contains("[defaults]") && !text.contains("disable") && !text.contains("[[rule]]"), "{other}");
    }
}

/// As people read it, with its examples.
fn written(name: &str) -> String {
    let file = format!("{}/presets/{name}.toml", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(file).expect("a preset is a file")
}

/// As a file of one's own, a preset's examples are tried; as a preset they are taken as read.
#[test]
fn the_examples_of_every_preset_hold() {
    let wrong = preset_names().into_iter().filter_map(|name| {
        let text = written(name);
        Policy::of_one_file(Source { file: name, text: &text }, HOME).err().map(|bad| bad.to_string())
    });
    assert_eq!(wrong.collect::<Vec<_>>(), Vec::<String>::new());
}

#[test]
fn every_rule_of_a_preset_has_examples_on_both_sides() {
    for name in preset_names() {
        let text = written(name);
        for rule in text.split("[[rule]]").skip(1) {
            let has = |key: &str| rule.lines().any(|line| line.starts_with(key) && !line.ends_with("[]"));
            assert!(has("id = ") && has("matches = [") && has("passes = ["), "{name}:{rule}");
        }
    }
}

/// `Policy::built_in` is known by heart; what it says is what `open.toml` says.
#[test]
fn without_a_policy_open_holds() {
    let (open, built_in) = (policy(&["open"]), Policy::built_in());
    let path = || Resource::Path(format!("{HOME}/elsewhere"));
    let of_actions = Action::ALL.map(|action| {
        let resource = match action {
            Action::Exec => Resource::Command(vec!["git".to_owned(), "push".to_owned()]),
            Action::Code => Resource::Code { language: Some("python".to_owned()), bytes: 1 << 30 },
            Action::Read | Action::Write | Action::Commit => path(),
            Action::Environment => Resource::Variable("TOKEN".to_owned()),
            Action::Gap => Resource::Wall("memory".to_owned()),
            Action::Connect => Resource::Host { name: "example.org".to_owned(), port: 443 },
            Action::SecretUse => Resource::Secret { name: "TOKEN".to_owned(), host: "example.org".to_owned() },
            Action::Release => Resource::Artifact { name: "x".to_owned(), bytes: 1 << 30 },
        };
        envelope(action, resource)
    });
    let of_table = rows().into_iter().map(|row| envelope(Action::Exec, Resource::Shell(row.command())));
    for envelope in of_actions.into_iter().chain(of_table) {
        let (wanted, found) = (built_in.weigh(&envelope), open.weigh(&envelope));
        assert_eq!(found.ruling, wanted.ruling, "{envelope:?}");
        assert_eq!(found.reasons[0].rule, wanted.reasons[0].rule, "{envelope:?}");
    }
    assert_eq!(open.limits(), built_in.limits());
    assert_eq!(open.approving(), built_in.approving());
    assert_eq!(open.minimum(), built_in.minimum());
    assert_eq!(open.accepted_missing(), built_in.accepted_missing());
    assert_eq!(open.read().count() + open.write().count() + open.hide().count() + open.protect().count(), 0);
}
