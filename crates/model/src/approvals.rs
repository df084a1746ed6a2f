//! Questions that wait for a person, and the ways in which one answers: what the engine and front-ends agree on.

use std::os::fd::BorrowedFd;

use serde::{Deserialize, Serialize};

use crate::{Action, Question, Trouble};

/// A single value of a question that is longer, in characters, can't be judged by a person: it is not shown, and so it
/// can't be approved.
pub const LONGEST_VALUE: usize = 20_000;
/// The same for a question as a whole.
pub const LONGEST_QUESTION: usize = 100_000;
/// What a person says with an answer, in characters.
pub const LONGEST_REASON: usize = 1_000;

/// What front-ends ask of the engine about questions. `of`: another user whose questions are meant, for root.
pub trait Approvals {
    /// Questions that somebody waits for now; the oldest first.
    fn parked(&self, of: Option<&str>) -> Result<Vec<Parked>, Trouble>;
    /// The one with this id, or the start of one that is unique, or the newest for `last`; nothing if there is none.
    fn find(&self, which: &str, of: Option<&str>) -> Result<Option<Parked>, Trouble>;
    /// Answers exactly what `parked` shows.
    fn answer(&self, parked: &Parked, answer: &Answer) -> Result<Given, Trouble>;
    /// What `always` would write down for this question.
    fn would_stand(&self, parked: &Parked) -> Vec<Standing>;
    /// Answers that hold until they are revoked.
    fn standing(&self) -> Result<Vec<Standing>, Trouble>;
    /// Takes a standing answer back, by its id or a start of it that is unique; nothing if there is none.
    fn revoke(&self, which: &str) -> Result<Option<Standing>, Trouble>;
}

/// A question that somebody waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Parked {
    pub id: String,
    /// Of the question as it is here: an answer holds for nothing else.
    pub digest: String,
    /// Names of those who may answer.
    pub approvers: Vec<String>,
    /// Milliseconds since 1970.
    pub asked: u64,
    /// After this nobody waits any more.
    pub until: u64,
    /// Whether `session` and `always` can be answered, besides `once` and `deny`.
    pub offers: Offers,
    /// Whose it is, where it is not the caller's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
    pub question: Question,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Offers {
    pub session: bool,
    pub always: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Decision {
    /// Yes, this time.
    Once,
    /// Yes, and to the same question again as long as the asker's session lasts.
    Session,
    /// Yes, and to the same rule about the same thing until it is revoked.
    Always,
    Deny,
}

impl Decision {
    pub fn name(self) -> &'static str {
        match self {
            Decision::Once => "once",
            Decision::Session => "session",
            Decision::Always => "always",
            Decision::Deny => "deny",
        }
    }
}

/// What a person says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub decision: Decision,
    /// For whoever asked; may be empty.
    pub reason: String,
}

/// What became of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Given {
    /// Whoever waited has it.
    Taken,
    /// Nobody waits for it any more: somebody was faster, or the time was over.
    TooLate,
    /// Whoever waits did not accept it; why is said there.
    NotAccepted,
}

/// An answer that holds until it is revoked: to one rule's question about exactly one thing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Standing {
    pub id: String,
    pub rule: String,
    pub action: Action,
    /// Exactly this; no pattern.
    pub about: String,
    pub principal: String,
    /// Exactly these.
    pub workspaces: Vec<String>,
    /// A digest of everything else that was shown.
    pub exactly: String,
    /// The day on which it was given.
    pub on: String,
    pub by: String,
}

/// A person who can be asked here and now.
pub trait Person {
    /// Begins to ask. Nothing if there is nobody, or nobody who can be told from an agent. `standing`: what `always`
    /// would write down.
    fn ask(&self, parked: &Parked, standing: &[Standing]) -> Option<Box<dyn Conversation>>;
}

/// A question that was put to a person. Answers may come from elsewhere meanwhile, so nothing here waits.
pub trait Conversation {
    /// Readable when the person has said something.
    fn input(&self) -> BorrowedFd<'_>;
    /// Takes what was said; nothing as long as it is no answer.
    fn heard(&mut self) -> Option<Answer>;
    /// It is over; `said` tells the person why, if it was not their answer that ended it.
    fn end(self: Box<Self>, said: Option<&str>);
}

impl Question {
    /// Every text in it that is shown, by what it is.
    pub fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        let who = [("user", self.principal.user.as_str()), ("agent", self.principal.agent.as_deref().unwrap_or(""))];
        let shown =
            self.shown.iter().flat_map(|(name, value)| [("name", name.as_str()), (name.as_str(), value.as_str())]);
        let reasons = self.reasons.iter().flat_map(|reason| {
            let crate::Reason { ruling: _, rule, place, why, action: _, about, grant } = reason;
            [("rule", rule), ("place", place), ("why", why), ("about", about), ("grant", grant)]
                .map(|(name, text)| (name, text.as_str()))
        });
        let findings = self.findings.iter().map(|finding| ("finding", finding.as_str()));
        let marks = [("revision", self.revision.as_str()), ("digest", self.digest.as_str())];
        who.into_iter().chain(shown).chain(reasons).chain(findings).chain(marks)
    }

    /// What is too long to be shown to a person, and how long it is: such a question can't be approved.
    pub fn too_long(&self) -> Option<(String, usize)> {
        let mut total = 0;
        for (name, text) in self.texts() {
            let length = text.chars().count();
            total += length;
            if length > LONGEST_VALUE {
                return Some((name.to_owned(), length));
            }
        }
        (total > LONGEST_QUESTION).then(|| ("question".to_owned(), total))
    }
}
