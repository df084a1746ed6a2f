//! Rules in Cedar: text is read whole or refused with its line; what was read judges everything, and each reason is of
//! a rule that is there.

use ::cedar::Cedar;
use cli::hostile::line;
use model::{Action, BadRules, Context, Envelope, ForeignRules, Principal, Resource, RuleLanguage, RuleText, Ruling};

use crate::shown;

/// Put after any text, it is in force.
const FORBIDS_ALL: &str = "\n@id(\"forbids-all\") forbid(principal, action, resource);";

pub fn law(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let rules = match Cedar.read(&[RuleText { file: "a.cedar", text }]) {
        Ok(rules) => rules,
        Err(bad) => return is_told_with_its_place(&bad, text),
    };
    let stricter = Cedar.read(&[RuleText { file: "a.cedar", text }, RuleText { file: "b.cedar", text: FORBIDS_ALL }]);
    // Refused only where the text has a rule of that name.
    let stricter = stricter.ok();
    if let Some(stricter) = &stricter {
        assert_eq!(stricter.count(), rules.count() + 1, "a rule was passed over");
    }
    for envelope in envelopes(text) {
        judges(rules.as_ref(), text, &envelope);
        if let Some(stricter) = &stricter {
            let denied = stricter.judge(&envelope).iter().any(|reason| reason.ruling == Ruling::Deny);
            assert!(denied, "what is forbidden was not denied: {envelope:?}");
        }
    }
}

fn judges(rules: &dyn ForeignRules, text: &str, envelope: &Envelope) {
    let reasons = rules.judge(envelope);
    assert!(rules.count() > 0 || reasons.is_empty(), "nobody said {reasons:?}");
    for reason in &reasons {
        assert_eq!(reason.action, envelope.action);
        shown::is_one_line(&line(&reason.why));
        shown::is_one_line(&reason.rule);
        let place = reason.place.strip_prefix("a.cedar:").and_then(|line| line.parse().ok());
        let known = place.is_some_and(|line: usize| (1..=text.split('\n').count()).contains(&line));
        assert!(known || reason.rule == "cedar.unclear", "a rule without a place: {reason:?}");
    }
    let allows = reasons.iter().all(|reason| reason.ruling == Ruling::Allow) && !reasons.is_empty();
    assert!(!allows || text.contains("permit"), "allowed without a permit");
    assert!(!allows || envelope.is_sound(), "allowed what makes no sense");
}

/// Of each kind, with the text itself where any text will do.
fn envelopes(text: &str) -> Vec<Envelope> {
    let own = || text.to_owned();
    let asked = [
        (Action::Exec, Resource::Command(text.split(' ').map(str::to_owned).collect())),
        (Action::Exec, Resource::Shell(own())),
        (Action::Code, Resource::Code { language: Some("python".to_owned()), bytes: u64::MAX }),
        (Action::Read, Resource::Path("/project/a.txt".to_owned())),
        (Action::Write, Resource::Path(own())),
        (Action::Environment, Resource::Variable(own())),
        (Action::Gap, Resource::Wall("memory".to_owned())),
        (Action::Connect, Resource::Host { name: "a.example.org".to_owned(), port: 443 }),
        (Action::SecretUse, Resource::Secret { name: own(), host: own() }),
        (Action::Release, Resource::Artifact { name: own(), bytes: 1 }),
        (Action::Commit, Resource::Host { name: own(), port: 0 }),
    ];
    let agents = [None, Some("claude-code".to_owned())].into_iter().cycle();
    asked
        .into_iter()
        .zip(agents)
        .map(|((action, resource), agent)| Envelope {
            principal: Principal { user: "alice".to_owned(), agent },
            action,
            resource,
            context: Context { directory: own(), ..Context::default() },
        })
        .collect()
}

fn is_told_with_its_place(bad: &BadRules, text: &str) {
    let lines = text.split('\n').count();
    assert!((1..=lines).contains(&bad.line), "line {} of {lines}", bad.line);
    assert_eq!(bad.file, "a.cedar");
    assert!(!bad.message.is_empty(), "refused without a word");
    shown::is_one_line(&line(&bad.message));
    shown::is_one_line(&line(&bad.hint));
}
