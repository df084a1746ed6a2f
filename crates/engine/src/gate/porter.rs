//! Decides at the gate by the policy, asks people, and writes everything down. Lives in the gate's own process.

use std::borrow::Borrow;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;

use ledger::Durable;
use model::{
    Answer, AskedAtGate, Asking, Conversation, Decision, Endpoint, HostName, Judgement, NetworkDeed, NetworkEvent,
    Opening, OutgoingRequest, Parked, Person, Porter, Principal, Question, Refusal, Ruling, Silence, Standing, Trouble,
    Watch,
};
use policy::{GateRules, Policy};
use rustix::pipe::PipeFlags;
use serde_json::json;

use super::news::Teller;
use crate::approvals::{Approvals, Terms};
use crate::policies::Loaded;
use crate::rail::Rail;
use crate::told::Telling;

pub struct Doorkeeper {
    pub rules: GateRules<Shared>,
    pub rail: Rc<Rail>,
    pub principal: Principal,
    pub terms: Terms,
    /// Of the policy.
    pub revision: String,
    pub watch: Rc<dyn Watch>,
    /// Hears of connections while they are made, or tried.
    pub news: Option<Teller>,
}

/// A policy that several hold.
pub struct Shared(pub Rc<Loaded>);

impl Borrow<Policy> for Shared {
    fn borrow(&self) -> &Policy {
        &self.0.policy
    }
}

impl Porter for Doorkeeper {
    fn knows(&self, name: &HostName) -> Judgement {
        self.rules.name(name)
    }

    fn opens(&self, endpoint: &Endpoint) -> Opening {
        self.rules.opening(endpoint)
    }

    fn leads_to(&self, endpoint: &Endpoint, address: IpAddr) -> Judgement {
        self.rules.leads_to(endpoint, address)
    }

    fn lets(&self, request: &OutgoingRequest) -> Judgement {
        self.rules.request(request)
    }

    fn keeps_some_of(&self, endpoint: &Endpoint) -> bool {
        self.rules.keeps_some_of(endpoint)
    }

    fn keeps(&self, request: &OutgoingRequest) -> bool {
        self.rules.keeps(request)
    }

    fn adds(&self, secret: &str, endpoint: &Endpoint) -> Judgement {
        self.rules.secret(secret, endpoint)
    }

    fn asks(&self, judgement: &Judgement, about: &AskedAtGate) -> Asking {
        let question = question(&self.principal, judgement, about, &self.revision);
        let told = Telling::of_the_process().question(&question);
        let rules: Vec<&str> = question.reasons.iter().map(|reason| reason.rule.as_str()).collect();
        let asked = json!({"question": question.digest, "rules": rules, "policy": question.revision, "at": "egress"});
        self.rail.say("approval.asked", false, asked);
        if let Err(outcome) = self.rail.write(Durable { on_disk: true, ..Durable::default() }) {
            let trouble = crate::policies::trouble(outcome);
            return Box::pin(async move { Err(Refusal::new("ledger", trouble.message, &trouble.fix)) });
        }
        self.watch.warn(&format!(
            "{} waits at the gate until somebody answers: `belljar approve`",
            question.reasons.first().map_or_else(String::new, |reason| reason.about.clone())
        ));
        let terms = self.terms.clone();
        // Whoever waits for the answer; when they leave, nobody is asked any longer.
        let (leaves, stays) = match rustix::pipe::pipe_with(PipeFlags::CLOEXEC) {
            Ok((leaves, stays)) => (Absence(leaves), stays),
            Err(error) => {
                let no = Refusal::new("approval", format!("nobody could be asked: {error}"), "try again");
                return Box::pin(async move { Err(no) });
            }
        };
        let waiting = egress::on_a_thread(move || Approvals::of_the_user().ask(&told, &terms, Some(&leaves), &Silence));
        let rail = self.rail.clone();
        Box::pin(async move {
            let _stays = stays;
            let answer = match waiting.await {
                Some(answer) => answer,
                None => Err(Refusal::new("approval", "nobody could be asked".to_owned(), "please report this")),
            };
            let (yes, said) = match &answer {
                Ok(approval) => (true, json!({"question": question.digest, "yes": true, "by": approval.by})),
                Err(no) => (false, json!({"question": question.digest, "yes": false, "why": no.message})),
            };
            rail.say("approval.answered", !yes, said);
            rail.write(Durable { on_disk: true, ..Durable::default() }).map_err(|outcome| {
                let trouble = crate::policies::trouble(outcome);
                Refusal::new("ledger", trouble.message, &trouble.fix)
            })?;
            answer
        })
    }

    fn records(&self, event: &NetworkEvent) -> Result<(), Trouble> {
        self.rail.say(event.what.name(), event.denied, json!(event));
        // What has happened already may use the room that is kept for that.
        let is_over = matches!(event.what, NetworkDeed::Close | NetworkDeed::Answer);
        let durable = Durable { last_words: is_over, ..Durable::default() };
        self.rail.write(durable).map_err(crate::policies::trouble)?;
        if let (NetworkDeed::Name | NetworkDeed::Connect, Some(news)) = (event.what, &self.news) {
            // Of a mere name there is no port.
            news.connected(&event.host, event.port.unwrap_or_default());
        }
        Ok(())
    }
}

/// Says no to a question once whoever asked has left: nobody waits for another answer, and a thread would.
struct Absence(OwnedFd);

impl Person for Absence {
    fn ask(&self, _: &Parked, _: &[Standing]) -> Option<Box<dyn Conversation>> {
        Some(Box::new(Absence(self.0.try_clone().ok()?)))
    }
}

impl Conversation for Absence {
    fn input(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    fn heard(&mut self) -> Option<Answer> {
        Some(Answer { decision: Decision::Deny, reason: "whoever asked has left".to_owned() })
    }

    fn end(self: Box<Self>, _: Option<&str>) {}
}

fn question(principal: &Principal, judgement: &Judgement, about: &AskedAtGate, revision: &str) -> Question {
    let AskedAtGate { caller, destination, request, body } = about;
    let mut shown = vec![("to".to_owned(), destination.to_string())];
    if let Some(caller) = caller {
        shown.push(("program".to_owned(), format!("{} ({})", caller.program, caller.process)));
    }
    if let Some((method, path)) = request {
        shown.push(("request".to_owned(), format!("{method} {path}")));
    }
    if let Some((bytes, digest)) = body {
        shown.push(("body".to_owned(), format!("{bytes} bytes, blake3 {digest}")));
    }
    let reasons = judgement.reasons.iter().filter(|reason| reason.ruling == Ruling::Ask).cloned().collect();
    Question::new(principal.clone(), shown, reasons, Vec::new(), revision.to_owned())
}
