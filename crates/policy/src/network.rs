//! What of the network a request gets: the power in its grant, what programs inside are told, what people are shown.

use std::ffi::{OsStr, OsString};

use model::{
    AUTHORITIES, Action, Endpoint, Envelope, Gated, Host, JAVA_AUTHORITIES, Network, Refusal, Request, Resource,
    Ruling, SecretGrant,
};

use crate::facts::Facts;
use crate::gate::{GateRules, of_pattern};
use crate::judge::{context, envelope};
use crate::policy::Policy;
use crate::stand_in;
use crate::wanted::Wanted;

/// Where the common tool-chains look for authorities.
const TRUST: &[&str] = &[
    "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "GIT_SSL_CAINFO",
    "CARGO_HTTP_CAINFO", "PIP_CERT", "npm_config_cafile", "AWS_CA_BUNDLE", "DENO_CERT",
    "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", "YARN_HTTPS_CA_FILE_PATH", "CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE",
    "HEX_CACERTS_PATH",
];

/// Closed, unless something may be reached or is published. Bad text in a flag is refused.
pub fn granted(request: &Request, policy: &Policy, facts: &Facts) -> Result<Network, Refusal> {
    let gate = GateRules::new(policy, facts.principal.clone(), context(facts), &request.network)?;
    if gate.wanted().none {
        return Ok(Network::Closed);
    }
    let reachable = gate.reachable();
    let Wanted { none: _, allow: _, deny: _, registries: _, immutable: _, secrets, pinned, published } = gate.wanted();
    for secret in secrets {
        let goes = secret.hosts.iter().any(|host| reachable.iter().any(|known| known.meets(host, crate::Care::Exact)));
        if let (false, Some(host)) = (goes, secret.hosts.first()) {
            return Err(Refusal::new(
                "secrets.unreachable",
                format!("the secret `{}` can't go anywhere: `{host}` is not granted", secret.name),
                &format!("add `--allow-net {host}`"),
            ));
        }
    }
    if reachable.is_empty() && published.is_empty() {
        return Ok(Network::Closed);
    }
    let secrets: Vec<SecretGrant> = secrets
        .iter()
        .map(|secret| SecretGrant {
            name: secret.name.clone(),
            hosts: secret.hosts.iter().map(ToString::to_string).collect(),
            variable: {
                let stored = stored(facts, &secret.name).map(|(variable, _)| variable);
                policy.secret_variable(&secret.name).or(stored).unwrap_or(&secret.name).to_owned()
            },
            stand_in: {
                let stored = stored(facts, &secret.name).map(|(_, prefix)| prefix).filter(|prefix| !prefix.is_empty());
                stand_in::of(&secret.name, policy.secret_prefix(&secret.name).or(stored), &facts.seed)
            },
        })
        .collect();
    for (at, one) in secrets.iter().enumerate() {
        let is_variable = !one.variable.contains(['-', '.']) && !one.variable.starts_with(|l: char| l.is_ascii_digit());
        if !is_variable || secrets[..at].iter().any(|other| other.variable == one.variable) {
            return Err(Refusal::new(
                "secrets.variable",
                format!("`{}` can't be the variable for the secret `{}`", one.variable, one.name),
                &format!("say which in your policy: `[secrets.{}] variable = \"TOKEN\"`", one.name),
            ));
        }
    }
    let own = |port: &u16| {
        let own = [std::net::Ipv4Addr::LOCALHOST.into(), std::net::Ipv6Addr::LOCALHOST.into()];
        own.into_iter().any(|address| {
            let to = Endpoint { host: Host::Address(address), port: *port };
            gate.leads_to(&to, address).ruling != Ruling::Deny
        })
    };
    let mut loopback: Vec<u16> = reachable.iter().filter_map(|pattern| pattern.loopback()).filter(own).collect();
    loopback.sort_unstable();
    loopback.dedup();
    Ok(Network::Gated(Gated {
        hosts: reachable.iter().map(ToString::to_string).collect(),
        loopback,
        reads: gate.may_read(),
        pinned: pinned.clone(),
        secrets,
        published: published.clone(),
    }))
}

/// What is asked for beyond what every sandbox gets.
pub fn envelopes(request: &Request, policy: &Policy, facts: &Facts) -> Vec<Envelope> {
    // What can't be read is refused when the grant is made.
    let Ok(wanted) = Wanted::read(&request.network, policy) else { return Vec::new() };
    let hosts = wanted.reached().into_iter().filter(|pattern| !wanted.denies(pattern));
    let hosts = hosts.map(|pattern| envelope(facts, Action::Connect, of_pattern(&pattern)));
    let secrets = wanted.secrets.iter().flat_map(|secret| {
        let use_of = |host: String| Resource::Secret { name: secret.name.clone(), host };
        secret.hosts.iter().map(move |host| envelope(facts, Action::SecretUse, use_of(host.host())))
    });
    hosts.chain(secrets).collect()
}

/// Variables with what stands for secrets.
type StandIns = Vec<(OsString, OsString)>;

/// Variables that must be there for all of it to work. The first are set before what the request sets, the others after: in
/// no case is a secret's own value inside.
pub fn variables(network: &Network, facts: &Facts) -> (Vec<(&'static str, OsString)>, StandIns) {
    let Network::Gated(gated) = network else { return (Vec::new(), Vec::new()) };
    let mut trust: Vec<(&'static str, OsString)> = Vec::new();
    if gated.reads {
        trust.extend(TRUST.iter().map(|name| (*name, OsString::from(AUTHORITIES))));
    }
    if gated.reads && facts.java {
        let options =
            format!("-Djavax.net.ssl.trustStore={JAVA_AUTHORITIES} -Djavax.net.ssl.trustStorePassword=changeit");
        trust.push(("JAVA_TOOL_OPTIONS", options.into()));
    }
    let secrets = gated.secrets.iter().map(|secret| (secret.variable.clone().into(), secret.stand_in.clone().into()));
    (trust, secrets.collect())
}

/// What is there already stays before it.
pub fn joined(name: &str, known: Option<&OsStr>, value: &OsStr) -> OsString {
    match known.filter(|known| name == "JAVA_TOOL_OPTIONS" && !known.is_empty()) {
        Some(known) => [known, OsStr::new(" "), value].into_iter().collect(),
        None => value.to_owned(),
    }
}

/// For a person who is asked.
pub fn shown(request: &Request, network: &Network) -> Vec<(String, String)> {
    let mut shown: Vec<(String, String)> = Vec::new();
    let mut show = |name: &str, value: String| shown.push((name.to_owned(), value));
    if request.network.none {
        show("network", "none".to_owned());
    }
    let Network::Gated(Gated { hosts: _, loopback: _, reads: _, pinned, secrets, published }) = network else {
        return shown;
    };
    for host in &request.network.allow {
        show("network", host.clone());
    }
    for host in &request.network.deny {
        show("network but not", host.clone());
    }
    for (name, address) in pinned {
        show("address", format!("{name} is {address}"));
    }
    for secret in secrets {
        show("secret", format!("{} to {}", secret.name, secret.hosts.join(", ")));
    }
    for port in published {
        show("published", format!("127.0.0.1:{} to {} inside", port.host, port.guest));
    }
    shown
}

/// The vault's word on a secret: its variable, and what the stand-in begins with.
fn stored<'a>(facts: &'a Facts, name: &str) -> Option<(&'a str, &'a str)> {
    let (_, variable, prefix) = facts.stored.iter().find(|(known, ..)| known == name)?;
    Some((variable, prefix))
}
