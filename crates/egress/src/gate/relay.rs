//! Bytes from one side to the other, both ways, until both have ended. An idle connection holds no buffer.

use std::cell::{Cell, RefCell};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::net::Shutdown;
use rustix::pipe::{PipeFlags, SpliceFlags};
use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::time::Instant;

use super::live::Live;

/// What is read at once, at first and at most. What one side does not take is kept, and this is all that is ever kept.
const SMALLEST: usize = 16 << 10;
const LARGEST: usize = 256 << 10;

/// Room that all connections use in turn: only one of them reads at any moment.
pub(crate) struct Scratch {
    bytes: RefCell<Box<[u8]>>,
    /// Empty ones. Much of the same is moved through them without being copied.
    pipes: RefCell<Vec<Pipe>>,
}

const MOST_SPARE: usize = 4;

impl Scratch {
    pub fn new() -> Scratch {
        Scratch { bytes: RefCell::new(vec![0; LARGEST].into_boxed_slice()), pipes: RefCell::default() }
    }

    fn pipe(&self) -> io::Result<Pipe> {
        if let Some(pipe) = self.pipes.borrow_mut().pop() {
            return Ok(pipe);
        }
        let (out, into) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        // A smaller one does as well, more slowly: a user may have only so much of them.
        rustix::pipe::fcntl_setpipe_size(&into, LARGEST).ok();
        Ok(Pipe { out, into, filled: 0 })
    }

    fn spare(&self, pipe: Pipe) {
        let mut pipes = self.pipes.borrow_mut();
        if pipe.filled == 0 && pipes.len() < MOST_SPARE {
            pipes.push(pipe);
        }
    }
}

struct Pipe {
    out: OwnedFd,
    into: OwnedFd,
    filled: usize,
}

impl Pipe {
    /// Nothing to be had is an error that says so.
    fn fill(&mut self, from: &TcpStream) -> io::Result<usize> {
        let moved = from.try_io(Interest::READABLE, || splice(from, &self.into, LARGEST))?;
        self.filled += moved;
        Ok(moved)
    }

    /// As much as is taken now.
    fn empty(&mut self, to: &TcpStream) -> io::Result<usize> {
        let mut moved = 0;
        while self.filled > 0 {
            match to.try_io(Interest::WRITABLE, || splice(&self.out, to, self.filled)) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(taken) => {
                    moved += taken;
                    self.filled = self.filled.saturating_sub(taken);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(moved)
    }
}

fn splice(from: impl AsFd, to: impl AsFd, length: usize) -> io::Result<usize> {
    Ok(rustix::pipe::splice(from, None, to, None, length, SpliceFlags::MOVE | SpliceFlags::NONBLOCK)?)
}

/// One way of a connection. Can be left at any time and taken up again: nothing is lost.
pub(crate) struct Flow {
    /// Read but not taken yet.
    kept: Vec<u8>,
    at: usize,
    size: usize,
    /// The same, where it is moved and not copied.
    stuck: Option<Pipe>,
    moves: bool,
    /// The other side says no more.
    ended: bool,
    bytes: u64,
}

impl Flow {
    /// `kept` was read already, and comes first.
    pub fn beginning_with(kept: Vec<u8>) -> Flow {
        Flow { kept, at: 0, size: SMALLEST, stuck: None, moves: true, ended: false, bytes: 0 }
    }

    pub fn is_untouched(&self) -> bool {
        self.bytes == 0 && self.kept.is_empty() && self.stuck.is_none() && !self.ended
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
            while let Some(pipe) = &mut self.stuck {
                let moved = pipe.empty(to)?;
                let done = pipe.filled == 0;
                self.note(moved, &count);
                match self.stuck.take() {
                    Some(pipe) if done => scratch.spare(pipe),
                    stuck => {
                        self.stuck = stuck;
                        to.writable().await?;
                    }
                }
            }
            if self.ended {
                return Ok(());
            }
            from.readable().await?;
            // Small things are copied sooner than moved.
            if self.moves && self.size == LARGEST {
                self.shift(from, to, scratch, &count)?;
            } else {
                self.pass(from, to, &mut scratch.bytes.borrow_mut(), &count)?;
            }
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

    /// The same without a copy.
    fn shift(&mut self, from: &TcpStream, to: &TcpStream, scratch: &Scratch, count: &impl Fn(u64)) -> io::Result<()> {
        let mut pipe = scratch.pipe()?;
        match pipe.fill(from) {
            Ok(0) => {
                self.ended = true;
                scratch.spare(pipe);
                return finish(to);
            }
            Ok(_) => {}
            Err(error) => {
                scratch.spare(pipe);
                return match error.kind() {
                    io::ErrorKind::WouldBlock => Ok(()),
                    // Not between these two.
                    io::ErrorKind::InvalidInput => {
                        self.moves = false;
                        Ok(())
                    }
                    _ => Err(error),
                };
            }
        }
        let moved = pipe.empty(to)?;
        self.note(moved, count);
        if pipe.filled > 0 {
            self.stuck = Some(pipe);
        } else {
            scratch.spare(pipe);
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
