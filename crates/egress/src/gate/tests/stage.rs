//! A gate on loopback: doors that know where each of their visitors wanted to go, a porter with simple rules, and servers.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use hickory_proto::op::{Message, ResponseCode};
use hickory_proto::rr::{RData, RecordType};
use model::{
    Action, Approval, AskedAtGate, Asking, Doors, Endpoint, Gated, HostName, Judgement, NetworkDeed, NetworkEvent,
    Opening, OutgoingRequest, Porter, Published, Reason, Refusal, Ruling, Traffic, Trouble,
};

use crate::gate::question::tests::asked;
use crate::gate::{Around, GateLimits, GateSettings, serve_amid};

/// No test waits longer for anything.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// Callers are looked for among so many descriptors: tests that look for one do not run beside one that opens thousands.
pub static CALM: std::sync::RwLock<()> = std::sync::RwLock::new(());

/// What the porter says. All else is denied.
#[derive(Clone, Default)]
pub struct Rules {
    /// Names, and what ends like `.example.org`.
    pub knows: Vec<&'static str>,
    /// `host:port`, or `host:*`.
    pub opens: Vec<&'static str>,
    pub reads: Vec<&'static str>,
    pub asks: Vec<&'static str>,
    /// What a person says to it; nothing: they never answer.
    pub approves: Option<bool>,
    pub leads_to: Vec<IpAddr>,
    /// Addresses that are denied, whatever leads there.
    pub denies: Vec<IpAddr>,
    /// So many entries can be written.
    pub room: Option<usize>,
}

#[derive(Clone)]
pub struct Porters {
    rules: Rules,
    events: Arc<Mutex<Vec<NetworkEvent>>>,
}

pub fn porter(rules: Rules, events: Arc<Mutex<Vec<NetworkEvent>>>) -> Porters {
    Porters { rules, events }
}

fn says(ruling: Ruling, about: &str) -> Judgement {
    let reason = Reason {
        ruling,
        rule: "test.rule".to_owned(),
        place: "policy.toml:7".to_owned(),
        why: "the test says so".to_owned(),
        action: Action::Connect,
        about: about.to_owned(),
        grant: format!("--allow-net {about}"),
    };
    Judgement { ruling, reasons: vec![reason] }
}

fn lists(list: &[&str], endpoint: &Endpoint) -> bool {
    let host = endpoint.host.to_string();
    list.contains(&format!("{host}:{}", endpoint.port).as_str()) || list.contains(&format!("{host}:*").as_str())
}

impl Porter for Porters {
    fn knows(&self, name: &HostName) -> Judgement {
        let name = name.as_str();
        let known =
            self.rules.knows.iter().any(|known| *known == name || known.starts_with('.') && name.ends_with(known));
        says(if known { Ruling::Allow } else { Ruling::Deny }, name)
    }

    fn opens(&self, endpoint: &Endpoint) -> Opening {
        let about = endpoint.to_string();
        if lists(&self.rules.reads, endpoint) {
            let ruling = if lists(&self.rules.asks, endpoint) { Ruling::Ask } else { Ruling::Allow };
            return Opening::Read(says(ruling, &about));
        }
        let ruling = match (lists(&self.rules.opens, endpoint), lists(&self.rules.asks, endpoint)) {
            (true, _) => Ruling::Allow,
            (false, true) => Ruling::Ask,
            (false, false) => Ruling::Deny,
        };
        Opening::Whole(says(ruling, &about))
    }

    fn leads_to(&self, endpoint: &Endpoint, address: IpAddr) -> Judgement {
        let about = endpoint.to_string();
        match (self.rules.leads_to.contains(&address), self.rules.denies.contains(&address)) {
            (true, _) => says(Ruling::Allow, &about),
            (false, true) => says(Ruling::Deny, &about),
            (false, false) => {
                let mut silence = says(Ruling::Deny, &about);
                silence.reasons.iter_mut().for_each(|reason| reason.rule = model::NOT_NAMED.to_owned());
                silence
            }
        }
    }

    fn lets(&self, request: &OutgoingRequest) -> Judgement {
        says(Ruling::Deny, &request.path)
    }

    fn adds(&self, secret: &str, _: &Endpoint) -> Judgement {
        says(Ruling::Deny, secret)
    }

    fn asks(&self, _: &Judgement, about: &AskedAtGate) -> Asking {
        let approves = self.rules.approves;
        let about = about.destination.to_string();
        Box::pin(async move {
            match approves {
                Some(true) => Ok(Approval { digest: about, by: "somebody".to_owned() }),
                Some(false) => Err(Refusal::new("test.rule", format!("{about}: they said no"), "ask again")),
                None => std::future::pending().await,
            }
        })
    }

    fn records(&self, event: &NetworkEvent) -> Result<(), Trouble> {
        let mut events = self.events.lock().expect("events");
        if self.rules.room.is_some_and(|room| events.len() >= room) {
            return Err(Trouble { message: "full".to_owned(), fix: "make room".to_owned() });
        }
        events.push(event.clone());
        Ok(())
    }
}

#[derive(Default)]
pub struct Setup {
    pub rules: Rules,
    /// A door for each: whoever comes through it wanted to go there.
    pub destinations: Vec<SocketAddr>,
    pub gated: Gated,
    pub limits: GateLimits,
    /// Where all that is dialled ends up. None: where it says.
    pub lands: Option<SocketAddr>,
    /// What every name resolves to.
    pub resolves: Vec<IpAddr>,
    pub visits: Vec<(Published, TcpListener)>,
    pub dialer: Option<OwnedFd>,
}

pub struct Stage {
    doors: Vec<SocketAddr>,
    names: SocketAddr,
    long_names: SocketAddr,
    events: Arc<Mutex<Vec<NetworkEvent>>>,
    end: OwnedFd,
    serving: JoinHandle<Traffic>,
}

pub const PUBLIC: IpAddr = IpAddr::V4(Ipv4Addr::new(9, 9, 9, 9));

impl Setup {
    pub fn opened(self) -> Stage {
        let Setup { rules, destinations, gated, limits, lands, resolves, visits, dialer } = self;
        let listeners: Vec<TcpListener> =
            destinations.iter().map(|_| TcpListener::bind("127.0.0.1:0").expect("a door")).collect();
        let doors: Vec<SocketAddr> = listeners.iter().map(|door| door.local_addr().expect("an address")).collect();
        let questions = UdpSocket::bind("127.0.0.1:0").expect("a door");
        let long_questions = TcpListener::bind("127.0.0.1:0").expect("a door");
        let names = questions.local_addr().expect("an address");
        let long_names = long_questions.local_addr().expect("an address");
        let handed = Doors {
            streams: listeners.into_iter().map(OwnedFd::from).collect(),
            names: vec![questions.into()],
            long_names: vec![long_questions.into()],
        };
        let events = Arc::new(Mutex::new(Vec::new()));
        let porters = Porters { rules, events: events.clone() };
        let (until, end) = rustix::pipe::pipe().expect("a pipe");
        let meant: Vec<(SocketAddr, SocketAddr)> = doors.iter().copied().zip(destinations).collect();
        let serving = std::thread::spawn(move || {
            let first = i32::try_from(std::process::id()).expect("a number");
            let settings = GateSettings {
                porter: Rc::new(porters),
                gated,
                first,
                limits,
                reader: None,
                visits,
                dialer,
                heeds_signals: false,
            };
            let original = move |stream: &tokio::net::TcpStream| {
                let own = stream.local_addr()?;
                let meant = meant.iter().find(|(door, _)| *door == own).map(|(_, meant)| *meant);
                meant.ok_or_else(|| std::io::ErrorKind::NotFound.into())
            };
            let around = Around {
                original: Rc::new(original),
                lands: Rc::new(move |address| lands.unwrap_or(address)),
                looks_up: Some(Rc::new(move |_| resolves.clone())),
            };
            serve_amid(settings, handed, until, around).expect("it served")
        });
        Stage { doors, names, long_names, events, end, serving }
    }
}

impl Stage {
    /// Through the door of that number, for somebody who will not be refused at once.
    pub fn connect(&self, door: usize) -> TcpStream {
        self.tries(door).expect("a connection")
    }

    /// The same for whoever may be: a reset can come before we know of the connection.
    pub fn tries(&self, door: usize) -> std::io::Result<TcpStream> {
        let stream = TcpStream::connect(self.doors[door])?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(stream)
    }

    /// All that is said to somebody who says nothing; nothing, if they are reset.
    pub fn heard(&self, door: usize) -> Option<Vec<u8>> {
        match self.tries(door) {
            Ok(stream) => heard(stream),
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => None,
            Err(error) => unreachable!("{error}"),
        }
    }

    pub fn asks(&self, name: &str, kind: RecordType) -> (ResponseCode, Vec<IpAddr>) {
        let answer = self.says(&asked(name, kind)).expect("an answer");
        let answer = Message::from_vec(&answer).expect("a message");
        let addresses = answer.answers.iter().filter_map(|record| match &record.data {
            RData::A(address) => Some(IpAddr::V4(address.0)),
            RData::AAAA(address) => Some(IpAddr::V6(address.0)),
            _ => None,
        });
        (answer.metadata.response_code, addresses.collect())
    }

    /// Nothing if there is no answer to it before there is one to what is said next.
    pub fn says(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        socket.set_read_timeout(Some(PATIENCE)).expect("a time-out");
        socket.send_to(bytes, self.names).expect("sent");
        // Questions are answered in their order.
        let mut last = asked("localhost.", RecordType::A);
        last[..2].copy_from_slice(&[0xab, 0xcd]);
        socket.send_to(&last, self.names).expect("sent");
        let mut answer = None;
        loop {
            let mut room = [0; 4096];
            let length = socket.recv(&mut room).expect("an answer");
            // Waited for in any case: whoever gets this port next would be told it.
            if room[..2] == [0xab, 0xcd] {
                return answer;
            }
            answer = Some(room[..length].to_vec());
        }
    }

    pub fn says_long(&self, bytes: &[u8]) -> Vec<u8> {
        let mut stream = TcpStream::connect(self.long_names).expect("a connection");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time-out");
        stream.write_all(&(bytes.len() as u16).to_be_bytes()).expect("sent");
        stream.write_all(bytes).expect("sent");
        let mut length = [0; 2];
        stream.read_exact(&mut length).expect("an answer");
        let mut answer = vec![0; usize::from(u16::from_be_bytes(length))];
        stream.read_exact(&mut answer).expect("an answer");
        answer
    }

    pub fn ends(self) -> (Vec<NetworkEvent>, Traffic) {
        drop(self.end);
        let traffic = self.serving.join().expect("it served");
        let events = self.events.lock().expect("events").clone();
        (events, traffic)
    }

    pub fn events(&self) -> Vec<NetworkEvent> {
        self.events.lock().expect("events").clone()
    }
}

/// Answers each connection in a thread of its own.
pub fn server(answers: impl Fn(TcpStream) + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a server");
    let at = listener.local_addr().expect("an address");
    let answers = Arc::new(answers);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let answers = answers.clone();
            stream.set_read_timeout(Some(PATIENCE)).expect("a time-out");
            std::thread::spawn(move || answers(stream));
        }
    });
    at
}

/// Says what it heard, once the other side has said all.
pub fn echo() -> SocketAddr {
    server(|mut stream| {
        let mut heard = Vec::new();
        stream.read_to_end(&mut heard).ok();
        stream.write_all(&heard).ok();
    })
}

/// All that comes; nothing at all if it was reset.
pub fn heard(mut stream: TcpStream) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    match stream.read_to_end(&mut bytes) {
        Ok(_) => Some(bytes),
        Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => None,
        Err(error) => unreachable!("{error}"),
    }
}

pub fn at(text: &str) -> SocketAddr {
    text.parse().expect("an address")
}

pub fn only(events: &[NetworkEvent], what: NetworkDeed) -> Vec<NetworkEvent> {
    events.iter().filter(|event| event.what == what).cloned().collect()
}

pub fn denied(events: &[NetworkEvent]) -> Vec<NetworkEvent> {
    events.iter().filter(|event| event.denied).cloned().collect()
}
