//! From an endpoint that was allowed to a connection. The address that was looked at is the one that is dialled.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::time::Duration;

use model::{Host, HostName, NetworkDeed, NetworkEvent, Ruling};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::connection::{Stop, Talk};
use super::live::Live;
use super::refuse::No;
use super::special;

/// After this the next address is tried as well.
const STAGGER: Duration = Duration::from_millis(250);
const MOST_ADDRESSES: usize = 16;
/// For which an answer of the resolver is used again. Each use is judged anew.
const REMEMBERED: Duration = Duration::from_secs(5);
const MOST_REMEMBERED: usize = 1024;

pub(crate) type Remembered = std::collections::HashMap<HostName, (Instant, Vec<IpAddr>)>;

pub(crate) struct Dialled {
    pub stream: TcpStream,
    pub address: IpAddr,
    pub live: Live,
}

/// `rule` and `why` are what allowed it.
pub(crate) async fn dial(talk: &Talk, rule: &str, why: &str) -> Result<Dialled, Stop> {
    let addresses = allowed(talk, addresses(talk).await?)?;
    let port = talk.endpoint.port;
    let mut waiting = addresses.into_iter();
    let mut tries = JoinSet::new();
    let mut live: Option<Live> = None;
    let mut last: Option<io::Error> = None;
    let (mut count, until) = (0u64, Instant::now() + talk.gate.limits.dial);
    let failed = loop {
        if let Some(address) = waiting.next() {
            count += 1;
            let event = NetworkEvent {
                connection: Some(talk.number),
                caller: talk.caller.clone(),
                port: Some(port),
                address: Some(address),
                rule: rule.to_owned(),
                why: why.to_owned(),
                // The same connection, tried at another of its addresses.
                times: (count > 1).then_some(count),
                ..NetworkEvent::new(NetworkDeed::Connect, talk.endpoint.host.to_string())
            };
            // What can't be written down is not dialled.
            talk.gate.session.record(&event).map_err(|_| Stop::Failed)?;
            live.get_or_insert_with(|| Live::new(&talk.gate.session, &event));
            let lands = (talk.gate.around.lands)(SocketAddr::new(address, port));
            tries.spawn_local(async move { (address, TcpStream::connect(lands).await) });
        } else if tries.is_empty() {
            break last.map_or_else(|| "nobody answers".to_owned(), |error| error.to_string());
        }
        let pause = if waiting.len() > 0 { until.min(Instant::now() + STAGGER) } else { until };
        tokio::select! {
            joined = tries.join_next() => match joined {
                Some(Ok((address, Ok(stream)))) => {
                    let Some(mut live) = live else { return Err(Stop::Failed) };
                    live.leads_to(address);
                    // Small messages go out as they come. A broken connection is noticed in the end.
                    stream.set_nodelay(true).ok();
                    rustix::net::sockopt::set_socket_keepalive(&stream, true).ok();
                    return Ok(Dialled { stream, address, live });
                }
                Some(Ok((_, Err(error)))) => last = Some(error),
                Some(Err(_)) | None => {}
            },
            () = tokio::time::sleep_until(pause) => if Instant::now() >= until {
                break "nobody answers in time".to_owned();
            },
        }
    };
    if let Some(live) = &live {
        live.ends_because(format!("cannot connect: {failed}"));
    }
    Err(Stop::Unreached(failed))
}

/// In the order in which they are tried.
async fn addresses(talk: &Talk) -> Result<Vec<IpAddr>, Stop> {
    let name = match &talk.endpoint.host {
        Host::Name(name) => name,
        // Servers on the host listen on one of the two; programs inside that say `localhost` mean either.
        Host::Address(IpAddr::V6(Ipv6Addr::LOCALHOST)) => {
            return Ok(vec![Ipv6Addr::LOCALHOST.into(), Ipv4Addr::LOCALHOST.into()]);
        }
        Host::Address(IpAddr::V4(Ipv4Addr::LOCALHOST)) => {
            return Ok(vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]);
        }
        Host::Address(address) => return Ok(vec![*address]),
    };
    let gate = &talk.gate;
    let pinned: Vec<IpAddr> =
        gate.gated.pinned.iter().filter(|(pinned, _)| pinned == name).map(|(_, address)| *address).collect();
    if !pinned.is_empty() {
        return Ok(pinned);
    }
    if let Some(looks_up) = &gate.around.looks_up {
        return Ok(looks_up(name));
    }
    let remembered = gate.remembered.borrow().get(name).cloned();
    if let Some((when, addresses)) = remembered
        && when.elapsed() < REMEMBERED
    {
        return Ok(addresses);
    }
    let about = talk.endpoint.to_string();
    let unknown = |why: String| {
        talk.refuse(&No::own("gate.lookup", &about, why.clone(), "").later());
        Stop::Unreached(why)
    };
    let asked = name.clone();
    let lookup = tokio::task::spawn_blocking(move || look_up(&asked));
    let found = match tokio::time::timeout(gate.limits.dial, lookup).await {
        Ok(Ok(Ok(found))) if !found.is_empty() => found,
        Ok(Ok(Err(error))) => return Err(unknown(format!("its address can't be found: {error}"))),
        Ok(_) => return Err(unknown("it has no address".to_owned())),
        Err(_) => return Err(unknown("its address was not found in time".to_owned())),
    };
    let mut known = gate.remembered.borrow_mut();
    if known.len() >= MOST_REMEMBERED {
        known.clear();
    }
    known.insert(name.clone(), (Instant::now(), found.clone()));
    Ok(found)
}

/// As this system does it. Takes as long as it takes.
fn look_up(name: &HostName) -> io::Result<Vec<IpAddr>> {
    let name = name.as_str();
    // The last dot says that it is all of the name: a domain to search in would make another one of it. The file of hosts
    // knows no such dot, and a name without any dot is only known with that domain.
    let whole = name.contains('.') && !in_hosts_file(&std::fs::read_to_string("/etc/hosts").unwrap_or_default(), name);
    let found = if whole { (format!("{name}.").as_str(), 0).to_socket_addrs() } else { (name, 0).to_socket_addrs() }?;
    let mut addresses = Vec::new();
    for address in found {
        let address = address.ip().to_canonical();
        if !addresses.contains(&address) && addresses.len() < MOST_ADDRESSES {
            addresses.push(address);
        }
    }
    Ok(addresses)
}

fn in_hosts_file(text: &str, name: &str) -> bool {
    text.lines().any(|line| {
        let line = line.split('#').next().unwrap_or_default();
        line.split_ascii_whitespace().skip(1).any(|word| word.eq_ignore_ascii_case(name))
    })
}

/// Those that this connection may lead to. Each of the others is refused by itself.
fn allowed(talk: &Talk, addresses: Vec<IpAddr>) -> Result<Vec<IpAddr>, Stop> {
    let mut allowed = Vec::new();
    let mut refused: Option<No> = None;
    for address in addresses.into_iter().map(|address| address.to_canonical()) {
        let kind = special::kind(address);
        let judgement = talk.gate.session.porter.leads_to(&talk.endpoint, address);
        let is_silent = judgement.reasons.first().is_some_and(|reason| reason.rule == model::NOT_NAMED);
        // A public one needs nobody's word. But who denies it denies it by every name, and an attacker has names.
        let fine = match judgement.ruling {
            Ruling::Allow => true,
            Ruling::Ask | Ruling::Deny => kind.is_none() && is_silent,
        };
        if fine || kind.is_none() && matches!(talk.endpoint.host, Host::Address(_)) {
            allowed.push(address);
            continue;
        }
        let mut no = No::by(&judgement, &talk.endpoint.to_string());
        let kind = kind.unwrap_or("an address that is denied");
        no.reason.why = format!("it leads to {kind}: {address}; {}", no.reason.why);
        no.address = Some(address);
        if let Some(before) = refused.replace(no) {
            talk.refuse(&before);
        }
    }
    match refused {
        Some(no) if allowed.is_empty() => Err(Stop::no(no)),
        // The other family of the host's own loopback was our idea: that it is not granted is no refusal.
        Some(no) => {
            if !matches!(talk.endpoint.host, Host::Address(_)) {
                talk.refuse(&no);
            }
            Ok(allowed)
        }
        None => Ok(allowed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_of_hosts_is_known() {
        let text = "127.0.0.1 localhost\n# 1.2.3.4 no.example\n10.0.0.1\ta.example b.example # c.example\n";
        for (name, known) in
            [("a.example", true), ("B.example", true), ("c.example", false), ("no.example", false), ("10.0.0.1", false)]
        {
            assert_eq!(in_hosts_file(text, name), known, "{name}");
        }
    }

    #[test]
    fn this_machine_is_found_by_its_name() {
        let found = look_up(&HostName::read("localhost").expect("a name")).expect("an address");
        assert!(found.iter().all(IpAddr::is_loopback) && !found.is_empty(), "{found:?}");
    }
}
