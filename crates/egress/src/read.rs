//! The reader: takes part in what a client and a server say to each other, so that each request can be judged.
//!
//! It never changes the protocol between the two: what one chose the other gets, and so streams, events, web sockets and
//! trailers pass as they come. What is judged is what is sent; whatever could be read in two ways is not sent at all.

mod authority;
mod body;
mod conceal;
mod exchange;
mod fence;
mod fenced;
mod http1;
mod http2;
mod java;
mod path;
mod relay;
mod say;
mod secrets;
#[cfg(test)]
mod tests;
mod tls;
mod value;
mod watch;

use std::cell::OnceCell;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use rustls::ClientConfig;
use tokio::net::TcpStream;

use self::authority::Protocol;
use self::http1::Exchanges;
use self::http2::Share;
use self::tls::{Begun, Hello, Unheard};
use crate::cache::Cache;
use crate::error::Result;
use crate::gate::passage::Passage;
use crate::gate::session::Session;
use crate::trust::{self, Trust};

pub use self::authority::Authority;
pub use self::fence::{Fence, Violation};
pub use self::value::{Fetches, Fetching, SecretValue};

/// For how long somebody is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadLimits {
    /// To agree on TLS, with either side.
    pub hello: Duration,
    /// For the head of a request, from its first byte on.
    pub head: Duration,
    /// Between requests.
    pub idle: Duration,
}

impl Default for ReadLimits {
    fn default() -> ReadLimits {
        let seconds = Duration::from_secs;
        ReadLimits { hello: seconds(10), head: seconds(10), idle: seconds(300) }
    }
}

pub struct Reader {
    authority: Option<Authority>,
    secrets: Rc<Vec<SecretValue>>,
    /// Read when it is first needed: a machine has some hundred authorities, and most runs are over before.
    trust: Trust,
    configuration: OnceCell<Arc<ClientConfig>>,
    limits: ReadLimits,
    /// What is kept of downloads, if anything is.
    cache: Option<Rc<Cache>>,
    /// How many connections are read now.
    live: Rc<std::cell::Cell<u32>>,
}

/// In boxes: they are large, and go through many hands.
type Agreed = (Box<tokio_rustls::server::TlsStream<Begun>>, Box<tokio_rustls::client::TlsStream<TcpStream>>, Protocol);

impl Reader {
    /// Without an authority nothing that is encrypted can be read, and so it is refused.
    pub fn new(authority: Option<Authority>, secrets: Vec<SecretValue>, trust: Trust, limits: ReadLimits) -> Reader {
        let secrets = secrets.into_iter().filter(SecretValue::is_something);
        Reader {
            authority,
            secrets: Rc::new(secrets.collect()),
            trust,
            configuration: OnceCell::new(),
            limits,
            cache: None,
            live: Rc::default(),
        }
    }

    pub fn with_cache(self, cache: Option<Cache>) -> Reader {
        Reader { cache: cache.map(Rc::new), ..self }
    }

    pub(crate) fn has_cache(&self) -> bool {
        self.cache.is_some()
    }

    fn configuration(&self) -> Result<Arc<ClientConfig>> {
        if let Some(known) = self.configuration.get() {
            return Ok(known.clone());
        }
        let read = trust::configuration(&self.trust)?;
        Ok(self.configuration.get_or_init(|| read).clone())
    }

    /// A connection on which TLS is spoken.
    pub(crate) async fn tls(
        &self,
        session: &Rc<Session>,
        passage: Passage,
        begun: Vec<u8>,
        client: TcpStream,
        upstream: TcpStream,
    ) -> io::Result<()> {
        quick(&client, &upstream)?;
        // What is only needed to agree must not stay: a connection may be idle for long, and there may be many.
        let agreeing = Box::pin(self.agree(session, &passage, begun, client, upstream));
        let Some((client, server, protocol)) = agreeing.await? else { return Ok(()) };
        let exchanges = self.exchanges(session, passage, true);
        match protocol {
            Protocol::Http2 => Box::pin(exchanges.http2(client, server)).await,
            Protocol::Http1 | Protocol::Unsaid => Box::pin(exchanges.http1(client, server)).await,
        }
    }

    /// With the server first, then with the client, in the same protocol. `None`: the client was told why not.
    async fn agree(
        &self,
        session: &Rc<Session>,
        passage: &Passage,
        begun: Vec<u8>,
        client: TcpStream,
        upstream: TcpStream,
    ) -> io::Result<Option<Agreed>> {
        let record = |rule: &str, why: String| relay::unreadable(session, passage, rule, why).map_err(io::Error::other);
        let Some(authority) = &self.authority else {
            record("egress.authority", "it is to be read, and there is no authority for that".to_owned())?;
            return Err(io::ErrorKind::PermissionDenied.into());
        };
        let (endpoint, limits) = (&passage.endpoint, &self.limits);
        let hello = match Hello::hear(Begun::new(begun, client), endpoint, limits).await {
            Ok(hello) => hello,
            Err(Unheard::Failed(error)) => return Err(error),
            Err(Unheard::Refused(rule, why)) => return record(rule, why).map(|()| None),
        };
        let reached = match self.configuration() {
            Ok(trust) => hello.reach(&trust, endpoint, limits, upstream).await,
            Err(error) => Err(error.to_string()),
        };
        let (server, protocol) = match reached {
            Ok(reached) => reached,
            Err(why) => {
                let why = format!("{} did not prove who it is: {why}", endpoint.host);
                record("egress.tls", why.clone())?;
                return hello.explain(authority, endpoint, limits, why).await.map(|()| None);
            }
        };
        let client = hello.answer(authority, endpoint, limits, protocol).await?;
        Ok(Some((Box::new(client), Box::new(server), protocol)))
    }

    /// A connection on which TLS is spoken, to somebody who can't be reached: what is kept of them can still be had.
    pub(crate) async fn alone(
        &self,
        session: &Rc<Session>,
        passage: Passage,
        begun: Vec<u8>,
        client: TcpStream,
        why: String,
    ) -> io::Result<()> {
        client.set_nodelay(true)?;
        let Some(authority) = &self.authority else { return Err(io::ErrorKind::PermissionDenied.into()) };
        let (endpoint, limits) = (&passage.endpoint, &self.limits);
        let hello = match Box::pin(Hello::hear(Begun::new(begun, client), endpoint, limits)).await {
            Ok(hello) => hello,
            Err(Unheard::Failed(error)) => return Err(error),
            Err(Unheard::Refused(rule, why)) => {
                return relay::unreadable(session, &passage, rule, why).map_err(io::Error::other);
            }
        };
        let why = format!("{} can't be reached, and of what is kept this is no part: {why}", endpoint.host);
        match hello.speaks_http1() {
            Some(protocol) => {
                let client = Box::new(hello.answer(authority, endpoint, limits, protocol).await?);
                Box::pin(self.exchanges(session, passage, true).alone(client, why)).await
            }
            None => hello.explain(authority, endpoint, limits, why).await,
        }
    }

    /// A connection in clear.
    pub(crate) async fn plain(
        &self,
        session: &Rc<Session>,
        passage: Passage,
        begun: Vec<u8>,
        client: TcpStream,
        upstream: TcpStream,
    ) -> io::Result<()> {
        quick(&client, &upstream)?;
        Box::pin(self.exchanges(session, passage, false).http1(Begun::new(begun, client), upstream)).await
    }

    fn exchanges(&self, session: &Rc<Session>, passage: Passage, encrypted: bool) -> Exchanges {
        Exchanges {
            session: session.clone(),
            passage: Rc::new(passage),
            secrets: self.secrets.clone(),
            limits: self.limits,
            encrypted,
            cache: self.cache.clone(),
            share: Share::take(&self.live),
        }
    }
}

/// Small pieces go at once.
fn quick(client: &TcpStream, upstream: &TcpStream) -> io::Result<()> {
    client.set_nodelay(true)?;
    upstream.set_nodelay(true)
}
