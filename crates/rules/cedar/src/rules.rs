//! Rules that were read, and what they say.

use std::collections::HashMap;
use std::sync::OnceLock;

use cedar_policy::{
    ActionConstraint, AuthorizationError, Authorizer, Effect, EntityTypeName, Policy, PolicyId, PolicySet, Request,
    ResourceConstraint,
};
use model::{Action, Envelope, ForeignRules, Reason, Ruling};

use crate::asked::{Asked, asked};
use crate::vocabulary::Vocabulary;

/// One policy, and what is said when it matches.
pub(crate) struct Rule {
    pub name: String,
    pub file: String,
    pub line: usize,
    pub ruling: Ruling,
    pub why: String,
    /// Whoever asks, it says the same.
    pub of_anyone: bool,
    pub policy: Policy,
}

impl Rule {
    pub fn place(&self) -> String {
        format!("{}:{}", self.file, self.line)
    }

    fn permits(&self) -> bool {
        self.policy.effect() == Effect::Permit
    }

    /// Whether its scope leaves room for this action.
    fn speaks_of(&self, action: Action, words: &Vocabulary) -> bool {
        let this = words.action(action);
        let acts = match self.policy.action_constraint() {
            ActionConstraint::Any => true,
            ActionConstraint::Eq(only) => Some(&only) == this,
            ActionConstraint::In(any) => any.iter().any(|one| Some(one) == this),
        };
        let kind = words.resource_of(action);
        // Hosts and secrets are in domains, paths in paths; nothing else is in anything.
        let may_be_in = |outer: &EntityTypeName| {
            outer == kind || *outer == words.domain && (*kind == words.host || *kind == words.secret)
        };
        acts && match self.policy.resource_constraint() {
            ResourceConstraint::Any => true,
            ResourceConstraint::Is(only) | ResourceConstraint::IsIn(only, _) => only == *kind,
            ResourceConstraint::Eq(only) => only.type_name() == kind,
            ResourceConstraint::In(outer) => may_be_in(outer.type_name()),
        }
    }
}

/// Cedar names only the policies that it decided by, which are all that match where all have the same effect: hence
/// two sets.
#[derive(Default)]
struct Sets {
    permits: PolicySet,
    forbids: PolicySet,
}

/// All that can speak of one action.
#[derive(Default)]
struct Speaking {
    /// Asked once, also where there is an agent and a user.
    of_anyone: Sets,
    of_someone: Sets,
    silent: bool,
    first_permit: Option<usize>,
    /// A set could not be made of them; never seen, and never taken for silence.
    broken: bool,
}

/// What came of asking.
#[derive(Clone, Default)]
struct Said {
    matching: Vec<usize>,
    errors: Vec<Reason>,
}

pub(crate) struct Rules {
    words: &'static Vocabulary,
    rules: Vec<Rule>,
    by_id: HashMap<PolicyId, usize>,
    authorizer: Authorizer,
    /// In the order of `Action::ALL`; made when first asked for, since one run asks of few.
    speaking: [OnceLock<Speaking>; Action::ALL.len()],
    reads: OnceLock<bool>,
}

impl Rules {
    /// Each rule's policy is known by an id of its own.
    pub fn new(words: &'static Vocabulary, rules: Vec<Rule>) -> Rules {
        let by_id = rules.iter().enumerate().map(|(at, rule)| (rule.policy.id().clone(), at)).collect();
        Rules {
            words,
            rules,
            by_id,
            authorizer: Authorizer::new(),
            speaking: Default::default(),
            reads: OnceLock::new(),
        }
    }

    fn speaking_of(&self, action: Action) -> &Speaking {
        let at = Action::ALL.iter().position(|known| *known == action).unwrap_or_default();
        self.speaking[at].get_or_init(|| {
            let mut speaking = Speaking { silent: true, ..Speaking::default() };
            for (at, rule) in self.rules.iter().enumerate().filter(|(_, rule)| rule.speaks_of(action, self.words)) {
                let sets = if rule.of_anyone { &mut speaking.of_anyone } else { &mut speaking.of_someone };
                let set = if rule.permits() { &mut sets.permits } else { &mut sets.forbids };
                speaking.broken |= set.add(rule.policy.clone()).is_err();
                speaking.silent = false;
                if rule.permits() {
                    speaking.first_permit.get_or_insert(at);
                }
            }
            speaking
        })
    }

    /// Adds what these say to one principal.
    fn ask(&self, sets: &Sets, request: &Request, asked: &Asked, envelope: &Envelope, mut said: Said) -> Said {
        for set in [&sets.forbids, &sets.permits].into_iter().filter(|set| !set.is_empty()) {
            let response = self.authorizer.is_authorized(request, set, &asked.entities);
            for id in response.diagnostics().reason() {
                match self.by_id.get(id) {
                    Some(at) => said.matching.push(*at),
                    None => said.errors.push(cannot(envelope, "a rule matches that nobody knows")),
                }
            }
            said.errors.extend(response.diagnostics().errors().map(|error| self.cannot_evaluate(error, envelope)));
        }
        said
    }

    fn reasons(&self, said: Said, request: &Request, speaking: &Speaking, envelope: &Envelope) -> Vec<Reason> {
        let Said { mut matching, errors: mut reasons } = said;
        matching.sort_unstable();
        reasons.extend(matching.iter().map(|at| matches(&self.rules[*at], envelope)));
        let permitted = matching.iter().any(|at| self.rules[*at].permits());
        let denied = reasons.iter().any(|reason| reason.ruling == Ruling::Deny);
        if let Some(first) = speaking.first_permit.filter(|_| !permitted && !denied) {
            reasons.push(no_permit(&self.rules[first], request, envelope));
        }
        reasons
    }

    fn cannot_evaluate(&self, error: &AuthorizationError, envelope: &Envelope) -> Reason {
        let AuthorizationError::PolicyEvaluationError(error) = error;
        let Some(rule) = self.by_id.get(error.policy_id()).map(|at| &self.rules[*at]) else {
            return cannot(envelope, &error.to_string());
        };
        Reason {
            ruling: Ruling::Deny,
            why: format!("a rule that can't be evaluated denies: {}", error.inner()),
            grant: format!("a change of {}, so that it can be evaluated", citation(rule)),
            ..matches(rule, envelope)
        }
    }
}

impl ForeignRules for Rules {
    fn judge(&self, envelope: &Envelope) -> Vec<Reason> {
        let speaking = self.speaking_of(envelope.action);
        if speaking.broken {
            return vec![cannot(envelope, "the rules could not be put together")];
        }
        if speaking.silent {
            return Vec::new();
        }
        let asked = match asked(envelope, self.words, None) {
            Ok(asked) => asked,
            Err(why) => return vec![cannot(envelope, &why)],
        };
        let to_all = self.ask(&speaking.of_anyone, &asked.first, &asked, envelope, Said::default());
        let say = |request: &Request| {
            let said = self.ask(&speaking.of_someone, request, &asked, envelope, to_all.clone());
            self.reasons(said, request, speaking, envelope)
        };
        let mut reasons = say(&asked.first);
        let of_user = asked.user.as_ref().map(say);
        for reason in of_user.into_iter().flatten().filter(|reason| reason.ruling > Ruling::Allow) {
            let said = |known: &Reason| known.ruling == reason.ruling && known.rule == reason.rule;
            if !reasons.iter().any(said) {
                reasons.push(reason);
            }
        }
        reasons
    }

    fn speaks_of(&self, action: Action) -> bool {
        !self.speaking_of(action).silent
    }

    /// By its words: one that only looks as if it were about requests costs no more than that they are read.
    fn reads_requests(&self) -> bool {
        let says = |rule: &Rule| {
            let text = rule.policy.to_string();
            text.contains("method") || text.contains("path")
        };
        let reads = || self.rules.iter().any(|rule| rule.speaks_of(Action::Connect, self.words) && says(rule));
        *self.reads.get_or_init(reads)
    }

    fn count(&self) -> usize {
        self.rules.len()
    }
}

fn matches(rule: &Rule, envelope: &Envelope) -> Reason {
    let grant = match rule.ruling {
        Ruling::Allow => String::new(),
        Ruling::Ask => format!("a person's yes, or a change of {}", citation(rule)),
        Ruling::Deny => format!("a change of {}", citation(rule)),
    };
    Reason {
        ruling: rule.ruling,
        rule: rule.name.clone(),
        place: rule.place(),
        why: rule.why.clone(),
        action: envelope.action,
        about: envelope.resource.to_string(),
        grant,
    }
}

/// `nearest`: a permit that speaks of the action, but not of this.
fn no_permit(nearest: &Rule, request: &Request, envelope: &Envelope) -> Reason {
    let whom = request.principal().map_or_else(String::new, |principal| {
        format!(" for the {} `{}`", principal.type_name().basename().to_lowercase(), principal.id().unescaped())
    });
    Reason {
        ruling: Ruling::Deny,
        rule: "cedar.no-permit".to_owned(),
        why: format!("no permit covers it{whom}"),
        grant: format!("a `permit` for this in {}", nearest.file),
        ..matches(nearest, envelope)
    }
}

/// The question can't be put.
fn cannot(envelope: &Envelope, why: &str) -> Reason {
    Reason {
        ruling: Ruling::Deny,
        rule: "cedar.unclear".to_owned(),
        place: String::new(),
        why: format!("what can't be put to the rules is denied: {why}"),
        action: envelope.action,
        about: envelope.resource.to_string(),
        grant: "the same in a form that rules can judge".to_owned(),
    }
}

fn citation(rule: &Rule) -> String {
    format!("`{}` ({})", rule.name, rule.place())
}
