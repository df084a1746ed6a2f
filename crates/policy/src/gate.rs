//! What a policy says at the gate, to each thing that wants to go out. Pure: the engine asks people and writes it down.
//!
//! Two things must come together. Somebody *gave* it: a rule of the machine's or the user's policy that allows or asks about it,
//! or the request, which was admitted. And nobody denies it: all voices are heard, and the strictest wins. A default alone opens
//! nothing.

use std::borrow::Borrow;
use std::collections::BTreeSet;
use std::net::IpAddr;

use model::{
    Action, Context, Endpoint, Envelope, Host, HostName, Judgement, NetworkAsked, Opening, OutgoingRequest, Principal,
    Reason, Refusal, Resource, Ruling,
};

use crate::argument::Told;
use crate::grants::grant_for;
use crate::host::HostPattern;
use crate::immutable::Immutable;
use crate::pattern::Care;
use crate::policy::Policy;
use crate::rule::{Part, Rule};
use crate::wanted::Wanted;
use crate::weigh;

/// All that is needed to decide for the length of a run. The policy is borrowed, shared or owned.
pub struct GateRules<P> {
    policy: P,
    principal: Principal,
    context: Context,
    wanted: Wanted,
    /// What was asked for, and which questions a person has answered about it.
    admitted: Vec<(HostPattern, Vec<Asking>)>,
    secrets: Vec<Vec<Asking>>,
}

/// A question of a rule: rule, place, why.
type Asking = (String, String, String);

impl<P: Borrow<Policy>> GateRules<P> {
    /// For a request that was admitted: what its policy asked about it has been answered.
    pub fn new(
        policy: P,
        principal: Principal,
        context: Context,
        asked: &NetworkAsked,
    ) -> Result<GateRules<P>, Refusal> {
        let wanted = Wanted::read(asked, policy.borrow())?;
        let mut gate = GateRules { policy, principal, context, wanted, admitted: Vec::new(), secrets: Vec::new() };
        let reached = gate.wanted.reached();
        gate.admitted = reached
            .into_iter()
            .map(|pattern| (pattern.clone(), gate.questions(&of_pattern(&pattern), Action::Connect)))
            .collect();
        gate.secrets = gate
            .wanted
            .secrets
            .iter()
            .map(|secret| {
                let hosts =
                    secret.hosts.iter().map(|host| Resource::Secret { name: secret.name.clone(), host: host.host() });
                hosts.flat_map(|resource| gate.questions(&resource, Action::SecretUse)).collect()
            })
            .collect();
        Ok(gate)
    }

    /// Whether a name gets an address: it may be reached on some port.
    pub fn name(&self, name: &HostName) -> Judgement {
        let host = Host::Name(name.clone());
        let mut ports: BTreeSet<u16> = [443, 80].into();
        let rules = self.policy().voices.iter().flat_map(|voice| &voice.sheet.rules).chain(&self.wanted.registries);
        let named = rules.filter(|rule| rule.actions.contains(&Action::Connect)).filter_map(Rule::hosts).flatten();
        let all = named.chain(&self.wanted.allow).chain(&self.wanted.deny);
        ports.extend(all.filter(|pattern| pattern.names(&host)).filter_map(HostPattern::port));
        // One that nobody speaks of stands for all of those.
        ports.extend((1..=u16::MAX).find(|port| !ports.contains(port)));
        // The usual one first: it is what is told.
        let ports = std::iter::once(443).chain(ports.into_iter().filter(|port| *port != 443));
        let heard = ports.map(|port| self.connection(&Endpoint { host: host.clone(), port }));
        heard.min_by_key(|judgement| judgement.ruling).unwrap_or_else(|| self.silence(&Endpoint { host, port: 443 }))
    }

    pub fn opening(&self, to: &Endpoint) -> Opening {
        let judgement = self.connection(to);
        match judgement.ruling != Ruling::Deny && self.reads(to) {
            true => Opening::Read(judgement),
            false => Opening::Whole(judgement),
        }
    }

    /// Whether a connection may lead to an address that is not everybody's. Only who wrote the address, or a block that means
    /// it, has allowed that; by a name, or by a block that has all kinds of addresses, nobody has.
    pub fn leads_to(&self, to: &Endpoint, address: IpAddr) -> Judgement {
        let to = Endpoint { host: Host::Address(address.to_canonical()), port: to.port };
        let envelope = self.envelope(Action::Connect, of_endpoint(&to));
        // Not as an opening: what is only for some requests is for requests to that address, and this one is to a name.
        self.decide_where(
            &to,
            &Part::of(&envelope, None),
            |pattern| pattern.means(address),
            |gate| {
                let mut told = gate.silence(&to);
                for reason in &mut told.reasons {
                    reason.rule = model::NOT_NAMED.to_owned();
                    reason.why = format!("`{}` is no public address, and only who names it can grant it", to.host);
                }
                told
            },
        )
    }

    pub fn request(&self, request: &OutgoingRequest) -> Judgement {
        let to = &request.destination;
        let path = match request.query.is_empty() {
            true => request.path.clone(),
            false => format!("{}?{}", request.path, request.query),
        };
        let (host, method) = (to.host.to_string(), request.method.clone());
        // What follows the `?` is judged and not told: it may have a key in it, and what is told is recorded.
        let told =
            Resource::Request { host: host.clone(), port: to.port, method: method.clone(), path: request.path.clone() };
        let resource = Resource::Request { host, port: to.port, method, path };
        let envelope = self.envelope(Action::Connect, resource);
        let told = self.envelope(Action::Connect, told);
        let about = told.resource.to_string();
        let mut judgement = self.decide(to, &Part::of(&envelope, None), |gate| {
            // In a rule, a star of the path's own would be any letters: whoever copies it would allow more than was asked for.
            let grant = match request.path.contains('*') {
                true => "a rule of your own; the path has a `*` in it, which in a rule means any letters".to_owned(),
                false => grant_for(&told, ""),
            };
            let mut said = gate.silence(to);
            for reason in &mut said.reasons {
                (reason.about, reason.why) = (about.clone(), "is not a granted request".to_owned());
                reason.grant = grant.clone();
            }
            said
        });
        let whole = envelope.resource.to_string();
        for reason in judgement.reasons.iter_mut().filter(|reason| reason.about == whole) {
            reason.about.clone_from(&about);
        }
        // What is asked about all that goes there was asked when the connection was opened.
        let asked: Vec<Asking> = questions(&self.connection(to).reasons);
        answered(judgement, &asked)
    }

    /// Whether downloads of some files there are kept.
    pub fn keeps_some_of(&self, to: &Endpoint) -> bool {
        self.policy().cache() > 0 && self.immutable().any(|one| one.is_at(to))
    }

    /// Whether what a request leads to never changes. That it may go out is another question, and is asked each time.
    pub fn keeps(&self, request: &OutgoingRequest) -> bool {
        let OutgoingRequest { destination, method, path, query, body: _ } = request;
        let plain = method == "GET" && query.is_empty() && self.policy().cache() > 0;
        plain && self.immutable().any(|one| one.matches(destination, path))
    }

    fn immutable(&self) -> impl Iterator<Item = &Immutable> {
        self.policy().immutable().chain(&self.wanted.immutable)
    }

    pub fn secret(&self, name: &str, to: &Endpoint) -> Judgement {
        let resource = Resource::Secret { name: name.to_owned(), host: to.host.to_string() };
        let envelope = self.envelope(Action::SecretUse, resource);
        let deny = |rule: &str, why: String| {
            let written = endpoint_text(to);
            let reason = Reason {
                ruling: Ruling::Deny,
                rule: rule.to_owned(),
                place: String::new(),
                why,
                action: Action::SecretUse,
                about: envelope.resource.to_string(),
                grant: format!("`--secret {name}@{written}`"),
            };
            Judgement { ruling: Ruling::Deny, reasons: vec![reason] }
        };
        let mut all = self.wanted.secrets.iter().zip(&self.secrets);
        let Some((secret, asked)) = all.find(|(secret, _)| secret.name == name) else {
            return deny("secrets.silence", format!("`{name}` was not asked for"));
        };
        if !secret.hosts.iter().any(|pattern| pattern.is_at(to, Care::Exact)) {
            let hosts: Vec<String> = secret.hosts.iter().map(ToString::to_string).collect();
            return deny("secrets.hosts", format!("`{name}` may only go to {}", hosts.join(", ")));
        }
        answered(self.policy().weigh(&envelope), asked)
    }

    pub(crate) fn wanted(&self) -> &Wanted {
        &self.wanted
    }

    /// Everything that may be reached, as somebody wrote it; and whether that is all by name.
    pub(crate) fn reachable(&self) -> Vec<HostPattern> {
        let envelope = self.envelope(Action::Connect, Resource::Host { name: "*".to_owned(), port: 0 });
        let part = Part::of(&envelope, None);
        let mut reachable = self.wanted.reached();
        let rules = self.policy().giving().flat_map(|voice| &voice.sheet.rules);
        for rule in rules.filter(|rule| rule.then != Ruling::Deny && rule.concerns(&part)) {
            let anywhere = HostPattern::of_envelope("*", 0);
            let patterns = rule.hosts().map_or_else(|| anywhere.into_iter().collect(), <[HostPattern]>::to_vec);
            reachable.extend(patterns);
        }
        let permits =
            self.policy().giving().flat_map(|voice| &voice.foreign).any(|rules| rules.speaks_of(Action::Connect));
        reachable.extend(HostPattern::of_envelope("*", 0).filter(|_| permits));
        let mut kept: Vec<HostPattern> = Vec::new();
        for pattern in reachable {
            if !self.wanted.denies(&pattern) && !kept.contains(&pattern) {
                kept.push(pattern);
            }
        }
        kept
    }

    /// Whether some connection may have to be read.
    pub(crate) fn may_read(&self) -> bool {
        let envelope = self.envelope(Action::Connect, Resource::Host { name: "*".to_owned(), port: 0 });
        let part = Part::of(&envelope, None);
        let mut rules = self.policy().voices.iter().flat_map(|voice| &voice.sheet.rules);
        !self.wanted.registries.is_empty()
            || !self.wanted.secrets.is_empty()
            || rules.any(|rule| rule.reads() && rule.concerns(&part))
            || self.foreign_read()
    }

    fn policy(&self) -> &Policy {
        self.policy.borrow()
    }

    fn envelope(&self, action: Action, resource: Resource) -> Envelope {
        Envelope { principal: self.principal.clone(), action, resource, context: self.context.clone() }
    }

    fn questions(&self, resource: &Resource, action: Action) -> Vec<Asking> {
        questions(&self.policy().weigh(&self.envelope(action, resource.clone())).reasons)
    }

    fn connection(&self, to: &Endpoint) -> Judgement {
        let envelope = self.envelope(Action::Connect, of_endpoint(to));
        self.decide(to, &Part::opening(&envelope), |gate| gate.silence(to))
    }

    /// All voices on one part, if somebody gave it.
    fn decide(&self, to: &Endpoint, part: &Part<'_>, silence: impl FnOnce(&Self) -> Judgement) -> Judgement {
        self.decide_where(to, part, |_| true, silence)
    }

    /// The same, where only some patterns give it.
    fn decide_where(
        &self,
        to: &Endpoint,
        part: &Part<'_>,
        counts: impl Fn(&HostPattern) -> bool,
        silence: impl FnOnce(&Self) -> Judgement,
    ) -> Judgement {
        if let Some(refused) = self.refused(to) {
            return refused;
        }
        let mut reasons = self.policy().hear(part);
        reasons.extend(self.wanted.registries.iter().filter_map(|rule| weigh::reason(rule, rule.matches(part), part)));
        let denied = reasons.iter().any(|one| one.ruling == Ruling::Deny && !one.rule.starts_with("defaults."));
        if !denied && !self.is_given(to, part, counts) {
            return silence(self);
        }
        let judgement = Judgement::of(reasons, || Reason { rule: "silence".to_owned(), ..self.silent(to) });
        let admitted = self.admitted.iter().filter(|(pattern, _)| pattern.is_at(to, Care::Exact));
        let registries = self.wanted.registries.iter().any(|rule| rule.matches(part) == Told::Yes);
        let of_registries = self.admitted.iter().filter(|(pattern, _)| registries && pattern.names(&to.host));
        let asked: Vec<Asking> = admitted.chain(of_registries).flat_map(|(_, asked)| asked).cloned().collect();
        answered(judgement, &asked)
    }

    /// Some rule that allows or asks about it, of who may give; or the request. No default.
    fn is_given(&self, to: &Endpoint, part: &Part<'_>, counts: impl Fn(&HostPattern) -> bool) -> bool {
        let is_name = matches!(to.host, Host::Name(_));
        // An address is only given by who wrote it.
        let gives = |rule: &Rule| {
            let care = if rule.then == Ruling::Allow { Care::Exact } else { Care::Forgiving };
            let here = |hosts: &[HostPattern]| hosts.iter().any(|one| one.is_at(to, care) && counts(one));
            rule.then != Ruling::Deny && rule.hosts().map_or(is_name, here) && rule.matches(part) == Told::Yes
        };
        let foreign = |rules: &dyn model::ForeignRules| {
            let later = part.stands_for_requests() && rules.reads_requests() && rules.speaks_of(Action::Connect);
            is_name && (later || rules.judge(part.envelope).iter().any(|reason| reason.ruling != Ruling::Deny))
        };
        self.wanted.allow.iter().any(|pattern| pattern.is_at(to, Care::Exact) && counts(pattern))
            || self.wanted.registries.iter().any(gives)
            || self.policy().giving().any(|voice| {
                voice.sheet.rules.iter().any(gives) || voice.foreign.iter().any(|rules| foreign(rules.as_ref()))
            })
    }

    /// Whether each request on such a connection is to be judged by itself.
    fn reads(&self, to: &Endpoint) -> bool {
        let envelope = self.envelope(Action::Connect, of_endpoint(to));
        let part = Part::of(&envelope, None);
        let is_about = |rule: &Rule| {
            let care = if rule.then == Ruling::Allow { Care::Exact } else { Care::Forgiving };
            let here = rule.hosts().is_none_or(|hosts| hosts.iter().any(|pattern| pattern.is_at(to, care)));
            rule.reads() && here && rule.concerns(&part)
        };
        let secrets = self.wanted.secrets.iter().flat_map(|secret| &secret.hosts);
        self.policy().voices.iter().flat_map(|voice| &voice.sheet.rules).chain(&self.wanted.registries).any(is_about)
            || secrets.into_iter().any(|pattern| pattern.is_at(to, Care::Exact))
            || self.foreign_read()
    }

    fn foreign_read(&self) -> bool {
        self.policy().voices.iter().flat_map(|voice| &voice.foreign).any(|rules| rules.reads_requests())
    }

    /// What the request itself does not want.
    fn refused(&self, to: &Endpoint) -> Option<Judgement> {
        let denied = self.wanted.deny.iter().find(|pattern| pattern.is_at(to, Care::Forgiving));
        let (rule, why, grant) = match denied {
            _ if self.wanted.none => {
                ("network.none", "nothing goes out, as was asked for".to_owned(), "leave `--no-net` out".to_owned())
            }
            Some(pattern) => (
                "network.denied",
                format!("`{pattern}` is not to be reached, as was asked for"),
                format!("leave `--deny-net {pattern}` out"),
            ),
            None => return None,
        };
        let reason = Reason { rule: rule.to_owned(), why, grant, ..self.silent(to) };
        Some(Judgement { ruling: Ruling::Deny, reasons: vec![reason] })
    }

    fn silence(&self, to: &Endpoint) -> Judgement {
        Judgement { ruling: Ruling::Deny, reasons: vec![self.silent(to)] }
    }

    fn silent(&self, to: &Endpoint) -> Reason {
        let envelope = self.envelope(Action::Connect, of_endpoint(to));
        let about = envelope.resource.to_string();
        Reason {
            ruling: Ruling::Deny,
            rule: "network.silence".to_owned(),
            place: String::new(),
            why: "is not a granted host".to_owned(),
            action: Action::Connect,
            grant: grant_for(&envelope, &about),
            about,
        }
    }
}

/// What stands for a pattern that somebody asks for, where it is admitted. Port 0 is any.
pub fn of_pattern(pattern: &HostPattern) -> Resource {
    Resource::Host { name: pattern.host(), port: pattern.port().unwrap_or(0) }
}

fn of_endpoint(to: &Endpoint) -> Resource {
    let host = match &to.host {
        Host::Name(name) => name.to_string(),
        Host::Address(address) => address.to_canonical().to_string(),
    };
    Resource::Host { name: host, port: to.port }
}

fn endpoint_text(to: &Endpoint) -> String {
    let pattern = HostPattern::of_envelope(&to.host.to_string(), to.port);
    pattern.map_or_else(|| to.to_string(), |pattern| pattern.to_string())
}

fn questions(reasons: &[Reason]) -> Vec<Asking> {
    let asks = reasons.iter().filter(|reason| reason.ruling == Ruling::Ask);
    asks.map(|reason| (reason.rule.clone(), reason.place.clone(), reason.why.clone())).collect()
}

/// The same, where a person has said yes to these.
fn answered(mut judgement: Judgement, asked: &[Asking]) -> Judgement {
    for reason in judgement.reasons.iter_mut().filter(|reason| reason.ruling == Ruling::Ask) {
        let is_it = |(rule, place, why): &Asking| *rule == reason.rule && *place == reason.place && *why == reason.why;
        if asked.iter().any(is_it) {
            reason.ruling = Ruling::Allow;
        }
    }
    judgement.with(Vec::new())
}
