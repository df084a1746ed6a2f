//! Answers. A refusal is an answer, not an error.

use crate::Grant;

/// How strict an answer is. The order is the meaning: the strictest ruling wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ruling {
    Allow,
    Ask,
    Deny,
}

/// Why: which rule, from where, about what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    pub ruling: Ruling,
    pub rule: String,
    pub message: String,
    pub hint: String,
}

/// What a policy says to a request.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    Allowed(Box<Grant>),
    Refused(Refusal),
}

/// A no, with what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub message: String,
    pub rule: String,
    pub hint: String,
}
