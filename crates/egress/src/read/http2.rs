//! HTTP/2: many requests at once on a connection of a client, and as many on one to the server.

use std::cell::Cell;
use std::io;
use std::pin::pin;
use std::rc::Rc;

use hyper::rt::Executor;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::LocalSet;

use super::fence::LARGEST_HEAD;
use super::http1::Exchanges;
use super::relay::{Relay, Upstream};

/// Requests at once.
pub const MOST_STREAMS: u32 = 100;
/// What a side may send before the other has taken it, in a stream and in all: that much memory they can cost.
const STREAM_WINDOW: u32 = 1 << 20;
const CONNECTION_WINDOW: u32 = 4 << 20;
const FRAME: u32 = 64 << 10;
const UNSENT: usize = 128 << 10;

/// Runs what belongs to a connection on its own thread.
#[derive(Clone, Copy)]
pub struct Here;

impl<F: Future<Output: 'static> + 'static> Executor<F> for Here {
    fn execute(&self, future: F) {
        tokio::task::spawn_local(future);
    }
}

impl Exchanges {
    pub async fn http2<C, S>(self, client: C, server: S) -> io::Result<()>
    where
        C: AsyncRead + AsyncWrite + Unpin + Send + 'static,
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        LocalSet::new().run_until(self.relays_many(client, server)).await
    }

    async fn relays_many<C, S>(self, client: C, server: S) -> io::Result<()>
    where
        C: AsyncRead + AsyncWrite + Unpin + Send + 'static,
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let Exchanges { session, passage, secrets, limits, encrypted } = self;
        let mut asks = hyper::client::conn::http2::Builder::new(Here);
        asks.timer(TokioTimer::new())
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_frame_size(FRAME)
            .max_header_list_size(4 * LARGEST_HEAD as u32)
            .max_send_buf_size(UNSENT);
        let (sender, server) = asks.handshake(TokioIo::new(server)).await.map_err(io::Error::other)?;
        let relay = Relay::new(session, passage, secrets, encrypted, Upstream::Many(sender), None);
        let relay = Rc::new(relay);
        let under_way = Rc::new(Cell::new(0_u64));
        let begun = Rc::new(Cell::new(0_u64));
        let service = service_fn({
            let (under_way, begun) = (under_way.clone(), begun.clone());
            move |request| {
                let relay = relay.clone();
                begun.set(begun.get() + 1);
                let counted = Counted::new(under_way.clone());
                async move {
                    let answer = relay.serve(request).await;
                    drop(counted);
                    answer
                }
            }
        });
        let mut answers = hyper::server::conn::http2::Builder::new(Here);
        answers
            .timer(TokioTimer::new())
            .max_concurrent_streams(MOST_STREAMS)
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_frame_size(FRAME)
            .max_header_list_size(LARGEST_HEAD as u32)
            .max_send_buf_size(UNSENT)
            .auto_date_header(false);
        let mut client = pin!(answers.serve_connection(TokioIo::new(client), service));
        let mut server = tokio::task::spawn_local(server);
        let mut seen = 0;
        let mut open = true;
        loop {
            let idle = tokio::time::sleep(limits.idle);
            tokio::select! {
                ended = &mut client => return ended.map_err(io::Error::other),
                _ = &mut server, if open => {
                    open = false;
                    client.as_mut().graceful_shutdown();
                }
                () = idle => {
                    // Nothing began since the last look, and nothing waits for an answer. What still flows may end.
                    if open && under_way.get() == 0 && begun.get() == seen {
                        client.as_mut().graceful_shutdown();
                    }
                    seen = begun.get();
                }
            }
        }
    }
}

struct Counted(Rc<Cell<u64>>);

impl Counted {
    fn new(count: Rc<Cell<u64>>) -> Counted {
        count.set(count.get() + 1);
        Counted(count)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.set(self.0.get().saturating_sub(1));
    }
}
