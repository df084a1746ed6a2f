//! A server of one test's own, on this machine's loopback.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::told;

/// Gone with this.
pub struct Served {
    child: Child,
    pub port: u16,
}

impl Served {
    /// One that prints its port when it can be reached.
    pub fn telling(command: &mut Command) -> Result<Served, String> {
        let mut child = told(command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn())?;
        let mut line = String::new();
        told(BufReader::new(child.stdout.take().ok_or("it has an output")?).read_line(&mut line))?;
        match line.trim().parse() {
            Ok(port) => Ok(Served { child, port }),
            Err(_) => {
                stop(&mut child);
                Err(format!("{command:?} told no port but `{line}`"))
            }
        }
    }

    /// One that is told its port, and can be reached some time later.
    pub fn at(port: u16, command: &mut Command) -> Result<Served, String> {
        let mut child = told(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn())?;
        let until = Instant::now() + Duration::from_secs(20);
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            let ended = told(child.try_wait())?;
            if ended.is_some() || Instant::now() > until {
                stop(&mut child);
                return Err(format!("{command:?} does not answer: {ended:?}"));
            }
            std::thread::yield_now();
        }
        Ok(Served { child, port })
    }
}

/// A port that nobody has now.
pub fn free_port() -> Result<u16, String> {
    let listener = told(std::net::TcpListener::bind(("127.0.0.1", 0)))?;
    told(listener.local_addr()).map(|address| address.port())
}

fn stop(child: &mut Child) {
    child.kill().and_then(|()| child.wait().map(drop)).ok();
}

impl Drop for Served {
    fn drop(&mut self) {
        stop(&mut self.child);
    }
}
