//! Rules in Cedar, as those who use them see them.

// A test that fails panics: that is how whoever runs it hears of it.
#![allow(clippy::panic)]

mod laws;
mod meaning;
mod reading;

use cedar::Cedar;
use model::{
    Action, BadRules, Context, Envelope, ForeignRules, Judgement, Principal, Reason, Resource, RuleLanguage, RuleText,
    Ruling,
};

fn read(text: &str) -> Box<dyn ForeignRules> {
    Cedar.read(&[RuleText { file: "org.cedar", text }]).unwrap_or_else(|bad| panic!("{bad:?}\n{text}"))
}

fn refused(text: &str) -> BadRules {
    match Cedar.read(&[RuleText { file: "org.cedar", text }]) {
        Err(bad) => bad,
        Ok(_) => panic!("was read: {text}"),
    }
}

fn judge(text: &str, envelope: &Envelope) -> Vec<Reason> {
    read(text).judge(envelope)
}

/// None where the rules are silent.
fn ruling(text: &str, envelope: &Envelope) -> Option<Ruling> {
    strictest(&judge(text, envelope))
}

fn strictest(reasons: &[Reason]) -> Option<Ruling> {
    reasons.iter().map(|reason| reason.ruling).max()
}

fn ask(action: Action, resource: Resource) -> Envelope {
    let principal = Principal { user: "alice".to_owned(), agent: None };
    let context =
        Context { directory: "/project".to_owned(), workspaces: vec!["/project".to_owned()], ..Context::default() };
    Envelope { principal, action, resource, context }
}

fn by(agent: &str, mut envelope: Envelope) -> Envelope {
    envelope.principal.agent = Some(agent.to_owned());
    envelope
}

fn exec(line: &str) -> Envelope {
    ask(Action::Exec, Resource::Command(line.split_whitespace().map(str::to_owned).collect()))
}

fn connect(name: &str, port: u16) -> Envelope {
    ask(Action::Connect, Resource::Host { name: name.to_owned(), port })
}

fn path(action: Action, path: &str) -> Envelope {
    ask(action, Resource::Path(path.to_owned()))
}

/// As our own policy joins them.
fn judgement(reasons: Vec<Reason>, envelope: &Envelope) -> Judgement {
    Judgement::of(reasons, || Reason {
        ruling: Ruling::Deny,
        rule: "silence".to_owned(),
        place: String::new(),
        why: String::new(),
        action: envelope.action,
        about: String::new(),
        grant: String::new(),
    })
}
