//! How long policies take, for `cargo xtask bench policy`: a JSON object of samples in nanoseconds on standard output.

#[path = "../../../xtask/src/bench/sampled.rs"]
mod sampled;

use belljar_policy::{Found, Policy, Project, Source};
use model::{Action, Context, Envelope, Principal, Resource};
use sampled::{report, sampled};

const HOME: &str = "/home/user";
const USER: &str = "version = 1\nextends = [\"balanced\", \"python\", \"claude-code\"]\n";
const PROJECT: &str = include_str!("project.toml");

fn main() {
    let runs = std::env::args().nth(1).and_then(|number| number.parse().ok()).unwrap_or(1000);
    let rules: String = (0..200).map(rule).collect();
    let many = format!("version = 1\n{rules}");
    let policy = assembled(&[&many], None);
    let layered = assembled(&[USER], Some(PROJECT));
    let line = envelope(Resource::Shell("cd src && cargo test --all 2>&1 | tail -n 20".to_owned()));
    let words = envelope(Resource::Command(["git", "log", "--oneline"].map(str::to_owned).into()));
    let samples = serde_json::json!({
        "load the user's policy with presets": sampled(runs, || assembled(&[USER], None)),
        "load a project's policy alone": sampled(runs, || assembled(&[], Some(PROJECT))),
        "load all layers": sampled(runs, || assembled(&[USER], Some(PROJECT))),
        "verdict on words, 200 rules": sampled(runs, || policy.weigh(&words)),
        "verdict on a line of three commands, 200 rules": sampled(runs, || policy.weigh(&line)),
        "verdict on words, all layers": sampled(runs, || layered.weigh(&words)),
    });
    report(&samples);
}

/// As different as people's rules are.
fn rule(number: usize) -> String {
    let when = match number % 4 {
        0 => format!("program = \"tool-{number}\""),
        1 => format!("program = [\"git\", \"hg\"], args = [\"command-{number}\", \"--force|-f\"]"),
        2 => format!("action = \"exec\", path = \"/srv/place-{number}/**\""),
        _ => format!("program = \"make\", args = [\"target-{number}\"], without = [\"-n\"]"),
    };
    format!("[[rule]]\nwhen = {{ {when} }}\nthen = \"ask\"\nwhy = \"rule {number}\"\n")
}

fn assembled(user: &[&str], project: Option<&str>) -> Policy {
    let source = |text| Source { file: "policy.toml", text };
    let project = project.map(|text| Project { source: source(text), folder: "/project", trusted: false });
    Policy::assemble(Found {
        home: HOME,
        managed: None,
        user: user.iter().copied().map(source).collect(),
        projects: project.into_iter().collect(),
        presets: &|_| Ok(None),
        foreign: Vec::new(),
        revision: String::new(),
    })
    .unwrap_or_else(|bad| unreachable!("{bad}"))
}

fn envelope(resource: Resource) -> Envelope {
    let context = Context {
        directory: "/project".to_owned(),
        home: HOME.to_owned(),
        workspaces: vec!["/project".to_owned()],
        ..Context::default()
    };
    Envelope { principal: Principal { user: "user".to_owned(), agent: None }, action: Action::Exec, resource, context }
}
