//! One connection that comes out of a sandbox: where to, whether, what it speaks, and then through.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::time::Duration;

use model::{AskedAtGate, Caller, Endpoint, Host, Judgement, NetworkDeed, Opening, Retry, Ruling};
use rustix::event::{PollFd, PollFlags, poll};
use tokio::net::TcpStream;
use tokio::time::Instant;

use super::Gate;
use super::caller::Over;
use super::dial::{Dialled, dial};
use super::hello::{Hello, HelloReader, LONGEST, Said};
use super::passage::Passage;
use super::refuse::{No, Refused, reset, rule_text};
use super::relay::{self, Flow};
use super::sniff::{Look, look};
use super::stand_ins::{self, Meant};
use crate::read::Reader;

const HTTP: u16 = 80;
const HTTPS: u16 = 443;
/// Between two looks whether whoever waits for an answer is still there.
const GLANCE: Duration = Duration::from_millis(250);

/// Why it does not go on.
pub(crate) enum Stop {
    No(Box<No>),
    /// The client went away.
    Gone,
    /// It is written down where that is possible; the client is told by a reset.
    Failed,
    /// Whoever was to be reached can't be, for this reason.
    Unreached(String),
}

impl Stop {
    pub fn no(no: No) -> Stop {
        Stop::No(Box::new(no))
    }
}

pub(crate) struct Talk {
    pub gate: Rc<Gate>,
    pub number: u64,
    pub caller: Option<Caller>,
    pub endpoint: Endpoint,
    peer: SocketAddr,
}

/// What goes on how.
enum Through {
    Relayed {
        out: Flow,
        back: Flow,
    },
    ReadAsTls(Vec<u8>),
    ReadAsHttp(Vec<u8>),
    /// The other side can't be reached, for this reason: what is kept of it can still be had.
    Alone(Vec<u8>, String),
}

pub(crate) async fn take(gate: Rc<Gate>, client: TcpStream, peer: SocketAddr) {
    // Small messages go on as they come.
    client.set_nodelay(true).ok();
    let number = gate.session.number();
    let caller = gate.callers.borrow_mut().find(Over::Tcp, peer);
    let endpoint = match destination(&gate, &client) {
        Ok(endpoint) => endpoint,
        Err((no, wanted)) => {
            let (host, port) = wanted.map_or_else(
                || ("(the gate itself)".to_owned(), None),
                |wanted| (wanted.ip().to_string(), Some(wanted.port())),
            );
            let refused = Refused { what: NetworkDeed::Connect, number: Some(number), host, port, way: 0 };
            gate.refuse(refused, &no, || caller);
            return reset(client);
        }
    };
    let talk = Talk { gate, number, caller, endpoint, peer };
    // In a box that goes when it has gone through: what follows can last for long.
    match Box::pin(talk.prepare(&client)).await {
        Ok((Some(dialled), through)) => talk.go_on(client, dialled, through).await,
        Ok((None, through)) => talk.go_on_alone(client, through).await,
        Err(Stop::No(no)) => {
            talk.refuse(&no);
            reset(client);
        }
        Err(Stop::Failed | Stop::Unreached(_)) => reset(client),
        Err(Stop::Gone) => {}
    }
}

/// Where it wanted to go, in the one form in which it is judged and dialled.
fn destination(gate: &Gate, client: &TcpStream) -> Result<Endpoint, (No, Option<SocketAddr>)> {
    let nowhere = |why: &str| No::own("gate.direct", "the gate", why, "connect to where you want to go");
    let wanted = (gate.around.original)(client).map_err(|_| (nowhere("it has no destination"), None))?;
    let wanted = SocketAddr::new(wanted.ip().to_canonical(), wanted.port());
    let own = client.local_addr().map(|own| SocketAddr::new(own.ip().to_canonical(), own.port()));
    if own.map_or(true, |own| own == wanted) {
        return Err((nowhere("it is for the gate itself, which is no server"), None));
    }
    let about = wanted.to_string();
    let no = |rule: &str, why: &str| (No::own(rule, &about, why, ""), Some(wanted));
    if wanted.port() == 0 {
        return Err(no("gate.port", "there is no port 0"));
    }
    let host = match stand_ins::meant(wanted.ip()) {
        None => Host::Address(wanted.ip()),
        Some(Meant::Number(number)) => match gate.stand_ins.borrow().name(number) {
            Some(name) => Host::Name(name.clone()),
            None => return Err(no("gate.stand-in", "this address stands for no name")),
        },
        Some(Meant::Nobody) => return Err(no("gate.stand-in", "this address stands for no name")),
    };
    Ok(Endpoint { host, port: wanted.port() })
}

impl Talk {
    pub fn refuse(&self, no: &No) {
        let refused = Refused {
            what: NetworkDeed::Connect,
            number: Some(self.number),
            host: self.endpoint.host.to_string(),
            port: Some(self.endpoint.port),
            way: 0,
        };
        self.gate.refuse(refused, no, || self.caller.clone());
    }

    fn no(&self, rule: &str, why: impl Into<String>, grant: &str) -> Stop {
        Stop::no(No::own(rule, &self.endpoint.to_string(), why, grant))
    }

    /// All that is to be known before anything of the client's goes out.
    async fn prepare(&self, client: &TcpStream) -> Result<(Option<Dialled>, Through), Stop> {
        let (judgement, read) = match self.gate.session.porter.opens(&self.endpoint) {
            Opening::Whole(judgement) => (judgement, false),
            Opening::Read(judgement) => (judgement, true),
        };
        let rule = judgement.reasons.first().map(rule_text).unwrap_or_default();
        let why = match judgement.ruling {
            Ruling::Deny => return Err(Stop::no(No::by(&judgement, &self.endpoint.to_string()))),
            // Also where requests are read: what asks about all of them is asked here, once, and not again with each.
            Ruling::Ask => self.ask(client, &judgement).await?,
            Ruling::Allow => String::new(),
        };
        let port = self.endpoint.port;
        if !read && port != HTTP && port != HTTPS {
            let (dialled, through) = self.listen_both_ways(client, &rule, &why).await?;
            return Ok((Some(dialled), through));
        }
        let Some((begun, first)) = self.beginning(client, true).await? else { return Err(Stop::Gone) };
        let through = match first {
            First::Tls(hello) if port != HTTP => {
                self.check(&hello, read)?;
                if read {
                    Through::ReadAsTls(begun)
                } else {
                    Through::Relayed { out: Flow::beginning_with(begun), back: Flow::beginning_with(Vec::new()) }
                }
            }
            First::Http if port != HTTPS => Through::ReadAsHttp(begun),
            _ if port == HTTPS => return Err(self.no("gate.tls", "what goes to port 443 must be TLS", "")),
            _ if port == HTTP => return Err(self.no("gate.http", "what goes to port 80 must be HTTP", "")),
            _ => {
                let why = "its requests are judged one by one, and this is neither HTTP nor TLS";
                return Err(self.no("gate.unread", why, "grant the host and port without methods, paths or secrets"));
            }
        };
        if !matches!(through, Through::Relayed { .. }) {
            self.must_be_readable()?;
        }
        match (dial(self, &rule, &why).await, through) {
            (Ok(dialled), through) => Ok((Some(dialled), through)),
            // Only where nobody answers. What is refused is refused, whatever is kept of it.
            (Err(Stop::Unreached(why)), Through::ReadAsTls(begun)) if self.is_kept_in_part() => {
                Ok((None, Through::Alone(begun, why)))
            }
            (Err(stop), _) => Err(stop),
        }
    }

    fn is_kept_in_part(&self) -> bool {
        let cache = self.gate.reader.as_ref().is_some_and(Reader::has_cache);
        cache && self.gate.session.porter.keeps_some_of(&self.endpoint)
    }

    /// A person decides. Whoever goes away meanwhile is no longer asked for. Returns what to write down.
    async fn ask(&self, client: &TcpStream, judgement: &Judgement) -> Result<String, Stop> {
        let about =
            AskedAtGate { caller: self.caller.clone(), destination: self.endpoint.clone(), request: None, body: None };
        let answer = tokio::select! {
            answer = self.gate.session.porter.asks(judgement, &about) => answer,
            () = self.leaves(client) => return Err(Stop::Gone),
        };
        answer.map(|approval| format!("approved by {}", approval.by)).map_err(|refusal| {
            let mut no = No::by(judgement, &self.endpoint.to_string());
            (no.reason.ruling, no.retry) = (Ruling::Deny, Retry::AfterApproval);
            (no.reason.why, no.reason.grant) = (refusal.message, refusal.hint);
            Stop::no(no)
        })
    }

    /// Returns when nobody has the other end any more. To have said all is not to have left.
    async fn leaves(&self, client: &TcpStream) {
        loop {
            tokio::time::sleep(GLANCE).await;
            let mut look = [PollFd::new(client, PollFlags::RDHUP)];
            let now = rustix::time::Timespec { tv_sec: 0, tv_nsec: 0 };
            if poll(&mut look, Some(&now)).is_err() {
                return;
            }
            let seen = look[0].revents();
            if seen.intersects(PollFlags::HUP | PollFlags::ERR) {
                return;
            }
            let known = self.caller.is_some() && self.gate.callers.borrow_mut().find(Over::Tcp, self.peer).is_some();
            if seen.contains(PollFlags::RDHUP) && !known {
                return;
            }
        }
    }

    /// On other ports the server may be the one to begin: what it says is passed on while the client's first bytes are waited
    /// for.
    async fn listen_both_ways(&self, client: &TcpStream, rule: &str, why: &str) -> Result<(Dialled, Through), Stop> {
        let dialled = dial(self, rule, why).await?;
        let mut back = Flow::beginning_with(Vec::new());
        let heard = {
            let live = &dialled.live;
            let talks = back.run(&dialled.stream, client, &self.gate.scratch, |bytes| live.count(0, bytes));
            let begins = self.beginning(client, false);
            tokio::pin!(talks, begins);
            tokio::select! {
                heard = &mut begins => heard,
                ended = &mut talks => match ended {
                    // It has said all; the client may still have something to say.
                    Ok(()) => begins.await,
                    Err(error) => {
                        dialled.live.ends_because(error.to_string());
                        return Err(Stop::Failed);
                    }
                },
            }
        };
        let (begun, first) = match heard {
            Ok(Some(heard)) => heard,
            // It has said nothing, and will not.
            Ok(None) => (Vec::new(), First::Other),
            Err(stop) => {
                if let Stop::No(no) = &stop {
                    dialled.live.ends_because(no.reason.why.clone());
                }
                return Err(stop);
            }
        };
        if let First::Tls(hello) = &first
            && let Err(stop) = self.check(hello, false)
        {
            if let Stop::No(no) = &stop {
                dialled.live.ends_because(no.reason.why.clone());
            }
            return Err(stop);
        }
        // A server of HTTP does not speak first.
        if matches!(first, First::Http) && back.is_untouched() {
            self.must_be_readable()?;
            return Ok((dialled, Through::ReadAsHttp(begun)));
        }
        Ok((dialled, Through::Relayed { out: Flow::beginning_with(begun), back }))
    }

    /// What the client says first, as far as is needed to know what it is. `None`: it ended without a word.
    async fn beginning(&self, client: &TcpStream, at_once: bool) -> Result<Option<(Vec<u8>, First)>, Stop> {
        let patience = self.gate.limits.hello;
        let mut until = at_once.then(|| Instant::now() + patience);
        let mut hello = HelloReader::default();
        let mut begun = Vec::new();
        loop {
            let ready = match until {
                Some(until) => tokio::time::timeout_at(until, client.readable()).await,
                None => Ok(client.readable().await),
            };
            let Ok(ready) = ready else {
                return Err(self.no(
                    "gate.hello",
                    format!("it did not say in {} s what it is", patience.as_secs()),
                    "",
                ));
            };
            ready.map_err(|_| Stop::Gone)?;
            let mut room = [0; 4096];
            let read = match client.try_read(&mut room) {
                Ok(read) => &room[..read],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
                Err(_) => return Err(Stop::Gone),
            };
            if read.is_empty() {
                // What it said so far could not be told from other things, and is all.
                return Ok((!begun.is_empty()).then_some((begun, First::Other)));
            }
            until.get_or_insert_with(|| Instant::now() + patience);
            begun.extend_from_slice(read);
            match look(&begun) {
                Look::Unclear => {}
                Look::Http => return Ok(Some((begun, First::Http))),
                Look::Other => return Ok(Some((begun, First::Other))),
                Look::Tls => {
                    let known = hello.raw.len();
                    match hello.take(begun.get(known..).unwrap_or_default()) {
                        Said::Part if begun.len() > LONGEST => return Err(self.no("gate.hello", "it is too long", "")),
                        Said::Part => {}
                        Said::Whole(said) => return Ok(Some((begun, First::Tls(said)))),
                        Said::Bad(why) => {
                            return Err(self.no("gate.hello", format!("its TLS can't be understood: {why}"), ""));
                        }
                    }
                }
            }
        }
    }

    fn must_be_readable(&self) -> Result<(), Stop> {
        let read = self.gate.reader.is_some();
        read.then_some(()).ok_or_else(|| self.no("gate.unread", "its requests can't be read here", ""))
    }

    /// Whether a client of TLS means whom it was let through to. `read`: we answer it ourselves.
    fn check(&self, hello: &Hello, read: bool) -> Result<(), Stop> {
        // Where we answer, the name that is hidden is never looked at.
        if hello.encrypted && !read {
            return Err(self.no("gate.hidden-name", "encrypted client hello hides the name", ""));
        }
        let said = hello.name.as_deref();
        let means = match (&self.endpoint.host, said) {
            (Host::Name(name), Some(said)) => said == name.as_str(),
            (Host::Name(_), None) | (Host::Address(_), None) => matches!(self.endpoint.host, Host::Address(_)),
            (Host::Address(address), Some(said)) => self.stands_for(*address, said),
        };
        if means {
            return Ok(());
        }
        let why = match said {
            Some(said) => format!("its TLS is for `{}`", said.chars().take(64).collect::<String>()),
            None => "its TLS does not say whom it is for".to_owned(),
        };
        Err(self.no("gate.other-name", why, ""))
    }

    /// Names of an address: those that somebody wrote down for it, and `localhost` for the loopback.
    fn stands_for(&self, address: IpAddr, name: &str) -> bool {
        let pinned = &self.gate.gated.pinned;
        let written = pinned.iter().any(|(known, at)| known.as_str() == name && at.to_canonical() == address);
        let local = name == "localhost" || name.ends_with(".localhost");
        written || (address.is_loopback() && local)
    }

    async fn go_on_alone(&self, client: TcpStream, through: Through) {
        let (Through::Alone(begun, why), Some(reader)) = (through, &self.gate.reader) else { return reset(client) };
        let (number, endpoint, caller) = (self.number, self.endpoint.clone(), self.caller.clone());
        let passage = Passage { number, endpoint, address: None, caller };
        // That nobody was reached is written down; how the client ends this is told by its requests.
        reader.alone(&self.gate.session, passage, begun, client, why).await.ok();
    }

    async fn go_on(&self, client: TcpStream, dialled: Dialled, through: Through) {
        let Dialled { stream: upstream, address, mut live } = dialled;
        let passage = Passage {
            number: self.number,
            endpoint: self.endpoint.clone(),
            address: Some(address),
            caller: self.caller.clone(),
        };
        let session = &self.gate.session;
        let ended = match (through, &self.gate.reader) {
            (Through::Relayed { out, back }, _) => {
                let gate = &self.gate;
                let ended = relay::both(&client, &upstream, out, back, &gate.scratch, &live, gate.limits.idle).await;
                if ended.is_err() {
                    // As one side broke off, so does the other.
                    reset(client);
                    reset(upstream);
                }
                ended
            }
            (Through::ReadAsTls(begun), Some(reader)) => {
                live.is_counted_elsewhere();
                reader.tls(session, passage, begun, client, upstream).await
            }
            (Through::ReadAsHttp(begun), Some(reader)) => {
                live.is_counted_elsewhere();
                reader.plain(session, passage, begun, client, upstream).await
            }
            (Through::ReadAsTls(_) | Through::ReadAsHttp(_), None) | (Through::Alone(..), _) => {
                reset(client);
                Err(io::Error::new(io::ErrorKind::Unsupported, "nobody here can read requests"))
            }
        };
        if let Err(error) = ended {
            live.ends_because(error.to_string());
        }
    }
}

enum First {
    Tls(Hello),
    Http,
    Other,
}
