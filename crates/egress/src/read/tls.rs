//! TLS on both sides: the server proves to us who it is, and then we vouch for it to the client, in the same protocol.

use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use hyper::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use model::{Endpoint, Host};
use rustls::ClientConfig;
use rustls::server::Acceptor;
use rustls_pki_types::{DnsName, ServerName};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;
use tokio::task::LocalSet;
use tokio::time::timeout;
use tokio_rustls::{LazyConfigAcceptor, StartHandshake, TlsConnector, client, server};

use super::ReadLimits;
use super::authority::{Authority, Protocol};
use super::http2::Here;
use super::say;

/// Fatal, in the clear, as long as nothing was agreed on.
const UNRECOGNIZED_NAME: u8 = 112;
const NO_PROTOCOL: u8 = 120;

/// What a client said first.
pub struct Hello {
    start: StartHandshake<Begun>,
    /// Of those that we can read, in the client's order.
    offers: Vec<Protocol>,
}

/// Why a client can't be talked to.
pub enum Unheard {
    /// It was told; this is for the record.
    Refused(&'static str, String),
    Failed(io::Error),
}

impl Hello {
    /// It has to say the name that was decided on.
    pub async fn hear(begun: Begun, endpoint: &Endpoint, limits: &ReadLimits) -> Result<Hello, Unheard> {
        let acceptor = LazyConfigAcceptor::new(Acceptor::default(), begun);
        let late = |_| Unheard::Failed(io::ErrorKind::TimedOut.into());
        let start = timeout(limits.hello, acceptor).await.map_err(late)?.map_err(Unheard::Failed)?;
        let hello = start.client_hello();
        let same = match (&endpoint.host, hello.server_name()) {
            (Host::Name(name), Some(said)) => said.eq_ignore_ascii_case(name.as_str()),
            (Host::Address(_), None) => true,
            _ => false,
        };
        let offered: Option<Vec<Vec<u8>>> = hello.alpn().map(|offered| offered.map(<[u8]>::to_vec).collect());
        if !same {
            let why = "the name in the TLS hello is not that of the connection".to_owned();
            return Err(alert(start, UNRECOGNIZED_NAME, ("egress.sni", why)).await);
        }
        let known = |name: &Vec<u8>| {
            [Protocol::Http1, Protocol::Http2].into_iter().find(|protocol| protocol.name() == Some(name.as_slice()))
        };
        let offers: Vec<Protocol> = offered.iter().flatten().filter_map(known).collect();
        if offered.is_some() && offers.is_empty() {
            let why = "it is to be read, and speaks no HTTP that can be".to_owned();
            return Err(alert(start, NO_PROTOCOL, ("egress.protocol", why)).await);
        }
        Ok(Hello { start, offers })
    }

    /// What to answer in, if the older version will do.
    pub fn speaks_http1(&self) -> Option<Protocol> {
        match self.offers.is_empty() {
            true => Some(Protocol::Unsaid),
            false => self.offers.contains(&Protocol::Http1).then_some(Protocol::Http1),
        }
    }

    /// The server, who has to prove who it is.
    pub async fn reach(
        &self,
        trust: &ClientConfig,
        endpoint: &Endpoint,
        limits: &ReadLimits,
        upstream: TcpStream,
    ) -> Result<(client::TlsStream<TcpStream>, Protocol), String> {
        let mut trust = trust.clone();
        trust.alpn_protocols = self.offers.iter().filter_map(|protocol| protocol.name()).map(<[u8]>::to_vec).collect();
        let name = match &endpoint.host {
            Host::Name(name) => {
                let name = DnsName::try_from(name.as_str().to_owned()).map_err(|error| error.to_string())?;
                ServerName::DnsName(name)
            }
            Host::Address(address) => ServerName::from(*address),
        };
        let connecting = TlsConnector::from(Arc::new(trust)).connect(name, upstream);
        let stream = match timeout(limits.hello, connecting).await {
            Ok(connected) => connected.map_err(|error| error.to_string())?,
            Err(_) => return Err("it took too long".to_owned()),
        };
        let chosen = match stream.get_ref().1.alpn_protocol() {
            None => Protocol::Unsaid,
            Some(name) => match self.offers.iter().find(|protocol| protocol.name() == Some(name)) {
                Some(protocol) => *protocol,
                None => return Err("it chose a protocol that nobody offered".to_owned()),
            },
        };
        Ok((stream, chosen))
    }

    pub async fn answer(
        self,
        authority: &Authority,
        endpoint: &Endpoint,
        limits: &ReadLimits,
        protocol: Protocol,
    ) -> io::Result<server::TlsStream<Begun>> {
        let configuration = authority.answers_as(&endpoint.host, protocol).map_err(io::Error::other)?;
        timeout(limits.hello, self.start.into_stream(configuration)).await?
    }

    /// The server did not prove who it is: the client hears that in a protocol that it speaks, and nothing else.
    pub async fn explain(
        self,
        authority: &Authority,
        endpoint: &Endpoint,
        limits: &ReadLimits,
        why: String,
    ) -> io::Result<()> {
        let protocol = match self.offers.as_slice() {
            [] => Protocol::Unsaid,
            offers if offers.contains(&Protocol::Http1) => Protocol::Http1,
            _ => Protocol::Http2,
        };
        let limit = limits.hello;
        let client = TokioIo::new(self.answer(authority, endpoint, limits, protocol).await?);
        let why: Rc<str> = why.into();
        let service = service_fn(move |_: Request<Incoming>| {
            let why = why.clone();
            async move { Ok::<_, Infallible>(say::broken(&why)) }
        });
        let said = async {
            match protocol {
                Protocol::Http2 => {
                    let server = hyper::server::conn::http2::Builder::new(Here);
                    LocalSet::new().run_until(server.serve_connection(client, service)).await
                }
                Protocol::Http1 | Protocol::Unsaid => {
                    let mut server = hyper::server::conn::http1::Builder::new();
                    server.keep_alive(false).serve_connection(client, service).await
                }
            }
        };
        timeout(limit, said).await?.map_err(io::Error::other)
    }
}

async fn alert(start: StartHandshake<Begun>, number: u8, (rule, why): (&'static str, String)) -> Unheard {
    let mut begun = start.io;
    // If it can't be told, it hears nothing; it gets nowhere either way.
    if let Err(error) = begun.write_all(&[0x15, 3, 3, 0, 2, 2, number]).await {
        return Unheard::Refused(rule, format!("{why} ({error})"));
    }
    Unheard::Refused(rule, why)
}

/// A connection of which something was read already.
pub struct Begun {
    read: Vec<u8>,
    at: usize,
    stream: TcpStream,
}

impl Begun {
    pub fn new(read: Vec<u8>, stream: TcpStream) -> Begun {
        Begun { read, at: 0, stream }
    }
}

impl AsyncRead for Begun {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.at < this.read.len() {
            let now = (this.read.len() - this.at).min(buffer.remaining());
            buffer.put_slice(&this.read[this.at..this.at + now]);
            this.at += now;
            if this.at == this.read.len() {
                (this.read, this.at) = (Vec::new(), 0);
            }
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut this.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Begun {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}
