//! How long rules in Cedar take to read and to judge: `cargo run --release --example speed -p belljar-cedar`.

use std::time::{Duration, Instant};

use cedar::Cedar;
use model::{Action, BadRules, Context, Envelope, Principal, Resource, RuleLanguage, RuleText};

fn main() {
    if let Err(bad) = measure() {
        report(&format!("{bad:?}"));
    }
}

fn measure() -> Result<(), BadRules> {
    // The first time in a process costs more: Cedar makes its parsers.
    for count in [50, 50, 1, 200, 200] {
        let text = policies(count);
        let begun = Instant::now();
        Cedar.read(&[RuleText { file: "org.cedar", text: &text }])?;
        report(&format!("read {count:3} policies        {:7.2} ms", begun.elapsed().as_secs_f64() * 1e3));
    }
    let text = policies(200);
    let rules = Cedar.read(&[RuleText { file: "org.cedar", text: &text }])?;
    for (what, envelope) in questions() {
        let begun = Instant::now();
        let reasons = rules.judge(&envelope).len();
        let first = begun.elapsed();
        let mut times: Vec<Duration> = (0..5000)
            .map(|_| {
                let begun = Instant::now();
                std::hint::black_box(rules.judge(&envelope));
                begun.elapsed()
            })
            .collect();
        times.sort_unstable();
        let microseconds = |time: Duration| time.as_secs_f64() * 1e6;
        report(&format!(
            "judge {what:20} {:7.1} µs p50 {:7.1} µs p99 {:7.1} µs first; {reasons} reasons",
            microseconds(times[times.len() / 2]),
            microseconds(times[times.len() * 99 / 100]),
            microseconds(first),
        ));
    }
    Ok(())
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
                format!("resource in Path::\"/work/p{number}\" && resource.extension != \"key\"")
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
        context: Context { directory: "/work".to_owned(), workspaces: vec!["/work".to_owned()], ..Context::default() },
    };
    let path = Resource::Path("/work/p3/src/deep/down/main.rs".to_owned());
    let host = Resource::Host { name: "a.b.d4.example.org".to_owned(), port: 443 };
    vec![
        ("exec", envelope(None, Action::Exec, words("p0 build --all --quiet"))),
        ("exec by an agent", envelope(Some("claude-code"), Action::Exec, words("p0 build --all --quiet"))),
        ("exec, none matches", envelope(None, Action::Exec, words("other build"))),
        ("read", envelope(None, Action::Read, path)),
        ("connect", envelope(None, Action::Connect, host)),
    ]
}

// An example prints: it is no library.
#[allow(clippy::print_stdout)]
fn report(line: &str) {
    println!("{line}");
}
