//! Clients, servers and a porter for tests: real TLS over loopback, nothing else.

#![allow(clippy::unwrap_used, clippy::panic, clippy::type_complexity, reason = "tests")]

mod cached;
mod programs;
mod requests;
mod secrets;
mod smuggling;
mod speed;
mod streams;
mod tls;

use std::cell::RefCell;
use std::convert::Infallible;
use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use model::{
    Action, Approval, AskedAtGate, Asking, Endpoint, Host, HostName, Judgement, NetworkDeed, NetworkEvent, Opening,
    OutgoingRequest, Porter, Reason, Refusal, Ruling, Trouble,
};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{LocalSet, spawn_local};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use super::http2::Here;
use super::{Authority, ReadLimits, Reader, SecretValue};
use crate::gate::passage::Passage;
use crate::gate::session::Session;
use crate::trust::Trust;

const NAME: &str = "api.example.org";

/// Runs a test as the gate runs: on one thread. It fails if it takes too long.
fn run<F: Future<Output = ()>>(test: F) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let limit = Duration::from_secs(60);
    let done = LocalSet::new().block_on(&runtime, async { tokio::time::timeout(limit, test).await });
    done.expect("it ends in time");
}

/// Says what it is told to say, and remembers everything.
struct TestPorter {
    lets: Box<dyn Fn(&OutgoingRequest) -> Ruling>,
    adds: Box<dyn Fn(&str, &Endpoint) -> Ruling>,
    approves: bool,
    asked: RefCell<Vec<AskedAtGate>>,
    judged: RefCell<Vec<OutgoingRequest>>,
    events: RefCell<Vec<NetworkEvent>>,
    fails: std::cell::Cell<bool>,
}

impl TestPorter {
    fn new(lets: impl Fn(&OutgoingRequest) -> Ruling + 'static) -> TestPorter {
        TestPorter {
            lets: Box::new(lets),
            adds: Box::new(|_, _| Ruling::Deny),
            approves: true,
            asked: RefCell::default(),
            judged: RefCell::default(),
            events: RefCell::default(),
            fails: std::cell::Cell::new(false),
        }
    }

    fn adding(mut self, adds: impl Fn(&str, &Endpoint) -> Ruling + 'static) -> TestPorter {
        self.adds = Box::new(adds);
        self
    }

    fn deeds(&self) -> Vec<(NetworkDeed, bool)> {
        self.events.borrow().iter().map(|event| (event.what, event.denied)).collect()
    }

    fn denied(&self) -> Vec<NetworkEvent> {
        self.events.borrow().iter().filter(|event| event.denied).cloned().collect()
    }
}

fn judgement(ruling: Ruling) -> Judgement {
    let reason = Reason {
        ruling,
        rule: "test.rule".to_owned(),
        place: "policy.toml:3".to_owned(),
        why: "a test says so".to_owned(),
        action: Action::Connect,
        about: String::new(),
        grant: "allow it under [network]".to_owned(),
    };
    Judgement { ruling, reasons: vec![reason] }
}

impl Porter for TestPorter {
    fn knows(&self, _: &HostName) -> Judgement {
        judgement(Ruling::Allow)
    }

    fn opens(&self, _: &Endpoint) -> Opening {
        Opening::Read(judgement(Ruling::Allow))
    }

    fn leads_to(&self, _: &Endpoint, _: IpAddr) -> Judgement {
        judgement(Ruling::Allow)
    }

    fn lets(&self, request: &OutgoingRequest) -> Judgement {
        self.judged.borrow_mut().push(request.clone());
        judgement((self.lets)(request))
    }

    fn keeps(&self, request: &OutgoingRequest) -> bool {
        request.path.ends_with(".whl")
    }

    fn adds(&self, secret: &str, destination: &Endpoint) -> Judgement {
        judgement((self.adds)(secret, destination))
    }

    fn asks(&self, _: &Judgement, about: &AskedAtGate) -> Asking {
        self.asked.borrow_mut().push(about.clone());
        let approves = self.approves;
        Box::pin(async move {
            tokio::task::yield_now().await;
            match approves {
                true => Ok(Approval { digest: String::new(), by: "a tester".to_owned() }),
                false => Err(Refusal::new("approval", "nobody said yes in time".to_owned(), "belljar approve")),
            }
        })
    }

    fn records(&self, event: &NetworkEvent) -> Result<(), Trouble> {
        if self.fails.get() {
            return Err(Trouble { message: "full".to_owned(), fix: "make room".to_owned() });
        }
        self.events.borrow_mut().push(event.clone());
        Ok(())
    }
}

/// An authority of servers, in a file.
struct TestRoots {
    issuer: rcgen::Issuer<'static, rcgen::KeyPair>,
    file: PathBuf,
}

impl TestRoots {
    fn new() -> TestRoots {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let key = rcgen::KeyPair::generate().unwrap();
        let mut parameters = rcgen::CertificateParams::default();
        parameters.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let certificate = parameters.self_signed(&key).unwrap();
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let file = std::env::temp_dir().join(format!("belljar-read-{}-{number}.pem", std::process::id()));
        std::fs::write(&file, certificate.pem()).unwrap();
        TestRoots { issuer: rcgen::Issuer::new(parameters, key), file }
    }

    fn server(&self, name: &str, protocols: &[&str]) -> Arc<ServerConfig> {
        let key = rcgen::KeyPair::generate().unwrap();
        let parameters = rcgen::CertificateParams::new(vec![name.to_owned()]).unwrap();
        let certificate = parameters.signed_by(&key, &self.issuer).unwrap();
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let mut config = builder.with_no_client_auth().with_single_cert(vec![certificate.der().clone()], key).unwrap();
        config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        Arc::new(config)
    }
}

impl Drop for TestRoots {
    fn drop(&mut self) {
        drop(std::fs::remove_file(&self.file));
    }
}

fn trusting(pem: &[u8], protocols: &[&str]) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        roots.add(certificate.unwrap()).unwrap();
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let mut config = builder.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
    Arc::new(config)
}

type Reply = UnsyncBoxBody<Bytes, Infallible>;
type Service = Rc<dyn Fn(Request<Incoming>) -> Pin<Box<dyn Future<Output = Response<Reply>>>>>;

fn full(bytes: impl Into<Bytes>) -> Reply {
    Full::new(bytes.into()).boxed_unsync()
}

/// What a server saw: head, whole body, trailers. Only requests that came to their end.
#[derive(Clone, Default)]
struct Seen(Rc<RefCell<Vec<(hyper::http::request::Parts, Bytes, Option<hyper::HeaderMap>)>>>);

impl Seen {
    fn count(&self) -> usize {
        self.0.borrow().len()
    }

    fn header(&self, name: &str) -> Option<String> {
        let seen = self.0.borrow();
        let value = seen.last()?.0.headers.get(name)?;
        Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
    }

    fn target(&self) -> String {
        self.0.borrow().last().unwrap().0.uri.path_and_query().unwrap().to_string()
    }

    /// Answers `ok` to each.
    fn service(&self) -> Service {
        let seen = self.clone();
        Rc::new(move |request| {
            let seen = seen.clone();
            Box::pin(async move {
                let (parts, body) = request.into_parts();
                let Ok(body) = body.collect().await else { return Response::new(full("broken")) };
                let trailers = body.trailers().cloned();
                seen.0.borrow_mut().push((parts, body.to_bytes(), trailers));
                Response::new(full("ok"))
            })
        })
    }
}

/// A server on loopback: in clear, or with TLS in the protocol that was agreed on.
async fn server(config: Option<Arc<ServerConfig>>, service: Service) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    spawn_local(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (config, service) = (config.clone(), service.clone());
            stream.set_nodelay(true).unwrap();
            spawn_local(async move {
                let service = hyper::service::service_fn(move |request| {
                    let answer = service(request);
                    async move { Ok::<_, Infallible>(answer.await) }
                });
                let http1 = hyper::server::conn::http1::Builder::new();
                let Some(config) = config else {
                    return drop(http1.serve_connection(TokioIo::new(stream), service).with_upgrades().await);
                };
                let Ok(stream) = TlsAcceptor::from(config).accept(stream).await else { return };
                if stream.get_ref().1.alpn_protocol() == Some(b"h2") {
                    let http2 = hyper::server::conn::http2::Builder::new(Here);
                    drop(http2.serve_connection(TokioIo::new(stream), service).await);
                } else {
                    drop(http1.serve_connection(TokioIo::new(stream), service).with_upgrades().await);
                }
            });
        }
    });
    address
}

fn named(port: u16) -> Endpoint {
    Endpoint { host: Host::Name(HostName::read(NAME).unwrap()), port }
}

/// A gate with a reader in it: whoever connects is led to one server.
struct Gate {
    address: SocketAddr,
    porter: Rc<TestPorter>,
    session: Rc<Session>,
    bundle: Vec<u8>,
}

struct Setting {
    tls: bool,
    endpoint: Endpoint,
    /// Where it seems to be dialled.
    seems: IpAddr,
    secrets: Vec<SecretValue>,
    limits: ReadLimits,
    authority: bool,
    cache: Option<PathBuf>,
}

impl Setting {
    fn plain() -> Setting {
        Setting { tls: false, ..Setting::tls() }
    }

    fn tls() -> Setting {
        Setting {
            tls: true,
            endpoint: named(443),
            seems: "127.0.0.1".parse().unwrap(),
            secrets: Vec::new(),
            limits: ReadLimits::default(),
            authority: true,
            cache: None,
        }
    }

    fn with(mut self, secret: &str, stand_in: &str, value: &str) -> Setting {
        self.secrets.push(SecretValue::new(secret, stand_in, value));
        self
    }
}

async fn gate(setting: Setting, roots: &TestRoots, porter: TestPorter, upstream: SocketAddr) -> Gate {
    let Setting { tls, endpoint, seems, secrets, limits, authority, cache } = setting;
    let authority = authority.then(|| Authority::new().unwrap());
    let bundle = authority.as_ref().map(|authority| authority.bundle(&[])).unwrap_or_default();
    let reader = Reader::new(authority, secrets, Trust::File(roots.file.clone()), limits);
    let reader = reader.with_cache(cache.and_then(|folder| crate::Cache::at(folder, 1 << 30)));
    let porter = Rc::new(porter);
    let session = Rc::new(Session::new(porter.clone()));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let writes = session.clone();
    spawn_local(async move { writes.keep_up().await });
    let (reader, shared) = (Rc::new(reader), session.clone());
    spawn_local(async move {
        while let Ok((client, _)) = listener.accept().await {
            let (reader, session, endpoint) = (reader.clone(), shared.clone(), endpoint.clone());
            spawn_local(async move {
                let upstream = TcpStream::connect(upstream).await.unwrap();
                let passage = Passage { number: session.number(), endpoint, address: Some(seems), caller: None };
                let done = match tls {
                    true => reader.tls(&session, passage, Vec::new(), client, upstream).await,
                    false => reader.plain(&session, passage, Vec::new(), client, upstream).await,
                };
                drop(done);
            });
        }
    });
    Gate { address, porter, session, bundle }
}

impl Gate {
    async fn connect_as(
        &self,
        name: &str,
        protocols: &[&str],
    ) -> std::io::Result<tokio_rustls::client::TlsStream<TcpStream>> {
        let stream = TcpStream::connect(self.address).await?;
        stream.set_nodelay(true)?;
        let name = ServerName::try_from(name.to_owned()).unwrap();
        TlsConnector::from(trusting(&self.bundle, protocols)).connect(name, stream).await
    }

    async fn connect(&self, protocols: &[&str]) -> tokio_rustls::client::TlsStream<TcpStream> {
        self.connect_as(NAME, protocols).await.unwrap()
    }

    /// Bytes to it in clear, and all that it says until it closes.
    async fn raw(&self, bytes: &[u8]) -> String {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(bytes).await.unwrap();
        until(&mut stream, None).await
    }

    async fn http1(&self) -> hyper::client::conn::http1::SendRequest<Reply> {
        let stream = self.connect(&["http/1.1"]).await;
        let (sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
        spawn_local(connection.with_upgrades());
        sender
    }

    async fn http2(&self) -> hyper::client::conn::http2::SendRequest<Reply> {
        let stream = self.connect(&["h2"]).await;
        let (sender, connection) = hyper::client::conn::http2::handshake(Here, TokioIo::new(stream)).await.unwrap();
        spawn_local(connection);
        sender
    }

    /// One request on a connection of its own, over TLS: status and body.
    async fn get(&self, request: hyper::http::request::Builder) -> (u16, hyper::HeaderMap, String) {
        let mut sender = self.http1().await;
        let request = request.header("host", NAME).body(full("")).unwrap();
        let (parts, body) = sender.send_request(request).await.unwrap().into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        (parts.status.as_u16(), parts.headers, String::from_utf8_lossy(&body).into_owned())
    }
}

/// All that it says until it ends, or until what it said ends like this.
async fn until(stream: &mut (impl tokio::io::AsyncRead + Unpin), end: Option<&str>) -> String {
    let (mut text, mut buffer) = (Vec::new(), [0; 16 << 10]);
    while end.is_none_or(|end| !text.ends_with(end.as_bytes())) {
        match stream.read(&mut buffer).await {
            Ok(0) | Err(_) => break,
            Ok(read) => text.extend_from_slice(&buffer[..read]),
        }
    }
    String::from_utf8_lossy(&text).into_owned()
}

fn allow(_: &OutgoingRequest) -> Ruling {
    Ruling::Allow
}
