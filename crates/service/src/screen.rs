//! A terminal between the server and a carrier. The carrier stands on its inner end, as `belljar` does on a person's, and shows there
//! what the sandbox's own terminal says: so there is one way to do it, with one gate.

use std::io;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{OptionalActions, Winsize, tcgetattr, tcsetattr, tcsetwinsize};
use serde::{Deserialize, Serialize};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::pool::{Streams, watched};

/// In letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Size {
    pub columns: u16,
    pub rows: u16,
}

/// Its outer end.
pub struct Screen(AsyncFd<OwnedFd>);

impl Screen {
    /// Within a runtime. With what a carrier is to stand on.
    pub fn open(size: Size) -> io::Result<(Screen, Streams)> {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let outer = openpt(flags)?;
        unlockpt(&outer)?;
        let inner = ioctl_tiocgptpeer(&outer, flags)?;
        // All that is typed is for the terminal behind it, from the first letter on.
        let mut settings = tcgetattr(&inner)?;
        settings.make_raw();
        tcsetattr(&inner, OptionalActions::Now, &settings)?;
        rustix::io::ioctl_fionbio(&outer, true)?;
        let streams = Streams { input: inner.try_clone()?, output: inner.try_clone()?, error: inner };
        let screen = Screen(watched(outer, Interest::READABLE | Interest::WRITABLE)?);
        screen.resize(size)?;
        Ok((screen, streams))
    }

    /// What is shown next; nothing when nobody has the inner end any more.
    pub async fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.0.async_io(Interest::READABLE, |outer| Ok(rustix::io::read(outer, &mut *buffer)?)).await;
        match read {
            Err(error) if error.raw_os_error() == Some(Errno::IO.raw_os_error()) => Ok(0),
            read => read,
        }
    }

    /// What was shown by now, without waiting; nothing if that was all. To read is to have the kernel hand over what it still has
    /// under way: so nothing is missed that was shown before.
    pub fn read_now(&self, buffer: &mut [u8]) -> usize {
        rustix::io::retry_on_intr(|| rustix::io::read(self.0.get_ref(), &mut *buffer)).unwrap_or_default()
    }

    /// Types as much of it as there is room for.
    pub async fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        self.0.async_io(Interest::WRITABLE, |outer| Ok(rustix::io::write(outer, bytes)?)).await
    }

    /// Whoever stands on it is told by a signal, which is the caller's to send.
    pub fn resize(&self, size: Size) -> io::Result<()> {
        let size = Winsize { ws_row: size.rows, ws_col: size.columns, ws_xpixel: 0, ws_ypixel: 0 };
        Ok(tcsetwinsize(self.0.get_ref(), size)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed_comes_as_it_is_and_what_is_shown_too() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let size = Size { columns: 132, rows: 43 };
            let (screen, streams) = Screen::open(size).expect("a terminal");
            assert_eq!(screen.write(b"a\r\x03").await.expect("typed"), 3);
            let mut typed = [0; 8];
            assert_eq!(rustix::io::read(&streams.input, &mut typed).expect("read"), 3);
            assert_eq!(&typed[..3], b"a\r\x03");
            rustix::io::write(&streams.output, b"b\n").expect("shown");
            let mut shown = [0; 8];
            // Neither an echo of what was typed nor another end of the line.
            assert_eq!(screen.read(&mut shown).await.expect("read"), 2);
            assert_eq!(&shown[..2], b"b\n");
            let inside = rustix::termios::tcgetwinsize(&streams.error).expect("a size");
            assert_eq!((inside.ws_col, inside.ws_row), (132, 43));
            rustix::io::write(&streams.output, b"c").expect("shown");
            assert_eq!((screen.read_now(&mut shown), shown[0], screen.read_now(&mut shown)), (1, b'c', 0));
            drop(streams);
            assert_eq!(screen.read(&mut shown).await.expect("its end"), 0);
        });
    }
}
