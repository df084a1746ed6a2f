//! What the gate has to tell the monitor while a run goes on: connections that look like more than they say.
//!
//! One way, and never waited for: the gate drops what does not fit, and whoever listens takes what is there when it looks.

use std::io;
use std::os::fd::OwnedFd;

use monitor::Observation;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};

/// The gate's end.
pub struct Teller(OwnedFd);

/// The monitor's end.
pub struct News(OwnedFd);

/// Of a message: a name of the network, and its port.
const LONGEST: usize = 2 + 253;
/// Taken at a time; what is left comes next time.
const MOST: usize = 64;

pub fn pair() -> io::Result<(Teller, News)> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let (tells, hears) = rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
    Ok((Teller(tells), News(hears)))
}

impl Teller {
    /// Only what the monitor would take note of: who makes thousands of other connections hides nothing behind them. Once it
    /// has heard of one, more of them say nothing new, so that what does not fit is no loss.
    pub fn connected(&self, host: &str, port: u16) {
        if !monitor::is_telling(&Observation::Connected { host, port }) {
            return;
        }
        let words = [port.to_le_bytes().as_slice(), host.as_bytes()].concat();
        // The kernel bounds what waits there, and nobody may wait here.
        match rustix::net::send(&self.0, &words, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
            Ok(_) | Err(_) => {}
        }
    }
}

impl News {
    /// Hosts and ports.
    pub fn heard(&self) -> Vec<(String, u16)> {
        let mut heard = Vec::new();
        let mut words = [0; LONGEST];
        while heard.len() < MOST {
            let count = match rustix::net::recv(&self.0, &mut words, RecvFlags::DONTWAIT) {
                Ok((count, _)) => count,
                Err(_) => break,
            };
            let [low, high, host @ ..] = &words[..count] else { break };
            heard.push((String::from_utf8_lossy(host).into_owned(), u16::from_le_bytes([*low, *high])));
        }
        heard
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_looks_like_a_pool_is_heard_of_and_nothing_else() -> io::Result<()> {
        let (teller, news) = pair()?;
        teller.connected("example.org", 443);
        teller.connected("example.org", 3333);
        teller.connected("xmr.nanopool.org", 443);
        let wanted = [("example.org".to_owned(), 3333), ("xmr.nanopool.org".to_owned(), 443)];
        assert_eq!(news.heard(), wanted);
        assert_eq!(news.heard(), []);
        Ok(())
    }

    #[test]
    fn nobody_waits_for_whoever_does_not_listen_and_nothing_grows() -> io::Result<()> {
        let (teller, news) = pair()?;
        for _ in 0..100_000 {
            teller.connected("xmr.nanopool.org", 443);
        }
        let mut all = 0;
        while let many @ 1.. = news.heard().len() {
            assert!(many <= MOST);
            all += many;
        }
        assert!((1..5_000).contains(&all), "{all}");
        Ok(())
    }

    #[test]
    fn whoever_is_gone_is_no_trouble() -> io::Result<()> {
        let (teller, news) = pair()?;
        drop(news);
        teller.connected("xmr.nanopool.org", 443);
        let (teller, news) = pair()?;
        drop(teller);
        assert_eq!(news.heard(), []);
        Ok(())
    }
}
