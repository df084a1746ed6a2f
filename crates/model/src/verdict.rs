//! Answers. A refusal is an answer, not an error.

use serde::{Deserialize, Serialize};

use crate::{Action, Grant, Principal};

/// How strict an answer is. The order is the meaning: the strictest ruling wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ruling {
    Allow,
    Ask,
    Deny,
}

impl Ruling {
    pub fn name(self) -> &'static str {
        match self {
            Ruling::Allow => "allow",
            Ruling::Ask => "ask",
            Ruling::Deny => "deny",
        }
    }
}

/// Why: which rule, from where, about what.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    pub ruling: Ruling,
    pub rule: String,
    /// `file:line`; empty for what is built in.
    pub place: String,
    pub why: String,
    pub action: Action,
    /// What of the request it is about: one command of a line, one path.
    pub about: String,
    /// The smallest change of a policy, or of the request, that would turn this around.
    pub grant: String,
}

impl Reason {
    /// As whoever asked is told of it.
    pub fn denied(&self, retry: Retry) -> Denied {
        let Reason { ruling: _, rule, place, why, action, about, grant } = self.clone();
        Denied { action, about, rule, place, reason: why, grant, retry }
    }
}

/// What all rules together say to an envelope.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Judgement {
    pub ruling: Ruling,
    /// The strictest first. Never empty: silence is a reason to deny.
    pub reasons: Vec<Reason>,
}

impl Judgement {
    /// The strictest of all reasons; silence denies.
    pub fn of(mut reasons: Vec<Reason>, silence: impl FnOnce() -> Reason) -> Judgement {
        if reasons.is_empty() {
            reasons.push(silence());
        }
        // Stable: of equals, the first to speak is heard first.
        reasons.sort_by_key(|reason| std::cmp::Reverse(reason.ruling));
        Judgement { ruling: reasons[0].ruling, reasons }
    }

    /// The same where others have something to say too. It only gets stricter.
    pub fn with(mut self, more: Vec<Reason>) -> Judgement {
        self.reasons.extend(more);
        self.reasons.sort_by_key(|reason| std::cmp::Reverse(reason.ruling));
        let strictest = self.reasons.iter().map(|reason| reason.ruling).max();
        Judgement { ruling: strictest.unwrap_or(Ruling::Deny), reasons: self.reasons }
    }
}

/// What a policy says to a request.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// With the rules that allow it.
    Allowed(Box<Grant>, Vec<Reason>),
    Ask(Box<Pending>),
    Refused(Refusal),
}

/// A grant that waits for a person. It comes out for an answer to exactly this question, and for no other.
#[derive(Clone, Debug, PartialEq)]
pub struct Pending {
    grant: Grant,
    question: Question,
}

impl Pending {
    pub fn new(grant: Grant, question: Question) -> Pending {
        Pending { grant, question }
    }

    pub fn question(&self) -> &Question {
        &self.question
    }

    /// The grant, if the approval is of what was shown.
    pub fn approved(self, approval: &Approval) -> Result<Grant, Refusal> {
        if approval.digest == self.question.digest {
            return Ok(self.grant);
        }
        Err(Refusal::new(
            "approval.digest",
            "the approval is of something else than what was asked".to_owned(),
            "ask again, and answer the new question",
        ))
    }
}

/// What a person is asked. Everything that the answer depends on is in it, and under its digest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    pub principal: Principal,
    /// What would be done, by name and value, in the order in which it is shown: command, code, folders, variables.
    pub shown: Vec<(String, String)>,
    /// Only those that ask.
    pub reasons: Vec<Reason>,
    /// What scanners found; empty until there are some.
    pub findings: Vec<String>,
    /// Of all policy files that had a say.
    pub revision: String,
    /// Of all the above.
    pub digest: String,
}

impl Question {
    pub fn new(
        principal: Principal,
        shown: Vec<(String, String)>,
        reasons: Vec<Reason>,
        findings: Vec<String>,
        revision: String,
    ) -> Question {
        let mut question = Question { principal, shown, reasons, findings, revision, digest: String::new() };
        question.digest = question.compute_digest();
        question
    }

    /// Of everything but the digest itself. Each text with its length, so that no two questions read the same.
    pub fn compute_digest(&self) -> String {
        let Question { principal, shown, reasons, findings, revision, digest: _ } = self;
        let mut hasher = blake3::Hasher::new();
        let mut add = |text: &str| {
            hasher.update(&(text.len() as u64).to_le_bytes());
            hasher.update(text.as_bytes());
        };
        add(&principal.user);
        add(principal.agent.as_deref().unwrap_or_default());
        add(&shown.len().to_string());
        for (name, value) in shown {
            add(name);
            add(value);
        }
        add(&reasons.len().to_string());
        for Reason { ruling, rule, place, why, action, about, grant } in reasons {
            for text in [ruling.name(), rule, place, why, action.name(), about, grant] {
                add(text);
            }
        }
        add(&findings.len().to_string());
        findings.iter().for_each(|finding| add(finding));
        add(revision);
        hasher.finalize().to_hex().to_string()
    }
}

/// A person's yes to the question with this digest. Made by the engine's approvals, from an answer that was checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Approval {
    pub digest: String,
    pub by: String,
}

/// The rule of a refusal because another policy is in force than was expected: what was denied is about its revision.
pub const OTHER_REVISION: &str = "policy.revision";

/// A no, with what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub message: String,
    pub rule: String,
    pub hint: String,
    /// Each thing that was denied, for programs.
    pub denied: Vec<Denied>,
    /// Nobody said yes in time, or somebody said no.
    pub unanswered: bool,
}

impl Refusal {
    /// Of the run as a whole, by a rule that does not change by itself.
    pub fn new(rule: &str, message: String, hint: &str) -> Refusal {
        let (rule, hint) = (rule.to_owned(), hint.to_owned());
        let denied = Denied {
            action: Action::Exec,
            about: String::new(),
            rule: rule.clone(),
            place: String::new(),
            reason: message.clone(),
            grant: hint.clone(),
            retry: Retry::No,
        };
        Refusal { message, rule, hint, denied: vec![denied], unanswered: false }
    }
}

/// One thing that was denied, so that whoever asked, most likely a model, knows what would help and what would not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Denied {
    pub action: Action,
    /// Nothing if it is about the run as a whole.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub about: String,
    pub rule: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub place: String,
    pub reason: String,
    /// The smallest grant that would allow it.
    pub grant: String,
    pub retry: Retry,
}

/// Whether asking again can help.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Retry {
    /// The answer will be the same until the policy changes.
    No,
    /// When a person has said yes.
    AfterApproval,
    /// After a while: too much is asked at once.
    Later,
}
