//! Servers inside that can be reached from the host's loopback: a connection is made inside for each that comes.

use std::io;
use std::net::TcpStream as StdStream;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::Duration;

use model::{NetworkDeed, NetworkEvent, Published};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags};
use tokio::io::Interest;
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::Mutex;

use super::live::Live;
use super::refuse::{No, Refused, reset};
use super::relay::{self, Flow};
use super::{Gate, PAUSE, Seat};

const PATIENCE: Duration = Duration::from_secs(10);

/// Somebody in the sandbox's network who connects there for us. One question at a time; none after one without an answer,
/// since a late one would be taken for that to the next.
pub(crate) struct Inside(Mutex<Option<UnixStream>>);

impl Inside {
    pub fn new(socket: Option<OwnedFd>) -> io::Result<Inside> {
        let Some(socket) = socket else { return Ok(Inside(Mutex::new(None))) };
        // Of the same family; that it keeps messages apart makes no difference to waiting for it.
        let socket = std::os::unix::net::UnixStream::from(socket);
        socket.set_nonblocking(true)?;
        Ok(Inside(Mutex::new(Some(UnixStream::from_std(socket)?))))
    }

    async fn connect(&self, port: u16) -> io::Result<TcpStream> {
        let mut socket = self.0.lock().await;
        let Some(open) = socket.as_ref() else {
            return Err(io::Error::other("nobody inside can connect"));
        };
        match tokio::time::timeout(PATIENCE, ask(open, port)).await {
            Ok(Ok(Some(stream))) => {
                stream.set_nonblocking(true)?;
                TcpStream::from_std(stream)
            }
            Ok(Ok(None)) => Err(io::Error::new(io::ErrorKind::ConnectionRefused, "nobody listens there inside")),
            Ok(Err(error)) => {
                *socket = None;
                Err(error)
            }
            Err(_) => {
                *socket = None;
                Err(io::ErrorKind::TimedOut.into())
            }
        }
    }
}

/// Nothing if it could not be done.
async fn ask(socket: &UnixStream, port: u16) -> io::Result<Option<StdStream>> {
    let port = port.to_be_bytes();
    let send = || rustix::net::send(socket, &port, SendFlags::NOSIGNAL).map_err(io::Error::from);
    socket.async_io(Interest::WRITABLE, send).await?;
    socket.async_io(Interest::READABLE, || receive(socket)).await
}

fn receive(socket: &UnixStream) -> io::Result<Option<StdStream>> {
    let mut answer = [1u8; 1];
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut with = RecvAncillaryBuffer::new(&mut space);
    let mut room = [io::IoSliceMut::new(&mut answer)];
    let received = rustix::net::recvmsg(socket, &mut room, &mut with, RecvFlags::CMSG_CLOEXEC)?;
    let mut handed = with.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut handed) => handed.next(),
        _ => None,
    });
    let handed = handed.next();
    match (received.bytes, answer, handed) {
        (0, ..) => Err(io::ErrorKind::UnexpectedEof.into()),
        (_, [0], Some(stream)) => Ok(Some(StdStream::from(stream))),
        (_, [0], None) => Err(io::Error::other("the connection inside was not handed over")),
        _ => Ok(None),
    }
}

pub(crate) async fn welcome(gate: Rc<Gate>, published: Published, listener: TcpListener) {
    loop {
        let Ok((visitor, _)) = listener.accept().await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let Some(seat) = Seat::take(&gate) else {
            let why = "too many connections are open at once";
            gate.refuse(refused(&gate, published), &No::own("gate.crowd", "localhost", why, "").later(), || None);
            reset(visitor);
            continue;
        };
        let gate = gate.clone();
        tokio::task::spawn_local(async move {
            let session = gate.session.clone();
            tokio::select! {
                biased;
                () = session.breaks() => {}
                () = visit(&gate, published, visitor) => {}
            }
            drop(seat);
        });
    }
}

fn refused(gate: &Gate, published: Published) -> Refused {
    let number = Some(gate.session.number());
    Refused { what: NetworkDeed::Visit, number, host: "localhost".to_owned(), port: Some(published.guest), way: 0 }
}

async fn visit(gate: &Gate, published: Published, visitor: TcpStream) {
    let event = NetworkEvent {
        connection: Some(gate.session.number()),
        port: Some(published.guest),
        why: format!("from port {} of the host", published.host),
        ..NetworkEvent::new(NetworkDeed::Visit, "localhost".to_owned())
    };
    if gate.session.record(&event).is_err() {
        return reset(visitor);
    }
    let live = Live::new(&gate.session, &event);
    let server = match gate.inside.connect(published.guest).await {
        Ok(server) => server,
        Err(error) => {
            live.ends_because(format!("cannot connect: {error}"));
            return reset(visitor);
        }
    };
    for stream in [&visitor, &server] {
        // Small messages go on as they come.
        stream.set_nodelay(true).ok();
    }
    // The server is inside: what it says is what goes out.
    let (out, back) = (Flow::beginning_with(Vec::new()), Flow::beginning_with(Vec::new()));
    let ended = relay::both(&server, &visitor, out, back, &gate.scratch, &live, gate.limits.idle).await;
    if let Err(error) = ended {
        live.ends_because(error.to_string());
        reset(visitor);
        reset(server);
    }
}
