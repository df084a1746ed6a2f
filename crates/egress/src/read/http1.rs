//! HTTP/1.1: a connection of a client behind a fence, and one to the server; one request after the other.

use std::cell::RefCell;
use std::io;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;

use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::LocalSet;

use super::ReadLimits;
use super::fence::{Fence, LARGEST_HEAD, MOST_HEADERS};
use super::fenced::Fenced;
use super::http2::Share;
use super::relay::{Relay, Upstream};
use super::value::SecretValue;
use super::watch::Watch;
use crate::cache::Cache;
use crate::gate::passage::Passage;
use crate::gate::session::Session;

/// Read and written at once, at most: memory of a connection is a few of these.
const BUFFER: usize = 256 << 10;

pub struct Exchanges {
    pub session: Rc<Session>,
    pub passage: Rc<Passage>,
    pub secrets: Rc<Vec<SecretValue>>,
    pub limits: ReadLimits,
    pub encrypted: bool,
    pub cache: Option<Rc<Cache>>,
    pub share: Share,
}

impl Exchanges {
    pub async fn http1<C, S>(self, client: C, server: S) -> io::Result<()>
    where
        C: AsyncRead + AsyncWrite + Unpin + Send + 'static,
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        // All that belongs to this connection ends with it.
        LocalSet::new().run_until(self.relays(client, server)).await
    }

    /// With nobody to send anything to: answered is what is kept.
    pub async fn alone<C>(self, client: C, why: String) -> io::Result<()>
    where
        C: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        LocalSet::new().run_until(self.answers(client, Upstream::Nobody(why), std::future::pending::<()>())).await
    }

    async fn relays<C, S>(self, client: C, server: S) -> io::Result<()>
    where
        C: AsyncRead + AsyncWrite + Unpin + Send + 'static,
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let mut asks = hyper::client::conn::http1::Builder::new();
        asks.preserve_header_case(true).max_headers(4 * MOST_HEADERS).max_buf_size(BUFFER);
        let shaking = Box::pin(asks.handshake(TokioIo::new(server)));
        let (sender, server) = shaking.await.map_err(io::Error::other)?;
        let server = tokio::task::spawn_local(server.with_upgrades());
        self.answers(client, Upstream::One(RefCell::new(sender)), server).await
    }

    async fn answers<C, E>(self, client: C, upstream: Upstream, server: E) -> io::Result<()>
    where
        C: AsyncRead + AsyncWrite + Unpin + Send + 'static,
        E: Future,
    {
        let Exchanges { session, passage, secrets, limits, encrypted, cache, share: _share } = self;
        let watch = Arc::new(Watch::default());
        let fence = Fence::new(passage.endpoint.clone());
        let relay = Relay::new((session, passage), secrets, encrypted, cache, upstream, Some(watch.clone()));
        let relay = Rc::new(relay);
        let serving = relay.clone();
        let service = service_fn(move |request| {
            let relay = serving.clone();
            // In a box: the library keeps room for one of these between requests.
            Box::pin(async move { relay.serve(request).await })
        });
        let mut answers = hyper::server::conn::http1::Builder::new();
        answers.preserve_header_case(true).max_headers(MOST_HEADERS).max_buf_size(BUFFER.max(LARGEST_HEAD));
        answers.auto_date_header(false);
        let client = TokioIo::new(Fenced::new(client, fence, watch, limits));
        let mut client = pin!(answers.serve_connection(client, service).with_upgrades());
        let mut server = pin!(server);
        let ended = tokio::select! {
            ended = &mut client => ended,
            // The server has had enough: what is under way comes to its end, and no more is taken.
            _ = &mut server => {
                client.as_mut().graceful_shutdown();
                client.await
            }
        };
        if let Some(tunnel) = relay.tunnel() {
            tunnel.await.map_err(io::Error::other)?;
        }
        ended.map_err(io::Error::other)
    }
}
