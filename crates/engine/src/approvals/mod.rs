//! Questions to people: parked in a folder, answered by a person's file in it, used once.
//!
//! Who answered is the kernel's word: the owner of the answer's file. What was answered is bound by a digest of what
//! was shown, and to whom by a number that only the question's file and whoever waits know. Nothing inside a sandbox
//! reaches the folder, and `belljar approve` does not serve a process that an agent started and that says so.
//!
//! What this does not hold: outside a sandbox a process can do whatever its user can, so an agent that runs there as
//! you can hide its marks and answer as you. Where that matters, let root or another user approve (`approvers`, and
//! [`spool`]): their files nobody else can make. And whoever may start programs outside a sandbox needs no answer of
//! belljar's to do so.

mod answer;
mod folder;
mod question;
mod session;
mod spool;
mod standing;
#[cfg(test)]
mod tests;
mod users;
mod wait;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use model::{
    Action, Answer, Approval, Decision, Given, Offers, Parked, Person, Question, Refusal, Ruling, Standing, Trouble,
    Watch, agents,
};
use serde_json::{Value, json};

use folder::Folder;
use question::Parking;
use spool::Spool;
use users::Users;

use crate::user::User;
use crate::{policies, record};

pub use spool::{SPOOL, reaches};

/// What reads bytes that others wrote. Not for use: for those who try it with all kinds of bytes.
#[doc(hidden)]
pub mod hostile {
    pub use super::answer::read as answer;
    pub use super::question::read as question;
    pub use super::standing::read as standing;
}

/// What a policy says about asking.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terms {
    /// How long somebody waits for an answer. No answer is a no.
    pub timeout: Duration,
    /// Names of users who may answer; none: the user who asks, and root. What others than these are asked is parked in
    /// the machine's [`spool`].
    pub approvers: Vec<String>,
    /// Whether standing answers count, and can be given.
    pub always: bool,
}

/// What somebody asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// To go on with it at once.
    Now,
    /// To be allowed it: a yes for once is kept for a while, and is worth the same question once.
    Later,
}

/// Where questions are parked and answers kept.
#[derive(Clone, Debug)]
pub struct Approvals {
    /// Belljar's folder for state.
    state: Option<PathBuf>,
    /// Belljar's folder for settings.
    settings: Option<PathBuf>,
    /// Of the caller; nothing: our own.
    environment: Option<Vec<(OsString, OsString)>>,
    /// The session we are in, if answers can hold for it.
    session: Option<String>,
    /// Where those find questions who are neither the asker nor root.
    spool: PathBuf,
    /// Writes down what stands from now on.
    record: fn(&'static str, Value) -> Result<(), Trouble>,
}

impl Approvals {
    /// In the user's folders. Standing answers are where the policy is: no variable leads past them either.
    pub fn of_the_user() -> Approvals {
        // A tenant's standing answers are its own, and nobody else's questions are shown to it.
        let (settings, spool) = match workspace::given_state() {
            Some(state) => (Some(state.join("settings")), state.join("spool")),
            None => (policies::settings_folder(&User::of_the_process()), SPOOL.into()),
        };
        let session = session::current();
        Approvals {
            state: workspace::state_folder(),
            settings,
            environment: None,
            session,
            spool,
            record: record::settled,
        }
    }

    /// In these folders, for a caller with these variables.
    pub fn at(state: PathBuf, settings: PathBuf, environment: Vec<(OsString, OsString)>) -> Approvals {
        let (session, spool) = (session::current(), state.join("spool"));
        let record = |_, _| Ok(());
        Approvals {
            state: Some(state),
            settings: Some(settings),
            environment: Some(environment),
            session,
            spool,
            record,
        }
    }

    /// Waits until a person answers, or the time is over. `watch` is told where to answer, and of answers that do not
    /// count.
    pub fn ask(
        &self,
        question: &Question,
        terms: &Terms,
        person: Option<&dyn Person>,
        watch: &dyn Watch,
    ) -> Result<Approval, Refusal> {
        self.ask_for(When::Now, question, terms, person, watch)
    }

    /// The same; `when` says what a yes for once is worth.
    pub fn ask_for(
        &self,
        when: When,
        question: &Question,
        terms: &Terms,
        person: Option<&dyn Person>,
        watch: &dyn Watch,
    ) -> Result<Approval, Refusal> {
        let refuse = |message: String, hint: &str| wait::refusal(question, message, hint, model::Retry::AfterApproval);
        // A question is only about what asks: were something denied in it, or nothing asked, no yes would be one to it.
        if question.reasons.is_empty() || question.reasons.iter().any(|reason| reason.ruling != Ruling::Ask) {
            return Err(refuse("this is no question that a person can answer".to_owned(), "see `belljar explain`"));
        }
        if let Some((what, length)) = question.too_long() {
            let message = format!("nobody can be asked about this: its {what} has {length} characters");
            return Err(refuse(message, "put what is long in a file of the workspace, and run that"));
        }
        let trouble = |trouble: Trouble| refuse(trouble.message, &trouble.fix);
        let users = Users::read().map_err(trouble)?;
        let approvers = users.approvers(&terms.approvers);
        if approvers.is_empty() {
            let message = format!("nobody who may answer is a user here: {}", terms.approvers.join(", "));
            return Err(refuse(message, "name users of this machine under `approvals.approvers`"));
        }
        let us = users::us();
        // Standing answers are in a file of the asker's, so they are worth as much as the asker's own word.
        // A yes to contents is to these contents.
        let is_commit = question.reasons.iter().any(|reason| reason.action == Action::Commit);
        let always = terms.always && approvers.contains(us) && !is_commit;
        let offers = Offers { session: self.session.is_some(), always };
        if offers.always
            && let Some(settings) = &self.settings
        {
            match standing::load(settings, &approvers) {
                Ok(entries) => {
                    if let Some(by) = standing::covering(&entries, question) {
                        return Ok(Approval { digest: question.digest.clone(), by });
                    }
                }
                Err(trouble) => watch.warn(&format!("{trouble}; no standing answer counts until then")),
            }
        }
        let folder = match approvers.others().next() {
            None => Folder::made(self.state.as_deref()),
            Some(_) => spool::for_others(&self.spool, &approvers, &users),
        };
        let folder = folder.map_err(trouble)?;
        question::sweep(&folder);
        session::sweep(&folder);
        // Computed anew: what a question says of itself counts for nothing.
        let digest = question.compute_digest();
        if let Some(by) = session::answered(&folder, self.session.as_deref(), &digest, &approvers) {
            let by = format!("{}, earlier in this session", users.name(by));
            return Ok(Approval { digest: question.digest.clone(), by });
        }
        if when == When::Now
            && let Some(by) = session::spent(&folder, self.session.as_deref(), &digest, &approvers)
        {
            let by = format!("{}, who was asked first", users.name(by));
            return Ok(Approval { digest: question.digest.clone(), by });
        }
        let parking = Parking {
            question,
            digest,
            approvers: approvers.names(&users),
            session: self.session.as_deref(),
            offers,
            timeout: terms.timeout,
            standing: standing::entries(question, &users.name(us)),
            when,
        };
        let person = person.filter(|_| approvers.contains(us));
        let heard = wait::until_answered(&folder, &parking, &approvers, person, watch)?;
        let by = users.name(heard.by);
        match heard.answer.decision {
            Decision::Deny => return Err(wait::denied(question, &by, &heard.answer.reason)),
            Decision::Always if heard.here && offers.always => {
                let entries = standing::entries(question, &by);
                let written = match &self.settings {
                    Some(settings) => self.stand(settings, &entries),
                    None => Err(no_settings()),
                };
                if let Err(trouble) = written {
                    watch.warn(&format!("approved this time, but not written down: {trouble}"));
                }
            }
            Decision::Once | Decision::Session | Decision::Always => {}
        }
        Ok(Approval { digest: question.digest.clone(), by })
    }

    /// From now on these need not be asked again. In the record first, as they let things run.
    fn stand(&self, settings: &Path, entries: &[Standing]) -> Result<(), Trouble> {
        for entry in entries {
            (self.record)("approval.standing", told(entry))?;
        }
        standing::add(settings, entries)
    }

    /// Folders with questions, and whose they are where they are not our own: of a user, or else our own and whatever others
    /// ask us.
    fn folders(&self, of: Option<&str>) -> Result<Vec<(Option<String>, Folder)>, Trouble> {
        // One that can't be used is told to whoever asks there; it must not hide what waits elsewhere.
        let spool = Spool::found(&self.spool).unwrap_or(None);
        let Some(name) = of else {
            let us = users::us();
            let mut folders = Vec::from_iter(Folder::found(self.state.as_deref(), us)?.map(|folder| (None, folder)));
            if let Some(spool) = spool {
                folders.extend(spool.of(us)?.map(|folder| (None, folder)));
                let users = Users::read()?;
                for asker in spool.askers().into_iter().filter(|asker| *asker != us) {
                    // One that somebody has spoiled must not hide the others.
                    folders.extend(spool.of(asker).ok().flatten().map(|folder| (Some(users.name(asker)), folder)));
                }
            }
            return Ok(folders);
        };
        let users = Users::read()?;
        let user = users.named(name).ok_or_else(|| Trouble {
            message: format!("there is no user `{name}`"),
            fix: "name one of this machine".to_owned(),
        })?;
        let shared = spool.map(|spool| spool.of(user.id)).transpose()?.flatten();
        // What they ask themselves and root is open to root alone.
        let own = match Folder::found(Some(&user.home.join(".local/state/belljar")), user.id) {
            Err(_) if shared.is_some() => None,
            own => own?,
        };
        Ok(own.into_iter().chain(shared).map(|folder| (Some(name.to_owned()), folder)).collect())
    }

    /// Whether the caller may answer at all, whoever it is.
    fn is_no_agent(&self) -> Result<(), Trouble> {
        let environment = self.environment.clone().unwrap_or_else(|| std::env::vars_os().collect());
        let Some(who) = agents::no_person(&environment) else { return Ok(()) };
        Err(Trouble {
            message: format!("{who} may not answer questions"),
            fix: "answer in a terminal of your own".to_owned(),
        })
    }
}

impl model::Approvals for Approvals {
    fn parked(&self, of: Option<&str>) -> Result<Vec<Parked>, Trouble> {
        let us = Users::read()?.name(users::us());
        let mut parked = Vec::new();
        for (owner, folder) in self.folders(of)? {
            question::sweep(&folder);
            let mut list = question::list(&folder)?;
            // What others ask others is not ours to be shown, unless we ask for it.
            list.retain(|parked| owner.is_none() || of.is_some() || parked.approvers.contains(&us));
            list.iter_mut().for_each(|parked| parked.of.clone_from(&owner));
            parked.extend(list);
        }
        parked.sort_by(|one: &Parked, other| (one.asked, &one.id).cmp(&(other.asked, &other.id)));
        Ok(parked)
    }

    fn find(&self, which: &str, of: Option<&str>) -> Result<Option<Parked>, Trouble> {
        let mut parked = self.parked(of)?;
        if which == "last" {
            return Ok(parked.pop());
        }
        parked.retain(|parked| !which.is_empty() && parked.id.starts_with(which));
        if parked.len() > 1 {
            let ids: Vec<&str> = parked.iter().map(|parked| parked.id.as_str()).collect();
            return Err(Trouble {
                message: format!("`{which}` may be {}", ids.join(" or ")),
                fix: "write more of it".to_owned(),
            });
        }
        Ok(parked.pop())
    }

    fn answer(&self, parked: &Parked, answer: &Answer) -> Result<Given, Trouble> {
        self.is_no_agent()?;
        let users = Users::read()?;
        let us = users::us();
        answer::may_be_given(parked, answer, &users, us)?;
        let folders = self.folders(parked.of.as_deref())?;
        let waits = |(_, folder): &(Option<String>, Folder)| question::live(folder, &parked.id).is_some();
        let Some((_, folder)) = folders.into_iter().find(waits) else { return Ok(Given::TooLate) };
        if answer.decision != Decision::Always {
            return answer::give(&folder, parked, answer);
        }
        let settings = self.settings.as_deref().ok_or_else(no_settings)?;
        // Before anything is answered: a file that can't be understood will not be written to.
        standing::load_to_change(settings)?;
        let given = answer::give(&folder, parked, answer)?;
        if given == Given::Taken {
            self.stand(settings, &standing::entries(&parked.question, &users.name(us)))?;
        }
        Ok(given)
    }

    fn would_stand(&self, parked: &Parked) -> Vec<Standing> {
        let by = Users::read().map_or_else(|_| users::us().to_string(), |users| users.name(users::us()));
        standing::entries(&parked.question, &by)
    }

    fn standing(&self) -> Result<Vec<Standing>, Trouble> {
        self.settings.as_deref().map_or(Ok(Vec::new()), standing::load_to_change)
    }

    fn revoke(&self, which: &str) -> Result<Option<Standing>, Trouble> {
        let Some(settings) = self.settings.as_deref() else { return Ok(None) };
        let revoked = standing::revoke(settings, which)?;
        if let Some(standing) = &revoked {
            (self.record)("approval.revoked", told(standing))?;
        }
        Ok(revoked)
    }
}

fn told(standing: &Standing) -> Value {
    let Standing { id, rule, action, about, principal, workspaces, exactly, on: _, by } = standing;
    json!({
        "id": id, "rule": rule, "action": action.name(), "about": about, "principal": principal,
        "workspaces": workspaces, "exactly": exactly, "by": by,
    })
}

fn no_settings() -> Trouble {
    Trouble {
        message: "there is no folder for settings: neither XDG_CONFIG_HOME nor HOME is set".to_owned(),
        fix: "set HOME".to_owned(),
    }
}
