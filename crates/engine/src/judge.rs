//! The first stage: is the request well-formed, does the policy allow it, and if it asks, does a person?

use model::{Approval, Grant, Outcome, Pending, Question, Refusal, Request, Retry, SetupFailure, Verdict};

use policy::{Facts, Policy};

use crate::approvals::Terms;
use crate::policies::{self, Loaded, recorded};
use crate::rates::{self, Slots};
use crate::user::User;
use crate::{Engine, door, survey};

/// A request that may go on. As long as it is kept, it counts as one of its agent's runs.
pub struct Admitted {
    pub grant: Grant,
    _slots: Slots,
}

impl Engine {
    /// Judges, and asks a person where the policy does.
    pub(crate) fn admit(&self, request: &Request) -> Result<Admitted, Outcome> {
        let (verdict, loaded, slots) = self.judge(request, |loaded, facts| {
            let slots = rates::enter(loaded, &facts.principal)?;
            if !loaded.policy.is_built_in() {
                recorded::write(&policy::envelopes(request, facts), self.workspaces.watch());
            }
            Ok(slots)
        })?;
        for note in &loaded.policy.notes {
            self.workspaces.watch().warn(note);
        }
        let grant = match verdict {
            Verdict::Allowed(grant) => *grant,
            Verdict::Ask(pending) => self.ask(*pending, &loaded)?,
            Verdict::Refused(refusal) => return Err(Outcome::Refused(refusal)),
        };
        Ok(Admitted { grant, _slots: slots })
    }

    /// The same without asking anybody: what would have to be asked is a refusal that says so.
    pub(crate) fn foresee(&self, request: &Request) -> Result<Grant, Outcome> {
        match self.judge(request, |_, _| Ok(Slots::default()))?.0 {
            Verdict::Allowed(grant) => Ok(*grant),
            Verdict::Ask(pending) => Err(Outcome::Refused(would_ask(pending.question()))),
            Verdict::Refused(refusal) => Err(Outcome::Refused(refusal)),
        }
    }

    fn judge(
        &self,
        request: &Request,
        enter: impl FnOnce(&Loaded, &Facts) -> Result<Slots, Outcome>,
    ) -> Result<(Verdict, Loaded, Slots), Outcome> {
        if request.command.first().is_none_or(|program| program.is_empty()) {
            return Err(usage("there is no command to run".to_owned(), "put it after `--`: `belljar run -- ls`"));
        }
        door::validate(request)?;
        let user = User::of_the_process();
        let loaded = policies::load(&self.languages, &user, &survey::workspace_folders(request)?, None)?;
        let facts = survey::look(request, &user, &loaded)?;
        let slots = enter(&loaded, &facts)?;
        let verdict = policy::judge(request, &loaded.policy, &facts);
        Ok((verdict, loaded, slots))
    }

    fn ask(&self, pending: Pending, loaded: &Loaded) -> Result<Grant, Outcome> {
        let approval = self.ask_a_person(pending.question(), &loaded.policy).map_err(Outcome::Refused)?;
        pending.approved(&approval).map_err(Outcome::Refused)
    }

    /// As the policy says: who, and for how long.
    pub(crate) fn ask_a_person(&self, question: &Question, policy: &Policy) -> Result<Approval, Refusal> {
        let policy::Approving { timeout, approvers, always } = policy.approving();
        let terms = Terms { timeout, approvers, always };
        self.questions().ask(question, &terms, self.person.as_deref(), self.workspaces.watch())
    }
}

fn would_ask(question: &Question) -> Refusal {
    let Some(first) = question.reasons.first() else {
        return Refusal::new("silence", "nothing allows it".to_owned(), "see `belljar policy show`");
    };
    let denied = question.reasons.iter().map(|reason| reason.denied(Retry::AfterApproval));
    let message = format!("a person would be asked about {} `{}`: {}", first.action, first.about, first.why);
    let hint = "`belljar run` asks, and waits for the answer";
    Refusal { denied: denied.collect(), unanswered: true, ..Refusal::new(&first.rule, message, hint) }
}

pub(crate) fn usage(message: String, fix: &str) -> Outcome {
    Outcome::NotSetUp(SetupFailure { wall: None, message, fix: fix.to_owned(), layers: false })
}
