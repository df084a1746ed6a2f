//! Sends lines to whoever keeps logs: through a socket of this machine, in datagrams, or as a stream with or without TLS.
//!
//! None of these answers. What the kernel took is taken for sent, but a stream that the other side has closed is noticed
//! before it is written to.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream, UdpSocket};
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::time::Duration;

use rustls::{ClientConnection, StreamOwned};
use rustls_pki_types::ServerName;

use crate::deadline::Deadline;
use crate::error::{Error, Result};
use crate::place::{Encryption, machines};
use crate::trust::{self, Trust};

/// After the last line, for the other side to say that it broke.
const FAREWELL: Duration = Duration::from_secs(1);

/// How lines are sent, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wire {
    Unix(PathBuf),
    Udp { host: String, port: u16, encryption: Encryption },
    Tcp { host: String, port: u16, encryption: Encryption },
    Tls { host: String, port: u16, trust: Trust },
}

impl Wire {
    /// Whether lines need a frame: in a datagram each is alone.
    pub fn is_stream(&self) -> bool {
        matches!(self, Wire::Tcp { .. } | Wire::Tls { .. })
    }
}

impl std::fmt::Display for Wire {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Wire::Unix(path) => write!(out, "unix:{}", path.display()),
            Wire::Udp { host, port, .. } => write!(out, "udp://{host}:{port}"),
            Wire::Tcp { host, port, .. } => write!(out, "tcp://{host}:{port}"),
            Wire::Tls { host, port, .. } => write!(out, "tls://{host}:{port}"),
        }
    }
}

/// An open one.
pub struct Stream {
    place: String,
    patience: Duration,
    open: Open,
}

enum Open {
    Unix(UnixDatagram),
    Udp(UdpSocket),
    Tcp(Deadline),
    Tls(Box<StreamOwned<ClientConnection, Deadline>>),
}

impl Stream {
    pub fn open(wire: &Wire, patience: Duration) -> Result<Stream> {
        let place = wire.to_string();
        let failed = |source| Error::Connect { place: place.clone(), source };
        let open = match wire {
            Wire::Unix(path) => {
                let socket = UnixDatagram::unbound().map_err(failed)?;
                socket.connect(path).map_err(failed)?;
                socket.set_write_timeout(Some(patience)).map_err(failed)?;
                Open::Unix(socket)
            }
            Wire::Udp { host, port, encryption } => {
                let machines = machines(host, *port, &place, false, *encryption)?;
                Open::Udp(datagrams(&machines).map_err(failed)?)
            }
            Wire::Tcp { host, port, encryption } => {
                let machines = machines(host, *port, &place, false, *encryption)?;
                Open::Tcp(connected(&machines, patience).map_err(failed)?)
            }
            Wire::Tls { host, port, trust } => {
                let stranger = |why: String| Error::Stranger { place: place.clone(), why };
                let configuration = trust::configuration(trust)?;
                let name = ServerName::try_from(host.clone()).map_err(|error| stranger(error.to_string()))?;
                let mut connection =
                    ClientConnection::new(configuration, name).map_err(|error| stranger(error.to_string()))?;
                let machines = machines(host, *port, &place, true, Encryption::Needed)?;
                let mut stream = connected(&machines, patience).map_err(failed)?;
                while connection.is_handshaking() {
                    connection.complete_io(&mut stream).map_err(|error| match error.get_ref() {
                        Some(inner) if inner.is::<rustls::Error>() => stranger(error.to_string()),
                        _ => Error::Broken { place: place.clone(), why: error.to_string() },
                    })?;
                }
                Open::Tls(Box::new(StreamOwned::new(connection, stream)))
            }
        };
        Ok(Stream { place, patience, open })
    }

    /// All of it, or an error.
    pub fn send(&mut self, bytes: &[u8]) -> Result<()> {
        let sent = match &mut self.open {
            Open::Unix(socket) => socket.send(bytes).map(drop),
            Open::Udp(socket) => socket.send(bytes).map(drop),
            Open::Tcp(stream) => {
                stream.renew(self.patience);
                is_still_there(&stream.stream).and_then(|()| stream.write_all(bytes))
            }
            Open::Tls(stream) => {
                stream.sock.renew(self.patience);
                is_still_there(&stream.sock.stream).and_then(|()| stream.write_all(bytes)).and_then(|()| stream.flush())
            }
        };
        sent.map_err(|error| self.broken(&error))
    }

    /// Says that there is no more, and listens for a moment whether the other side broke.
    pub fn close(mut self) -> Result<()> {
        let patience = FAREWELL.min(self.patience);
        let ended = match &mut self.open {
            Open::Unix(_) | Open::Udp(_) => Ok(()),
            Open::Tcp(stream) => {
                stream.renew(patience);
                stream.stream.shutdown(Shutdown::Write).and_then(|()| farewell(stream))
            }
            Open::Tls(stream) => {
                stream.sock.renew(patience);
                stream.conn.send_close_notify();
                let told = stream.flush();
                told.and_then(|()| stream.sock.stream.shutdown(Shutdown::Write))
                    .and_then(|()| farewell(&mut stream.sock))
            }
        };
        ended.map_err(|error| self.broken(&error))
    }

    fn broken(&self, error: &io::Error) -> Error {
        let place = self.place.clone();
        match error.kind() {
            io::ErrorKind::TimedOut => Error::Late { place, seconds: self.patience.as_secs() },
            _ => Error::Broken { place, why: error.to_string() },
        }
    }
}

fn datagrams(machines: &[SocketAddr]) -> io::Result<UdpSocket> {
    let mut failed = io::ErrorKind::AddrNotAvailable.into();
    for machine in machines {
        let any = if machine.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
        match UdpSocket::bind(any).and_then(|socket| socket.connect(machine).map(|()| socket)) {
            Ok(socket) => return Ok(socket),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

fn connected(machines: &[SocketAddr], patience: Duration) -> io::Result<Deadline> {
    let mut failed = io::ErrorKind::AddrNotAvailable.into();
    for machine in machines {
        match TcpStream::connect_timeout(machine, patience) {
            Ok(stream) => return Ok(Deadline::new(stream, patience)),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

/// Whoever keeps logs says nothing: if there is something to be read, it is the end. (TLS has tickets to say.)
fn is_still_there(stream: &TcpStream) -> io::Result<()> {
    stream.set_nonblocking(true)?;
    let peeked = stream.peek(&mut [0]);
    stream.set_nonblocking(false)?;
    match peeked {
        Ok(0) => Err(io::ErrorKind::ConnectionReset.into()),
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
        Err(error) => Err(error),
    }
}

/// Many never close on their side: silence is fine, a break is not.
fn farewell(stream: &mut Deadline) -> io::Result<()> {
    let mut buffer = [0; 1024];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::TimedOut => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}
