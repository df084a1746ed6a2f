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
/// What a side may send before the other has taken it, of one connection: that much memory it can cost. The guest may open many
/// and read none, and this memory is not counted as the sandbox's: all of them share what there is.
const LARGEST_WINDOW: u32 = 4 << 20;
const SMALLEST_WINDOW: u32 = 64 << 10;
const ALL_WINDOWS: u32 = 64 << 20;
const FRAME: u32 = 64 << 10;
const SMALLEST_UNSENT: u32 = 4 << 10;

/// A part in the memory that all connections share, from when it begins to its end.
pub struct Share {
    live: Rc<Cell<u32>>,
    window: u32,
}

impl Share {
    pub fn take(live: &Rc<Cell<u32>>) -> Share {
        live.set(live.get().saturating_add(1));
        let window = (ALL_WINDOWS / live.get().max(1)).clamp(SMALLEST_WINDOW, LARGEST_WINDOW);
        Share { live: live.clone(), window }
    }

    fn connection(&self) -> u32 {
        self.window
    }

    fn stream(&self) -> u32 {
        (self.window / 4).max(SMALLEST_WINDOW)
    }

    /// Of each stream.
    fn unsent(&self) -> usize {
        let part = if self.window == LARGEST_WINDOW { 32 } else { 64 };
        (self.window / part).max(SMALLEST_UNSENT) as usize
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.live.set(self.live.get().saturating_sub(1));
    }
}

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
        let Exchanges { session, passage, secrets, limits, encrypted, cache, share } = self;
        let mut asks = hyper::client::conn::http2::Builder::new(Here);
        asks.timer(TokioTimer::new())
            .initial_stream_window_size(share.stream())
            .initial_connection_window_size(share.connection())
            .max_frame_size(FRAME)
            .max_header_list_size(4 * LARGEST_HEAD as u32)
            .max_send_buf_size(share.unsent());
        let (sender, server) = asks.handshake(TokioIo::new(server)).await.map_err(io::Error::other)?;
        let relay = Relay::new((session, passage), secrets, encrypted, cache, Upstream::Many(sender), None);
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
            .initial_stream_window_size(share.stream())
            .initial_connection_window_size(share.connection())
            .max_frame_size(FRAME)
            .max_header_list_size(LARGEST_HEAD as u32)
            .max_send_buf_size(share.unsent())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_connections_together_cost_no_more_than_there_is() {
        let live = Rc::new(Cell::new(0));
        let first = Share::take(&live);
        assert_eq!((first.connection(), first.stream(), first.unsent()), (4 << 20, 1 << 20, 128 << 10));
        let all: Vec<Share> = (1..1024).map(|_| Share::take(&live)).collect();
        let cost = |share: &Share| u64::from(share.connection()) + u64::from(MOST_STREAMS) * share.unsent() as u64;
        let most: u64 = all.iter().chain([&first]).map(cost).sum();
        assert!(most < 5 << 28, "{most}");
        drop(all);
        assert_eq!(Share::take(&live).connection(), 4 << 20);
    }
}
