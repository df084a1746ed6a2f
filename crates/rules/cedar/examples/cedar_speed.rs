//! How long rules in Cedar take, for `cargo xtask bench policy`: a JSON object of samples in nanoseconds on standard
//! output.

#[path = "../../../../xtask/src/bench/sampled.rs"]
mod sampled;

use cedar::Cedar;
use model::{Action, Context, Envelope, Principal, Resource, RuleLanguage, RuleText};
use sampled::{report, sampled};

fn main() {
    let runs = std::env::args().nth(1).and_then(|number| number.parse().ok()).unwrap_or(100);
    let (few, many) = (policies(50), policies(200));
    let read = |text: &str| Cedar.read(&[RuleText { file: "org.cedar", text }]).ok();
    let mut samples = serde_json::Map::new();
    let again = |text: &str| Cedar.read_again(&[RuleText { file: "org.cedar", text }]).ok();
    // The first in a process costs more: Cedar makes its parsers. Texts are checked once, and not at every start.
    samples.insert("load 50 rules in Cedar".to_owned(), sampled(runs, || again(&few)).into());
    samples.insert("load and check 50 rules in Cedar".to_owned(), sampled(runs, || read(&few)).into());
    let rules = read(&many);
    for (what, envelope) in questions() {
        let times = sampled(runs, || rules.as_ref().map(|rules| rules.judge(&envelope)));
        samples.insert(format!("verdict on {what}, 200 rules in Cedar"), times.into());
    }
    report(&serde_json::Value::Object(samples));
}

/// As many for each action.
fn policies(count: usize) -> String {
    let one = |at: usize| {
        let action = Action::ALL[at % Action::ALL.len()];
        let (effect, number) = (["permit", "forbid", "@ask permit", "permit"][at / 10 % 4], at / 10);
        let condition = match action {
            Action::Exec => format!("resource.program == \"p{number}\" && !resource.arguments.contains(\"--force\")"),
            Action::Code => format!("resource.language == \"l{number}\" && resource.bytes < 100000"),
            Action::Read | Action::Write | Action::Commit => {
                format!("resource in Path::\"/project/p{number}\" && resource.extension != \"key\"")
            }
            Action::Connect | Action::SecretUse => format!("resource in Domain::\"d{number}.example.org\""),
            Action::Environment | Action::Gap | Action::Release => format!("resource.name like \"N{number}*\""),
        };
        format!(
            "@id(\"rule-{at}\")\n@why(\"it is so\")\n{effect}(principal, action == Action::\"{action}\", resource)\n  when {{ {condition} && context.mode == \"cow\" }};\n\n"
        )
    };
    (0..count).map(one).collect()
}

fn questions() -> Vec<(&'static str, Envelope)> {
    let words = |line: &str| Resource::Command(line.split(' ').map(str::to_owned).collect());
    let envelope = |agent: Option<&str>, action, resource| Envelope {
        principal: Principal { user: "alice".to_owned(), agent: agent.map(str::to_owned) },
        action,
        resource,
        context: Context {
            directory: "/project".to_owned(),
            workspaces: vec!["/project".to_owned()],
            ..Context::default()
        },
    };
    let path = Resource::Path("/project/p3/src/deep/down/main.rs".to_owned());
    let host = Resource::Host { name: "a.b.d4.example.org".to_owned(), port: 443 };
    vec![
        ("exec", envelope(None, Action::Exec, words("p0 build --all --quiet"))),
        ("exec by an agent", envelope(Some("claude-code"), Action::Exec, words("p0 build --all --quiet"))),
        ("exec, none matches", envelope(None, Action::Exec, words("other build"))),
        ("read", envelope(None, Action::Read, path)),
        ("connect", envelope(None, Action::Connect, host)),
    ]
}
