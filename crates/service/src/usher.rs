//! Connections to servers inside, from a carrier that leads visitors in. It is asked on a socket that it has as its input.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use model::{Ushered, Ushering};
use sys::descriptors;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::net::TcpStream;
use tokio::sync::Mutex;

use crate::pool::{Streams, watched};

/// For one answer: a connection inside may take some seconds.
const PATIENCE: Duration = Duration::from_secs(15);

/// One question at a time; none after one without an answer, since a late one would be taken for that to the next.
pub struct Asking(Mutex<Option<AsyncFd<OwnedFd>>>);

impl Asking {
    /// With what a carrier is to stand on.
    pub fn new() -> io::Result<(Asking, Streams)> {
        use rustix::fs::{Mode, OFlags, open};
        let (ours, input) = descriptors::wire()?;
        rustix::io::ioctl_fionbio(&ours, true)?;
        let nothing = open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
        let streams = Streams { input, output: nothing.try_clone()?, error: nothing };
        Ok((Asking(Mutex::new(Some(watched(ours, Interest::READABLE | Interest::WRITABLE)?))), streams))
    }

    /// Has somebody led in to this port; nothing if nobody listens there.
    pub async fn comes(&self, visitor: u64, port: u16) -> io::Result<Option<TcpStream>> {
        match self.ask(Ushering::Comes { visitor, port }).await? {
            (Ushered::Nobody, _) => Ok(None),
            (Ushered::Yes, Some(connection)) => {
                let stream = std::net::TcpStream::from(connection);
                stream.set_nonblocking(true)?;
                TcpStream::from_std(stream).map(Some)
            }
            (Ushered::Yes, None) => Err(io::Error::other("the connection inside was not handed over")),
            (Ushered::NotRecorded, _) => Err(not_recorded()),
        }
    }

    /// Says that visitors may come to a port, or not any more.
    pub async fn tells(&self, what: Ushering) -> io::Result<()> {
        match self.ask(what).await? {
            (Ushered::NotRecorded, _) => Err(not_recorded()),
            _ => Ok(()),
        }
    }

    /// There is no answer to this.
    pub async fn leaves(&self, visitor: u64, port: u16, said: u64, told: u64) -> io::Result<()> {
        let socket = self.0.lock().await;
        let Some(open) = socket.as_ref() else { return Ok(()) };
        send(open, Ushering::Leaves { visitor, port, said, told }).await
    }

    async fn ask(&self, what: Ushering) -> io::Result<(Ushered, Option<OwnedFd>)> {
        let mut place = self.0.lock().await;
        // Put back with the answer: whoever stops waiting leaves none for others.
        let open = place.take().ok_or_else(|| io::Error::other("nobody leads visitors in"))?;
        let answered = tokio::time::timeout(PATIENCE, async {
            send(&open, what).await?;
            open.async_io(Interest::READABLE, |socket| {
                let mut byte = [0; 2];
                let (length, along) = descriptors::receive(socket.as_fd(), &mut byte)?;
                match (length, Ushered::of(byte[0])) {
                    (0, _) => Err(io::ErrorKind::UnexpectedEof.into()),
                    (1, Some(answer)) => Ok((answer, along.into_iter().next())),
                    _ => Err(io::ErrorKind::InvalidData.into()),
                }
            })
            .await
        });
        let answered = answered.await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
        *place = Some(open);
        Ok(answered)
    }
}

async fn send(socket: &AsyncFd<OwnedFd>, what: Ushering) -> io::Result<()> {
    socket.async_io(Interest::WRITABLE, |socket| descriptors::send(socket.as_fd(), &what.encode(), &[])).await
}

fn not_recorded() -> io::Error {
    io::Error::other("the visit can't be written to the ledger, so nobody is let in")
}
