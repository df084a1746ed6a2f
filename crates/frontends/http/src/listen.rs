//! Where connections come from, and how each is served: bounded in number, and in the time that it takes to say what it wants.

use std::fmt;
use std::fs::File;
use std::io::{self, BufReader};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::RawFd;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

use crate::crowd::{Answers, Crowd};
use crate::words::Options;

/// For the lines before a body, and for the hand-shake before those.
const PATIENCE: Duration = Duration::from_secs(10);
/// Connections that nobody has looked at yet.
const WAITING: i32 = 1024;
/// The first that systemd hands over.
const FIRST_HANDED: RawFd = 3;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

impl Place {
    pub fn read(word: &str) -> Result<Place, String> {
        match word.strip_prefix("unix:") {
            Some("") => Err("write unix:PATH".to_owned()),
            Some(path) => Ok(Place::Unix(path.into())),
            None => word
                .parse()
                .map(Place::Tcp)
                .map_err(|_| "write ADDRESS:PORT, such as 127.0.0.1:7070, or unix:PATH".to_owned()),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Tcp(address) => write!(out, "http://{address}"),
            Place::Unix(path) => write!(out, "unix:{}", path.display()),
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum NotBound {
    #[error(
        "`{0}` is beyond this machine's loopback, where tokens would go in the clear; fix: `--tls-cert` and `--tls-key`, or `--insecure-listen` behind something that has TLS"
    )]
    InTheClear(SocketAddr),
    #[error("cannot listen at {place}: {source}; fix: choose another with `--listen`")]
    Io { place: Place, source: io::Error },
    #[error("cannot use `{}` for TLS: {why}; fix: give a chain of certificates and its key, as PEM", path.display())]
    Tls { path: PathBuf, why: String },
    #[error("systemd handed over {0}; fix: one socket, in the unit's `ListenStream=`")]
    Handed(String),
}

pub enum Bound {
    Tcp(TcpListener, SocketAddr),
    Unix(UnixListener, PathBuf),
}

impl Bound {
    pub fn place(&self) -> Place {
        match self {
            Bound::Tcp(_, address) => Place::Tcp(*address),
            Bound::Unix(_, path) => Place::Unix(path.clone()),
        }
    }

    /// Whether only this machine's own programs reach it, over TCP.
    pub fn on_loopback(&self) -> bool {
        matches!(self, Bound::Tcp(_, address) if address.ip().is_loopback())
    }
}

/// How many can be connected: with fewer descriptors than that, the rest of the service would have none left.
pub fn most_connections(wanted: usize) -> usize {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    // As many as this process may have at all; where that can't be had, it stays as it is.
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum }).ok();
    let most =
        getrlimit(Resource::Nofile).current.map_or(usize::MAX, |most| usize::try_from(most).unwrap_or(usize::MAX));
    wanted.min(most / 4 * 3).max(1)
}

/// How many sockets systemd has left open for us.
pub fn handed_over() -> usize {
    let variable = |name: &str| std::env::var(name).ok().and_then(|value| value.parse::<u32>().ok());
    let ours = variable("LISTEN_PID") == Some(std::process::id());
    variable("LISTEN_FDS").filter(|_| ours).and_then(|count| usize::try_from(count).ok()).unwrap_or(0)
}

/// Their numbers.
pub fn handed_numbers() -> Vec<RawFd> {
    (FIRST_HANDED..).take(handed_over().min(64)).collect()
}

/// Before the first thread: who may open a socket is decided by the process's mask when it is made.
pub fn bind(options: &Options) -> Result<Bound, NotBound> {
    let bound = match handed_over() {
        0 => bind_anew(&options.listen)?,
        1 => take_handed()?,
        many => return Err(NotBound::Handed(format!("{many} sockets"))),
    };
    if let Bound::Tcp(_, address) = &bound
        && !address.ip().is_loopback()
        && options.certificate.is_none()
        && !options.insecure
    {
        return Err(NotBound::InTheClear(*address));
    }
    Ok(bound)
}

fn bind_anew(place: &Place) -> Result<Bound, NotBound> {
    let cannot = |source| NotBound::Io { place: place.clone(), source };
    match place {
        Place::Tcp(address) => {
            let listener = TcpListener::bind(address).map_err(cannot)?;
            // Whoever comes in a crowd waits a little, and not until its first try is given up.
            rustix::net::listen(&listener, WAITING).map_err(|error| cannot(error.into()))?;
            let address = listener.local_addr().map_err(cannot)?;
            Ok(Bound::Tcp(listener, address))
        }
        Place::Unix(path) => {
            remove_stale(path).map_err(cannot)?;
            let before = rustix::process::umask(rustix::fs::Mode::from_bits_truncate(0o177));
            let bound = UnixListener::bind(path);
            rustix::process::umask(before);
            let listener = bound.map_err(cannot)?;
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).map_err(cannot)?;
            Ok(Bound::Unix(listener, path.clone()))
        }
    }
}

/// What a killed server leaves. One that answers, or that is no socket, is somebody's.
fn remove_stale(path: &Path) -> io::Result<()> {
    match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
        Ok(stat) if !stat.file_type().is_socket() => Err(io::Error::other("there is something else than a socket")),
        Ok(_) => match std::os::unix::net::UnixStream::connect(path) {
            Ok(_) => Err(io::Error::from(io::ErrorKind::AddrInUse)),
            Err(_) => std::fs::remove_file(path),
        },
    }
}

fn take_handed() -> Result<Bound, NotBound> {
    let bad = |why: &str| NotBound::Handed(why.to_owned());
    let socket = sys::descriptors::take(FIRST_HANDED).ok_or_else(|| bad("a number that is not open"))?;
    let address = rustix::net::getsockname(&socket).map_err(|error| bad(&format!("what is no socket ({error})")))?;
    if address.address_family() == rustix::net::AddressFamily::UNIX {
        let path = rustix::net::SocketAddrUnix::try_from(address).ok();
        let path =
            path.and_then(|address| address.path().map(|path| PathBuf::from(path.to_string_lossy().into_owned())));
        return Ok(Bound::Unix(UnixListener::from(socket), path.unwrap_or_default()));
    }
    let listener = TcpListener::from(socket);
    let address = listener.local_addr().map_err(|_| bad("a socket that is neither TCP nor of the kind unix"))?;
    Ok(Bound::Tcp(listener, address))
}

/// What TLS is spoken with, if it is.
pub fn tls(options: &Options) -> Result<Option<TlsAcceptor>, NotBound> {
    let (Some(chain), Some(key)) = (&options.certificate, &options.key) else { return Ok(None) };
    let bad = |path: &Path, why: String| NotBound::Tls { path: path.to_owned(), why };
    let open = |path: &Path| File::open(path).map(BufReader::new).map_err(|error| bad(path, error.to_string()));
    let certificates = CertificateDer::pem_reader_iter(open(chain)?);
    let certificates = certificates.collect::<Result<Vec<_>, _>>().map_err(|error| bad(chain, error.to_string()))?;
    let private = PrivateKeyDer::from_pem_reader(open(key)?).map_err(|error| bad(key, error.to_string()))?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| bad(chain, error.to_string()))?
        .with_no_client_auth()
        .with_single_cert(certificates, private)
        .map_err(|error| bad(key, error.to_string()))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Some(TlsAcceptor::from(Arc::new(config))))
}

/// Where clients come, whatever the kind.
enum Door {
    Tcp(tokio::net::TcpListener, Option<TlsAcceptor>),
    Unix(tokio::net::UnixListener),
}

enum Client {
    Plain(tokio::net::TcpStream),
    Sealed(tokio::net::TcpStream, TlsAcceptor),
    Unix(tokio::net::UnixStream),
}

impl Door {
    fn new(bound: Bound, tls: Option<TlsAcceptor>) -> io::Result<Door> {
        Ok(match bound {
            Bound::Tcp(listener, _) => {
                listener.set_nonblocking(true)?;
                Door::Tcp(tokio::net::TcpListener::from_std(listener)?, tls)
            }
            Bound::Unix(listener, _) => {
                listener.set_nonblocking(true)?;
                Door::Unix(tokio::net::UnixListener::from_std(listener)?)
            }
        })
    }

    async fn accept(&self) -> io::Result<Client> {
        match self {
            Door::Unix(listener) => Ok(Client::Unix(listener.accept().await?.0)),
            Door::Tcp(listener, tls) => {
                let (stream, _) = listener.accept().await?;
                // Small answers are not to wait for each other; where that can't be said, they do.
                drop(stream.set_nodelay(true));
                Ok(match tls {
                    None => Client::Plain(stream),
                    Some(tls) => Client::Sealed(stream, tls.clone()),
                })
            }
        }
    }
}

/// Serves until `stop` says so, and then until whoever is there has the answer to its present request.
pub async fn serve(
    bound: Bound,
    tls: Option<TlsAcceptor>,
    router: Router,
    connections: usize,
    stop: watch::Receiver<bool>,
) -> io::Result<()> {
    let door = Door::new(bound, tls)?;
    let crowd = Crowd::new(connections);
    let mut stopped = stop.clone();
    // Whoever comes first: then a place is made, and not before anybody needs it.
    let next = async || match door.accept().await {
        Ok(client) => Ok((client, crowd.place().await)),
        Err(error) => Err(error),
    };
    loop {
        let next = tokio::select! {
            next = next() => next,
            () = told(&mut stopped) => break,
        };
        let Ok((client, Some(place))) = next else {
            // Out of descriptors, mostly: somebody who says nothing closes one, or somebody will.
            if !crowd.make_room() {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            tokio::task::yield_now().await;
            continue;
        };
        let (guest, router, stop) = (crowd.welcome(place), router.clone(), stop.clone());
        tokio::spawn(async move {
            let talks = async {
                match client {
                    Client::Plain(stream) => talk(stream, Answers::new(router, guest.clone()), stop).await,
                    Client::Unix(stream) => talk(stream, Answers::new(router, guest.clone()), stop).await,
                    Client::Sealed(stream, tls) => {
                        if let Ok(Ok(stream)) = tokio::time::timeout(PATIENCE, tls.accept(stream)).await {
                            talk(stream, Answers::new(router, guest.clone()), stop).await;
                        }
                    }
                }
            };
            tokio::select! {
                () = talks => {}
                () = guest.told_to_leave() => {}
            }
        });
    }
    // Nobody is let in any more: when all places are free, nobody is there.
    crowd.gone().await;
    Ok(())
}

/// It is time to end; or nobody is left to say so, which is the same.
async fn told(stop: &mut watch::Receiver<bool>) {
    drop(stop.wait_for(|stop| *stop).await);
}

async fn talk(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    answers: Answers,
    mut stop: watch::Receiver<bool>,
) {
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(PATIENCE).max_buf_size(64 << 10).max_headers(64);
    let connection = builder.serve_connection(TokioIo::new(stream), answers).with_upgrades();
    let mut connection = std::pin::pin!(connection);
    // How a connection ends is the client's business.
    tokio::select! {
        ended = connection.as_mut() => drop(ended),
        () = told(&mut stop) => {
            connection.as_mut().graceful_shutdown();
            drop(connection.await);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_an_address_or_a_path() {
        assert_eq!(Place::read("127.0.0.1:80"), Ok(Place::Tcp(SocketAddr::from(([127, 0, 0, 1], 80)))));
        assert_eq!(Place::read("unix:/run/a"), Ok(Place::Unix("/run/a".into())));
        assert!(Place::read("unix:").is_err() && Place::read("localhost").is_err() && Place::read("").is_err());
    }
}
