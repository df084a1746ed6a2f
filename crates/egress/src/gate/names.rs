//! Names asked for inside. Answered here and now: a question tells nobody outside anything.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::rc::Rc;
use std::time::Duration;

use model::{HostName, NetworkDeed, NetworkEvent, Ruling};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};

use super::caller::Over;
use super::question::{self, Heard, Question, Reply, Wants};
use super::refuse::{No, Refused, rule_text};
use super::stand_ins;
use super::{Gate, PAUSE};

const LONGEST_DATAGRAM: usize = 4096;
/// Who asks over TCP, at once, how long, and how often.
const MOST_STREAMS: usize = 64;
const PATIENCE: Duration = Duration::from_secs(10);
const MOST_QUESTIONS: usize = 1000;

pub(crate) async fn over_datagrams(gate: Rc<Gate>, socket: UdpSocket) {
    let mut room = vec![0; LONGEST_DATAGRAM];
    loop {
        match socket.recv_from(&mut room).await {
            Ok((length, from)) => {
                let question = room.get(..length).unwrap_or_default();
                if let Some(answer) = answer(&gate, question, Over::Udp, from) {
                    // Whoever does not get it asks again.
                    socket.send_to(&answer, from).await.ok();
                }
            }
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

pub(crate) async fn over_streams(gate: Rc<Gate>, listener: TcpListener) {
    let places = std::sync::Arc::new(tokio::sync::Semaphore::new(MOST_STREAMS));
    loop {
        let Ok((stream, from)) = listener.accept().await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        // More than that are turned away, and may come again.
        let Ok(place) = places.clone().try_acquire_owned() else { continue };
        let gate = gate.clone();
        tokio::task::spawn_local(async move {
            // One that breaks off or is too slow knows it.
            tokio::time::timeout(PATIENCE, talk(&gate, stream, from)).await.ok();
            drop(place);
        });
    }
}

async fn talk(gate: &Gate, mut stream: TcpStream, from: SocketAddr) -> io::Result<()> {
    for _ in 0..MOST_QUESTIONS {
        let length = stream.read_u16().await?;
        let mut question = vec![0; usize::from(length)];
        stream.read_exact(&mut question).await?;
        let Some(answer) = answer(gate, &question, Over::Tcp, from) else { return Ok(()) };
        let mut bytes = u16::try_from(answer.len()).map_err(io::Error::other)?.to_be_bytes().to_vec();
        bytes.extend(answer);
        stream.write_all(&bytes).await?;
    }
    Ok(())
}

fn answer(gate: &Gate, bytes: &[u8], over: Over, from: SocketAddr) -> Option<Vec<u8>> {
    match question::read(bytes) {
        Heard::Noise => None,
        Heard::Answer(answer) => Some(answer),
        Heard::Question(question) => question.answer(&reply(gate, &question, over, from)),
    }
}

fn reply(gate: &Gate, question: &Question, over: Over, from: SocketAddr) -> Reply {
    if gate.session.is_broken() {
        return Reply::Fails;
    }
    let caller = || gate.callers.borrow_mut().find(over, from);
    let refuse = |host: &str, no: &No| {
        let refused = Refused {
            what: NetworkDeed::Name,
            number: None,
            host: host.to_owned(),
            port: None,
            way: match question.wants {
                Wants::Version4 => 0,
                Wants::Version6 => 1,
                Wants::Other => 2,
            },
        };
        gate.refuse(refused, no, caller);
    };
    let name = match &question.name {
        Ok(name) => name,
        Err(shown) => {
            refuse(shown, &No::own("gate.name", shown, "it is no name of a host", ""));
            return Reply::NoSuchName;
        }
    };
    if is_local(name) {
        return match question.wants {
            Wants::Version4 => Reply::Address(Ipv4Addr::LOCALHOST.into()),
            Wants::Version6 => Reply::Address(Ipv6Addr::LOCALHOST.into()),
            Wants::Other => Reply::Nothing,
        };
    }
    let judgement = gate.session.porter.knows(name);
    if judgement.ruling == Ruling::Deny {
        refuse(name.as_str(), &No::by(&judgement, name.as_str()));
        return Reply::NoSuchName;
    }
    if question.wants == Wants::Other {
        return Reply::Nothing;
    }
    let known = gate.stand_ins.borrow().number(name);
    let number = match known {
        Some(number) => number,
        None if gate.stand_ins.borrow().is_full() => {
            refuse(name.as_str(), &No::own("gate.names", name.as_str(), "too many names were asked for", "").later());
            return Reply::Fails;
        }
        None => {
            // Written down before anything can come of it: whoever connects has it looked up outside.
            let event = NetworkEvent {
                caller: caller(),
                rule: judgement.reasons.first().map(rule_text).unwrap_or_default(),
                ..NetworkEvent::new(NetworkDeed::Name, name.to_string())
            };
            let added = match gate.session.record(&event) {
                Ok(()) => gate.stand_ins.borrow_mut().add(name),
                Err(_) => None,
            };
            let Some(number) = added else { return Reply::Fails };
            number
        }
    };
    Reply::Address(match question.wants {
        Wants::Version6 => IpAddr::V6(stand_ins::version_6(number)),
        Wants::Version4 | Wants::Other => IpAddr::V4(stand_ins::version_4(number)),
    })
}

/// As the standard says, nobody else has these names.
fn is_local(name: &HostName) -> bool {
    name.as_str() == "localhost" || name.as_str().ends_with(".localhost")
}
