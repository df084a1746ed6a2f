//! Bytes from one side to the other, both ways, until both have ended. An idle connection holds no buffer.

use std::cell::{Cell, RefCell};
use std::io;
use std::time::Duration;

use rustix::net::Shutdown;
use tokio::net::TcpStream;
use tokio::time::Instant;

use super::live::Live;

/// What is read at once, at first and at most. What one side does not take is kept, and this is all that is ever kept.
const SMALLEST: usize = 16 << 10;
const LARGEST: usize = 256 << 10;

/// Room that all connections use in turn: only one of them reads at any moment.
pub(crate) struct Scratch(RefCell<Box<[u8]>>);

impl Scratch {
    pub fn new() -> Scratch {
        Scratch(RefCell::new(vec![0; LARGEST].into_boxed_slice()))
    }
}

/// One way of a connection. Can be left at any time and taken up again: nothing is lost.
pub(crate) struct Flow {
    /// Read but not taken yet.
    kept: Vec<u8>,
    at: usize,
    size: usize,
    /// The other side says no more.
    ended: bool,
    bytes: u64,
}

impl Flow {
    /// `kept` was read already, and comes first.
    pub fn beginning_with(kept: Vec<u8>) -> Flow {
        Flow { kept, at: 0, size: SMALLEST, ended: false, bytes: 0 }
    }

    pub fn is_untouched(&self) -> bool {
        self.bytes == 0 && self.kept.is_empty() && !self.ended
    }

    /// Until `from` says no more, and `to` was told so.
    pub async fn run(
        &mut self,
        from: &TcpStream,
        to: &TcpStream,
        scratch: &Scratch,
        count: impl Fn(u64),
    ) -> io::Result<()> {
        loop {
            while self.at < self.kept.len() {
                let rest = self.kept.get(self.at..).unwrap_or_default();
                match to.try_write(rest) {
                    Ok(taken) => {
                        self.at += taken;
                        self.note(taken, &count);
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => to.writable().await?,
                    Err(error) => return Err(error),
                }
            }
            (self.kept, self.at) = (Vec::new(), 0);
            if self.ended {
                return Ok(());
            }
            from.readable().await?;
            self.pass(from, to, &mut scratch.0.borrow_mut(), &count)?;
        }
    }

    /// What can be read now.
    fn pass(&mut self, from: &TcpStream, to: &TcpStream, room: &mut [u8], count: &impl Fn(u64)) -> io::Result<()> {
        let size = self.size.min(room.len());
        let read = match from.try_read(&mut room[..size]) {
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error),
        };
        if read == 0 {
            self.ended = true;
            return finish(to);
        }
        let mut written = 0;
        while written < read {
            match to.try_write(&room[written..read]) {
                Ok(taken) => written += taken,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        self.note(written, count);
        if written < read {
            self.kept = room[written..read].to_vec();
            self.size = SMALLEST.max(self.size / 2);
        } else if read == size {
            self.size = (self.size * 2).min(LARGEST);
        }
        Ok(())
    }

    fn note(&mut self, bytes: usize, count: &impl Fn(u64)) {
        self.bytes += bytes as u64;
        count(bytes as u64);
    }
}

/// No more is said to this side; it may go on talking.
fn finish(to: &TcpStream) -> io::Result<()> {
    match rustix::net::shutdown(to, Shutdown::Write) {
        // It is gone altogether: whatever it still had to say shows that.
        Ok(()) | Err(rustix::io::Errno::NOTCONN) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Both ways, until both have ended, or nothing came for as long as `idle`.
pub(crate) async fn both(
    client: &TcpStream,
    upstream: &TcpStream,
    mut out: Flow,
    mut back: Flow,
    scratch: &Scratch,
    live: &Live,
    idle: Option<Duration>,
) -> io::Result<()> {
    let last = Cell::new(Instant::now());
    let note = |sent: u64, received: u64| {
        live.count(sent, received);
        if idle.is_some() {
            last.set(Instant::now());
        }
    };
    let ways = async {
        tokio::try_join!(
            out.run(client, upstream, scratch, |bytes| note(bytes, 0)),
            back.run(upstream, client, scratch, |bytes| note(0, bytes)),
        )
    };
    let silence = async {
        let Some(idle) = idle else { return std::future::pending().await };
        while last.get().elapsed() < idle {
            tokio::time::sleep_until(last.get() + idle).await;
        }
    };
    tokio::select! {
        ended = ways => ended.map(|_| ()),
        () = silence => Err(io::ErrorKind::TimedOut.into()),
    }
}
