//! The first stage: is the request well-formed, does the policy allow it, and if it asks, does a person?

use std::cell::RefCell;
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::rc::Rc;

use model::{
    Approval, Grant, Inspected, Network, NetworkAsked, Outcome, Pending, Permitted, Question, Refusal, Request, Retry,
    Ruling, SecretGrant, SecretShown, SetupFailure, Streams, Traffic, Verdict, Watch,
};

use egress::SecretValue;
use ledger::Durable;
use policy::{Facts, GateRules, Policy};

use crate::approvals::{Terms, When};
use crate::capture::Capture;
use crate::fresh::{self, Fresh};
use crate::gate::{self, Doorkeeper, Gate, Link, Plan, Shared};
use crate::inspect::{Begun, Eyes};
use crate::layers::not_set_up;
use crate::policies::{self, Loaded, recorded};
use crate::rates::{self, Slots};
use crate::record::Record;
use crate::release::{Release, of_the_vault};
use crate::secrets::Provided;
use crate::told::Telling;
use crate::user::User;
use crate::{Engine, door, ground, inspect, refused, rules, survey};

/// A request that may go on. As long as it is kept, it counts as one of its agent's runs.
pub struct Admitted {
    pub grant: Grant,
    /// A person was asked, or an answer stands.
    asked: bool,
    /// What scanners said of its code.
    pub inspected: Inspected,
    /// What its output passes through.
    pub release: Release,
    /// What is kept of it for the result.
    pub capture: Capture,
    /// What decides on its way out, where it has one.
    out: Option<Out>,
    /// The gate of the last try.
    link: RefCell<Option<Rc<Link>>>,
    _slots: Slots,
}

/// What a gate is made from, for each try anew.
struct Out {
    loaded: Rc<Loaded>,
    facts: Facts,
    asked: NetworkAsked,
    secrets: Provided,
    /// The vault, and who is told of what is fetched from it.
    fetching: Option<(PathBuf, OwnedFd)>,
    fresh: Option<Rc<Fresh>>,
    watch: Rc<dyn Watch>,
}

impl Admitted {
    /// For what is run in a sandbox that has its gate already.
    pub fn streams_inside(&self) -> Streams {
        self.capture.around(self.release.streams(), &self.release)
    }

    /// Made anew for each try to enclose it.
    pub fn streams(&self, record: &Record<'_>) -> Result<Streams, Outcome> {
        let streams = self.streams_inside();
        let Some(gate) = self.gate(record)? else { return Ok(streams) };
        self.link.replace(Some(gate.link()));
        Ok(Streams { outside: Some(Box::new(gate)), ..streams })
    }

    fn gate(&self, record: &Record<'_>) -> Result<Option<Gate>, Outcome> {
        let (Network::Gated(gated), Some(out)) = (&self.grant.powers().network, &self.out) else { return Ok(None) };
        let Out { loaded, facts, asked, secrets, fetching, fresh, watch } = out;
        let fetches = match fetching {
            Some((folder, tells)) => Some(gate::begin_fetching(folder, &secrets.later, tells, record.rail.clone())?),
            None => None,
        };
        let (fetches, fetcher) = fetches.unzip();
        let value = |grant: &SecretGrant| {
            let known = secrets.known.iter().find(|(name, _)| *name == grant.name);
            match (known, &fetches) {
                (Some((_, value)), _) => Some(SecretValue::new(&grant.name, &grant.stand_in, value.reveal())),
                (None, Some(fetches)) => Some(SecretValue::fetched(&grant.name, &grant.stand_in, fetches.clone())),
                (None, None) => None,
            }
        };
        let secrets = gated.secrets.iter().filter_map(value).collect();
        let policy::Approving { timeout, approvers, always } = loaded.policy.approving();
        let keeper = Doorkeeper {
            rules: GateRules::new(Shared(loaded.clone()), facts.principal.clone(), policy::context(facts), asked)
                .map_err(Outcome::Refused)?,
            rail: record.rail.clone(),
            principal: facts.principal.clone(),
            terms: Terms { timeout, approvers, always },
            revision: loaded.policy.revision.clone(),
            watch: watch.clone(),
            news: None,
        };
        let cache = gate::downloads().and_then(|folder| egress::Cache::at(folder, loaded.policy.cache()));
        let mut gate = Gate::begin(Plan { gated: gated.clone(), keeper, secrets, fetcher, java: facts.java, cache })?;
        record.hears(gate.news(), fresh.clone());
        Ok(Some(gate))
    }

    /// What went out, once the sandbox has ended.
    pub fn traffic(&self) -> Option<Traffic> {
        self.link.take().map(|link| link.finish())
    }
}

/// What the policy says to a request, and what was looked at for that.
struct Judged {
    verdict: Verdict,
    loaded: Loaded,
    facts: Facts,
    inspected: Inspected,
    /// What was read of its input.
    input: Begun,
    slots: Slots,
}

impl Engine {
    /// Judges, and asks a person where the policy does.
    pub(crate) fn admit(
        &self,
        request: &Request,
        kept: Option<&str>,
        record: &Record<'_>,
    ) -> Result<Admitted, Outcome> {
        self.admit_for(When::Now, request, kept, record)
    }

    fn admit_for(
        &self,
        when: When,
        request: &Request,
        kept: Option<&str>,
        record: &Record<'_>,
    ) -> Result<Admitted, Outcome> {
        let eyes = Eyes::new(&self.workspaces, kept);
        let (request, stored) = self.with_stored(request).map_err(not_set_up)?;
        let request = &request;
        let Judged { verdict, loaded, facts, inspected, input, slots } =
            self.judge(request, &eyes, true, |loaded, facts| {
                facts.stored = told_of(&stored);
                record.is_for(&facts.principal, known(request, facts));
                facts.reasons = self.watch_over(&facts.principal, loaded, record)?;
                let slots = rates::enter(loaded, &facts.principal)?;
                if !loaded.policy.is_built_in() {
                    let envelopes = policy::envelopes(request, &loaded.policy, facts);
                    recorded::write(&envelopes, &known(request, facts), self.workspaces.watch());
                }
                Ok(slots)
            })?;
        record.asked(request, Some((&facts, &input.bytes)), kept);
        record.judged(&verdict, &loaded.policy, &facts);
        for note in &loaded.policy.notes {
            self.workspaces.watch().warn(note);
        }
        let asked = matches!(verdict, Verdict::Ask(_));
        let grant = match verdict {
            Verdict::Allowed(grant, _) => *grant,
            Verdict::Ask(pending) => {
                let grant = self.ask(*pending, &loaded, record, when)?;
                still_the_same(request, &facts, &input, &eyes)?;
                record.still_free()?;
                grant
            }
            Verdict::Refused(refusal) => return Err(Outcome::Refused(refusal)),
        };
        record.grants(&grant);
        let redacts = loaded.policy.redacts();
        let formats = if redacts { rules::own_formats().map_err(not_set_up)? } else { None };
        let secrets = match &grant.powers().network {
            Network::Gated(gated) => {
                // Of no use to it; and to fetch secrets may start programs of the host, and take as long as somebody unlocks a keyring.
                self.backends.iter().for_each(|backend| backend.expect_no_more());
                self.fetch_secrets(&gated.secrets, &loaded.policy, &stored).map_err(not_set_up)?
            }
            Network::Closed => Provided::default(),
        };
        let mut known = known(request, &facts);
        if !secrets.known.is_empty() {
            known.extend(of_the_vault(&secrets.known));
            record.is_for(&facts.principal, known.clone());
        }
        let (mut fetching, mut fresh) = (None, None);
        if !secrets.later.is_empty() {
            let wires = fresh::wires().map_err(|error| usage(format!("cannot fetch secrets: {error}"), "try again"));
            let (tells, hears) = wires?;
            fresh = Some(Rc::new(Fresh::new(hears, known.clone(), record.rail.clone())));
            fetching = Some((self.vault().map_err(not_set_up)?.folder().to_owned(), tells));
        }
        let release = Release::new(redacts, &known, formats, input.bytes).learning(fresh.clone());
        let capture = Capture::new(request.capture);
        let out = matches!(grant.powers().network, Network::Gated(_)).then(|| Out {
            loaded: Rc::new(loaded),
            facts,
            asked: request.network.clone(),
            secrets,
            fetching,
            fresh,
            watch: self.watch.clone(),
        });
        Ok(Admitted { grant, asked, inspected, release, capture, out, link: RefCell::default(), _slots: slots })
    }

    /// Asks first: what `admit` would say, with nothing begun.
    pub(crate) fn permitted(&self, request: &Request, kept: Option<&str>) -> Result<Permitted, Outcome> {
        let record = self.record()?;
        let admitted = match self.admit_for(When::Later, request, kept, &record) {
            Ok(admitted) => admitted,
            Err(outcome) => return Err(record.ended(request, outcome)),
        };
        record.write(Durable::default())?;
        Ok(if admitted.asked { Permitted::ByAnswer } else { Permitted::Already })
    }

    /// The same without asking anybody: what would have to be asked is a refusal that says so. With what was looked at for that.
    pub(crate) fn foresee(&self, request: &Request) -> Result<(Grant, Facts), Outcome> {
        let eyes = Eyes::new(&self.workspaces, None);
        let (request, stored) = self.with_stored(request).map_err(not_set_up)?;
        let enter = |_: &Loaded, facts: &mut Facts| {
            facts.stored = told_of(&stored);
            Ok(Slots::default())
        };
        let Judged { verdict, facts, .. } = self.judge(&request, &eyes, false, enter)?;
        match verdict {
            Verdict::Allowed(grant, _) => Ok((*grant, facts)),
            Verdict::Ask(pending) => Err(Outcome::Refused(would_ask(pending.question()))),
            Verdict::Refused(refusal) => Err(Outcome::Refused(refusal)),
        }
    }

    fn judge(
        &self,
        request: &Request,
        eyes: &Eyes<'_>,
        reads_input: bool,
        enter: impl FnOnce(&Loaded, &mut Facts) -> Result<Slots, Outcome>,
    ) -> Result<Judged, Outcome> {
        if request.command.first().is_none_or(|program| program.is_empty()) {
            return Err(usage("there is no command to run".to_owned(), "put it after `--`: `belljar run -- ls`"));
        }
        door::validate(request)?;
        let user = User::of_the_process();
        let loaded = policies::load(&self.languages, &user, &survey::workspace_folders(request)?, None)?;
        is_expected(request, &loaded.policy)?;
        let mut ground = ground::of(request, &self.backends)?;
        if loaded.policy.pulls() == Ruling::Ask {
            ground = ground::looked_at(ground, &self.backends)?;
        }
        let mut facts = survey::look(request, ground, &user, &loaded, &|path| eyes.is_made_inside(path))?;
        let slots = enter(&loaded, &mut facts)?;
        let input = if reads_input { inspect::input(request, &facts) } else { Begun::default() };
        let pieces = inspect::gather(request, &facts, &input, eyes);
        facts.code = pieces.digest();
        let mut reader = self.reader.take();
        let mut inspected = pieces.scan(reader.as_mut()).map_err(not_set_up)?;
        // Nobody asks it again; to wait for its end takes time, and somebody waits for an answer.
        self.spent.replace(reader);
        Telling::of(request).findings(&mut inspected.findings);
        facts.findings = inspected.findings.clone();
        let verdict = policy::judge(request, &loaded.policy, &facts);
        Ok(Judged { verdict, loaded, facts, inspected, input, slots })
    }

    fn ask(&self, pending: Pending, loaded: &Loaded, record: &Record<'_>, when: When) -> Result<Grant, Outcome> {
        record.question(pending.question());
        record.write(Durable::default())?;
        // That may take long, and what was begun would hold on to the host's mounts meanwhile.
        self.backends.iter().for_each(|backend| backend.expect_no_more());
        let answer = self.ask_a_person(pending.question(), &loaded.policy, when);
        record.answered(pending.question(), &answer);
        pending.approved(&answer.map_err(Outcome::Refused)?).map_err(Outcome::Refused)
    }

    /// As the policy says: who, and for how long.
    pub(crate) fn ask_a_person(&self, question: &Question, policy: &Policy, when: When) -> Result<Approval, Refusal> {
        let policy::Approving { timeout, approvers, always } = policy.approving();
        let terms = Terms { timeout, approvers, always };
        let told = Telling::of_the_process().question(question);
        let person = self.person.as_deref();
        let approval = self.questions().ask_for(when, &told, &terms, person, self.workspaces.watch())?;
        // What was answered is what was told; what that is about is the whole of it.
        match approval.digest == told.digest {
            true => Ok(Approval { digest: question.digest.clone(), ..approval }),
            false => Err(Refusal::new("approval.other", "the answer is to another question".to_owned(), "ask again")),
        }
    }
}

/// For the policy: what stands for each of them, and where.
fn told_of(stored: &[SecretShown]) -> Vec<(String, String, String)> {
    let told = |shown: &SecretShown| (shown.name.clone(), shown.variable.clone(), shown.prefix.clone());
    stored.iter().map(told).collect()
}

/// Variables whose values may be secrets: what is given with the request, and what is around it.
fn known(request: &Request, facts: &Facts) -> Vec<(OsString, OsString)> {
    let given = request.environment.iter().filter_map(|(name, value)| Some((name.clone(), value.clone()?)));
    facts.environment.iter().cloned().chain(given).collect()
}

/// While a person looked at it, what they looked at may have been changed.
fn still_the_same(request: &Request, facts: &Facts, input: &Begun, eyes: &Eyes<'_>) -> Result<(), Outcome> {
    if inspect::gather(request, facts, input, eyes).digest() == facts.code {
        return Ok(());
    }
    Err(refused(
        "approval.code",
        "the code was changed after somebody was asked about it".to_owned(),
        "run it again, and answer the new question",
    ))
}

/// Whoever asks under a policy that they have seen is judged by that one: the very text that was read, not one that was compared before.
fn is_expected(request: &Request, policy: &Policy) -> Result<(), Outcome> {
    if request.revisions.is_empty() || request.revisions.contains(&policy.revision) {
        return Ok(());
    }
    let message = "the policy is not the one that this was asked under".to_owned();
    let mut refusal = Refusal::new(model::OTHER_REVISION, message, "look at the policy, and ask under its revision");
    for denied in &mut refusal.denied {
        denied.about = policy.revision.clone();
    }
    Err(Outcome::Refused(refusal))
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
