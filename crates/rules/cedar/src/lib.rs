//! An organisation's rules in Cedar: read strictly, and judged so that they join ours by "the strictest wins".
//!
//! - A `forbid` that matches denies, a `permit` that matches allows; with `@ask`, either asks a person. Every policy
//!   that matches gives a reason, not only those that Cedar would have decided by.
//! - Where some `permit` speaks of an action and none matches, that denies, as Cedar means it. A `forbid` with `@ask`
//!   does not turn this around: more rules that forbid never allow more. Where no `permit` speaks of an action, these
//!   rules are silent unless a `forbid` matches, and others decide.
//! - A policy that can't be evaluated denies, and so does a question that can't be put.
//! - An agent's name is a claim. What it asks is judged as the agent and as its user; of the latter all counts that
//!   does not allow. So both must be allowed, and a rule about an agent only narrows.
//! - Everything is checked when it is read: against the schema, strictly; a policy that can never apply, or that looks
//!   like something else than it is, is an error and not a warning.

mod asked;
mod outline;
mod read;
mod room;
mod rules;
mod vocabulary;

use model::{BadRules, ForeignRules, RuleLanguage, RuleText};

use read::Check;

/// The language itself.
pub struct Cedar;

impl RuleLanguage for Cedar {
    fn name(&self) -> &'static str {
        "Cedar"
    }

    fn extension(&self) -> &'static str {
        "cedar"
    }

    fn read(&self, files: &[RuleText<'_>]) -> Result<Box<dyn ForeignRules>, BadRules> {
        room::make();
        Ok(Box::new(read::read(files, Check::All)?))
    }

    fn read_again(&self, files: &[RuleText<'_>]) -> Result<Box<dyn ForeignRules>, BadRules> {
        room::make();
        Ok(Box::new(read::read(files, Check::NotAgainstSchema)?))
    }

    fn schema(&self) -> &'static str {
        vocabulary::SCHEMA
    }
}
