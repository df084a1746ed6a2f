//! The gate: takes what comes out of a sandbox's network, asks the porter, and dials.
//!
//! The sandbox routes everything to sockets that were opened in its own network and handed to us, so programs inside need no
//! settings, and there is no other way. A process of its own runs this: one thread, and a few that wait for the resolver.

mod caller;
mod connection;
mod dial;
mod hello;
mod live;
mod names;
pub(crate) mod passage;
mod question;
mod refuse;
mod relay;
pub(crate) mod session;
mod sniff;
mod special;
mod stand_ins;
mod tally;
mod visits;
mod waiting;

#[cfg(test)]
mod tests;

use std::cell::{Cell, RefCell};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::Duration;

use model::{Doors, Gated, HostName, NetworkDeed, Porter, Published, Traffic};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::net::unix::pipe::Receiver;
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::LocalSet;

use crate::error::{Error, Result};
use crate::read::Reader;
use caller::Callers;
use refuse::{No, Refused, reset};
use relay::Scratch;
use session::Session;
use stand_ins::StandIns;
use tally::Tally;
use visits::Inside;

pub use waiting::on_a_thread;

/// What reads bytes that the guest chose. Not for use: for those who try it with all kinds of bytes.
pub(crate) mod hostile {
    pub use super::hello::{Hello, HelloReader, LONGEST, Said};
    pub use super::question::{Heard, Question, Reply, Wants, read as question};
    pub use super::sniff::{Look, look};
}

/// After the kernel would not hand over a connection: it has none to spare for now.
const PAUSE: Duration = Duration::from_millis(50);
/// So many refusals of one kind are told each by itself.
const TOLD_ALONE: u64 = 100;

pub struct GateSettings {
    pub porter: Rc<dyn Porter>,
    pub gated: Gated,
    /// The first process inside, as the host numbers it.
    pub first: i32,
    pub limits: GateLimits,
    /// Where requests can be read. Without, what has to be read is refused.
    pub reader: Option<Reader>,
    /// Ports of the host's loopback whose visitors are led to a server inside.
    pub visits: Vec<(Published, std::net::TcpListener)>,
    /// Somebody in the sandbox's network who connects there for us.
    pub dialer: Option<OwnedFd>,
    /// Ends when somebody interrupts it, too. Else what a terminal sends is for others.
    pub heeds_signals: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GateLimits {
    /// At once; the newest is refused.
    pub connections: usize,
    /// In which a client says what it is.
    pub hello: Duration,
    /// In which an address is found, and in which somebody answers there.
    pub dial: Duration,
    /// After which a connection that carries nothing is ended.
    pub idle: Option<Duration>,
    /// Different names that get an address.
    pub names: usize,
    /// Of the resolver, at once.
    pub lookups: usize,
}

impl Default for GateLimits {
    fn default() -> GateLimits {
        GateLimits {
            connections: 1024,
            hello: Duration::from_secs(10),
            dial: Duration::from_secs(10),
            idle: None,
            names: stand_ins::MOST,
            lookups: 16,
        }
    }
}

/// Takes what comes through the doors until `end` is readable or hung up. Returns what went out, once all of it is recorded.
pub fn serve(settings: GateSettings, doors: Doors, end: OwnedFd) -> Result<Traffic> {
    serve_amid(settings, doors, end, Around::default())
}

/// Where visitors of a published port arrive: nobody beyond this machine.
pub fn listen(port: u16) -> io::Result<std::net::TcpListener> {
    std::net::TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, port))
}

/// What lies around a gate. Tests put their own in its place.
struct Around {
    original: Original,
    /// Where what is dialled really goes.
    lands: Rc<dyn Fn(SocketAddr) -> SocketAddr>,
    looks_up: Option<LooksUp>,
}

type Original = Rc<dyn Fn(&TcpStream) -> io::Result<SocketAddr>>;
type LooksUp = Rc<dyn Fn(&HostName) -> Vec<IpAddr>>;

impl Default for Around {
    fn default() -> Around {
        Around { original: Rc::new(original), lands: Rc::new(|address| address), looks_up: None }
    }
}

/// Where a connection wanted to go before it was turned to us.
fn original(stream: &TcpStream) -> io::Result<SocketAddr> {
    use rustix::net::sockopt::{ip_original_dst, ipv6_original_dst};
    Ok(match stream.local_addr()? {
        SocketAddr::V4(_) => ip_original_dst(stream)?.into(),
        SocketAddr::V6(_) => ipv6_original_dst(stream)?.into(),
    })
}

/// What all connections of one sandbox share.
pub(crate) struct Gate {
    session: Rc<Session>,
    gated: Gated,
    limits: GateLimits,
    reader: Option<Reader>,
    inside: Inside,
    stand_ins: RefCell<StandIns>,
    callers: RefCell<Callers>,
    remembered: RefCell<dial::Remembered>,
    refused: RefCell<Tally<Refusal>>,
    refused_names: RefCell<Tally<Refusal>>,
    scratch: Scratch,
    open: Cell<usize>,
    around: Around,
}

/// Host, port and rule: what makes two refusals the same.
type Refusal = (String, Option<u16>, String);

/// A place among the connections that may be open at once.
struct Seat(Rc<Gate>);

impl Seat {
    fn take(gate: &Rc<Gate>) -> Option<Seat> {
        let open = gate.open.get();
        (open < gate.limits.connections).then(|| {
            gate.open.set(open + 1);
            Seat(gate.clone())
        })
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.0.open.set(self.0.open.get().saturating_sub(1));
    }
}

fn serve_amid(settings: GateSettings, doors: Doors, end: OwnedFd, around: Around) -> Result<Traffic> {
    let setup = |error: io::Error| Error::Setup(error.to_string());
    make_room_for_descriptors();
    let lookups = settings.limits.lookups.max(1);
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().max_blocking_threads(lookups).build().map_err(setup)?;
    let tasks = LocalSet::new();
    let gate = tasks.block_on(&runtime, run(settings, doors, end, around)).map_err(setup)?;
    {
        // What is still open ends here, and is written down as it ends.
        let _inside = runtime.enter();
        drop(tasks);
    }
    // A resolver that hangs must not hold us.
    runtime.shutdown_background();
    gate.session.catch_up();
    gate.tell_the_rest();
    let mut traffic = gate.session.traffic();
    traffic.lost = gate.session.is_broken();
    Ok(traffic)
}

/// Each connection takes two. If there can be no more, the kernel hands over fewer connections.
fn make_room_for_descriptors() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum {
        setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).ok();
    }
}

async fn run(settings: GateSettings, doors: Doors, end: OwnedFd, around: Around) -> io::Result<Rc<Gate>> {
    let GateSettings { porter, gated, first, limits, reader, visits, dialer, heeds_signals } = settings;
    let Doors { streams, names, long_names } = doors;
    let gate = Rc::new(Gate {
        session: Rc::new(Session::new(porter)),
        gated,
        limits,
        reader,
        inside: Inside::new(dialer)?,
        stand_ins: RefCell::new(StandIns::new(limits.names)),
        callers: RefCell::new(Callers::new(first)),
        remembered: RefCell::default(),
        refused: RefCell::new(Tally::new(TOLD_ALONE)),
        refused_names: RefCell::new(Tally::new(1)),
        scratch: Scratch::new(),
        open: Cell::new(0),
        around,
    });
    let session = gate.session.clone();
    tokio::task::spawn_local(async move { session.keep_up().await });
    // To write to somebody who is gone must be an error, not our end: what is moved by the kernel would raise it.
    let _deaf = signal(SignalKind::pipe())?;
    for door in streams {
        tokio::task::spawn_local(accept(gate.clone(), listener(std::net::TcpListener::from(door))?));
    }
    for door in long_names {
        tokio::task::spawn_local(names::over_streams(gate.clone(), listener(std::net::TcpListener::from(door))?));
    }
    for door in names {
        let socket = std::net::UdpSocket::from(door);
        socket.set_nonblocking(true)?;
        tokio::task::spawn_local(names::over_datagrams(gate.clone(), UdpSocket::from_std(socket)?));
    }
    for (published, socket) in visits {
        tokio::task::spawn_local(visits::welcome(gate.clone(), published, listener(socket)?));
    }
    rustix::io::ioctl_fionbio(&end, true)?;
    // Readable, hung up or broken: either way nobody needs us any more.
    let end = Receiver::from_owned_fd_unchecked(end)?;
    if heeds_signals {
        let [mut hung, mut stopped, mut told] =
            [signal(SignalKind::hangup())?, signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?];
        tokio::select! {
            _ = end.readable() => {}
            _ = hung.recv() => {}
            _ = stopped.recv() => {}
            _ = told.recv() => {}
        }
    } else {
        drop(end.readable().await);
    }
    Ok(gate)
}

fn listener(socket: std::net::TcpListener) -> io::Result<TcpListener> {
    socket.set_nonblocking(true)?;
    TcpListener::from_std(socket)
}

async fn accept(gate: Rc<Gate>, listener: TcpListener) {
    loop {
        let (client, peer) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
            Err(_) => {
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        if gate.session.is_broken() {
            reset(client);
            continue;
        }
        let Some(seat) = Seat::take(&gate) else {
            crowded(&gate);
            reset(client);
            continue;
        };
        let gate = gate.clone();
        tokio::task::spawn_local(async move {
            let session = gate.session.clone();
            tokio::select! {
                biased;
                // What can't be written down must not happen, and nothing after it: what is open ends too.
                () = session.breaks() => {}
                () = connection::take(gate, client, peer) => {}
            }
            drop(seat);
        });
    }
}

/// Told without looking who and where to: whoever opens too many must not keep us busy.
fn crowded(gate: &Gate) {
    let most = gate.limits.connections;
    let no = No::own("gate.crowd", "network", format!("more than {most} connections are open at once"), "").later();
    let number = Some(gate.session.number());
    let host = "(any)".to_owned();
    gate.refuse(Refused { what: NetworkDeed::Connect, number, host, port: None, way: 0 }, &no, || None);
}
