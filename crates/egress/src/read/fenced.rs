//! A client's connection behind a fence. Bytes of bodies pass without being copied; heads are read apart.
//!
//! A request that is refused is replaced by one of ours, so that the parser answers it in its place: after those before it.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

use super::ReadLimits;
use super::fence::{Fence, Violation};
use super::watch::{Broken, Watch};

const PLACEHOLDER: &[u8] = b"GET / HTTP/1.1\r\nhost: refused\r\nconnection: close\r\n\r\n";
/// Read at once where it must be looked at.
const PIECE: usize = 8 << 10;
/// Waits at most behind a request that wants to speak something else.
const LARGEST_BACKLOG: usize = 64 << 10;
/// After the last word: what still comes is thrown away for a moment, because a connection that is closed with something
/// unread in it takes the answer with it.
const LINGER: Duration = Duration::from_secs(1);
const LARGEST_LINGER: usize = 4 << 20;

pub struct Fenced<S> {
    inner: S,
    fence: Fence,
    watch: Arc<Watch>,
    limits: ReadLimits,
    /// Sound, and not yet taken.
    sound: Vec<u8>,
    /// Not yet looked at.
    backlog: Vec<u8>,
    phase: Phase,
    timer: Option<Pin<Box<Sleep>>>,
    thrown_away: usize,
    shut: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Busy,
    Idle,
    Head,
    Farewell,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Fenced<S> {
    pub fn new(inner: S, fence: Fence, watch: Arc<Watch>, limits: ReadLimits) -> Fenced<S> {
        Fenced {
            inner,
            fence,
            watch,
            limits,
            sound: Vec::new(),
            backlog: Vec::new(),
            phase: Phase::Busy,
            timer: None,
            thrown_away: 0,
            shut: false,
        }
    }

    fn look(&mut self, bytes: &[u8]) {
        match self.fence.take(bytes, &mut self.sound) {
            Ok(taken) => self.backlog.extend_from_slice(&bytes[taken..]),
            Err(violation) => self.refuse(violation),
        }
    }

    fn refuse(&mut self, violation: Violation) {
        let current = self.fence.heads();
        match self.fence.way_out_of_body() {
            Some(way_out) => {
                self.watch.breaks(Broken::Body(current, violation));
                self.sound.extend_from_slice(way_out);
            }
            None => {
                self.watch.breaks(Broken::Head(current + 1, violation));
                self.sound.extend_from_slice(PLACEHOLDER);
            }
        }
    }

    /// Whether time is up, for what it is in.
    fn is_late(&mut self, context: &mut Context<'_>) -> bool {
        let busy = self.watch.over() < self.fence.heads();
        let phase = match () {
            () if self.fence.is_in_head() && !busy => Phase::Head,
            () if self.fence.is_between() && !busy => Phase::Idle,
            () => Phase::Busy,
        };
        let time = match phase {
            Phase::Head => Some(self.limits.head),
            Phase::Idle => Some(self.limits.idle),
            Phase::Busy | Phase::Farewell => None,
        };
        self.is_over(phase, time, context)
    }

    fn is_over(&mut self, phase: Phase, time: Option<Duration>, context: &mut Context<'_>) -> bool {
        let Some(time) = time else {
            self.phase = phase;
            return false;
        };
        let timer = self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep(time)));
        if self.phase != phase {
            self.phase = phase;
            timer.as_mut().reset(Instant::now() + time);
        }
        timer.as_mut().poll(context).is_ready()
    }

    fn throw_away(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut piece = [0; PIECE];
        while self.thrown_away < LARGEST_LINGER {
            let mut buffer = ReadBuf::new(&mut piece);
            ready!(Pin::new(&mut self.inner).poll_read(context, &mut buffer))?;
            if buffer.filled().is_empty() {
                break;
            }
            self.thrown_away += buffer.filled().len();
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Fenced<S> {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        loop {
            if !this.sound.is_empty() {
                let now = this.sound.len().min(buffer.remaining());
                buffer.put_slice(&this.sound[..now]);
                this.sound.drain(..now);
                if this.sound.is_empty() && this.sound.capacity() > PIECE {
                    this.sound = Vec::new();
                }
                return Poll::Ready(Ok(()));
            }
            if this.fence.is_closed() {
                // Not an end, however this one ends: the parser would drop the answer that it owes.
                drop(this.throw_away(context));
                return Poll::Pending;
            }
            if this.fence.is_held() {
                match this.watch.answer(this.fence.heads()) {
                    Some(switched) => this.fence.answered(switched),
                    None => this.watch.wakes(context.waker()),
                }
            }
            if !this.fence.is_held() && !this.backlog.is_empty() {
                let backlog = std::mem::take(&mut this.backlog);
                this.look(&backlog);
                continue;
            }
            if this.fence.is_held() && this.backlog.len() >= LARGEST_BACKLOG {
                return Poll::Pending;
            }
            let open = usize::try_from(this.fence.open_for()).unwrap_or(usize::MAX);
            if open >= buffer.remaining() {
                let before = buffer.filled().len();
                ready!(Pin::new(&mut this.inner).poll_read(context, buffer))?;
                this.fence.passed((buffer.filled().len() - before) as u64);
                return Poll::Ready(Ok(()));
            }
            let mut piece = [0; PIECE];
            let mut read = ReadBuf::new(&mut piece);
            match Pin::new(&mut this.inner).poll_read(context, &mut read) {
                Poll::Ready(Ok(())) if read.filled().is_empty() => return Poll::Ready(Ok(())),
                Poll::Ready(Ok(())) => {
                    let taken = read.filled();
                    if this.fence.is_held() {
                        this.backlog.extend_from_slice(taken);
                    } else {
                        this.look(taken);
                    }
                }
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => {
                    this.watch.wakes(context.waker());
                    if !this.is_late(context) {
                        return Poll::Pending;
                    }
                    if this.phase == Phase::Idle {
                        return Poll::Ready(Ok(()));
                    }
                    let violation = this.fence.close(Violation("a head that takes too long"));
                    this.refuse(violation);
                }
            }
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Fenced<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().inner).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().inner).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if !this.shut {
            ready!(Pin::new(&mut this.inner).poll_shutdown(context))?;
            this.shut = true;
        }
        // Between requests there is nothing unread.
        if this.fence.is_between() || matches!(this.fence.open_for(), u64::MAX) {
            return Poll::Ready(Ok(()));
        }
        if this.is_over(Phase::Farewell, Some(LINGER), context) {
            return Poll::Ready(Ok(()));
        }
        // However it ends, what was to be said is said.
        this.throw_away(context).map(|_| Ok(()))
    }
}
