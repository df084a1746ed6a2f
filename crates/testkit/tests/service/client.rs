//! A client of one request a connection, which sends exactly what it is told to.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use crate::told;

/// However slow the machine is, an answer takes less.
const PATIENCE: Duration = Duration::from_secs(120);

#[derive(Clone, Debug)]
pub enum Address {
    Port(u16),
    /// The same with TLS, which this client does not speak.
    Sealed(u16),
    Socket(PathBuf),
}

pub trait Stream: Read + Write + Send {}
impl<T: Read + Write + Send> Stream for T {}

#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    pub fn json(&self) -> Result<Value, String> {
        serde_json::from_slice(&self.body).map_err(|error| format!("{error}: {self:?}"))
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// With this status, or else all of it is the complaint.
    pub fn expect(self, status: u16) -> Result<Answer, String> {
        match self.status == status {
            true => Ok(self),
            false => Err(format!("wanted {status}, got {} {}", self.status, self.text())),
        }
    }
}

pub fn connect(address: &Address) -> Result<Box<dyn Stream>, String> {
    Ok(match address {
        Address::Port(port) | Address::Sealed(port) => {
            let stream = told(TcpStream::connect(("127.0.0.1", *port)))?;
            told(stream.set_read_timeout(Some(PATIENCE)))?;
            Box::new(stream)
        }
        Address::Socket(path) => {
            let stream = told(UnixStream::connect(path))?;
            told(stream.set_read_timeout(Some(PATIENCE)))?;
            Box::new(stream)
        }
    })
}

/// Sends a request and leaves the connection open.
pub fn send(
    address: &Address,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Result<Box<dyn Stream>, String> {
    let mut stream = connect(address)?;
    let mut head = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n", body.len());
    if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
        head += "Host: localhost\r\n";
    }
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    head += "\r\n";
    told(stream.write_all(head.as_bytes()))?;
    // A server that has heard enough answers and closes.
    drop(stream.write_all(body));
    Ok(stream)
}

pub fn receive(stream: Box<dyn Stream>) -> Result<Answer, String> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    told(reader.read_line(&mut line))?;
    let status = line.split(' ').nth(1).and_then(|code| code.parse().ok()).ok_or(format!("no answer: {line:?}"))?;
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        told(reader.read_line(&mut line))?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.push((name.to_owned(), value.trim().to_owned()));
    }
    let mut body = Vec::new();
    let chunked =
        headers.iter().any(|(name, value)| name.eq_ignore_ascii_case("transfer-encoding") && value == "chunked");
    if chunked {
        loop {
            let mut line = String::new();
            if told(reader.read_line(&mut line))? == 0 {
                break;
            }
            let length = told(usize::from_str_radix(line.trim(), 16))?;
            let mut chunk = vec![0; length + 2];
            told(reader.read_exact(&mut chunk))?;
            if length == 0 {
                break;
            }
            body.extend_from_slice(&chunk[..length]);
        }
    } else {
        // One that resets after its answer has answered.
        drop(reader.read_to_end(&mut body));
    }
    Ok(Answer { status, headers, body })
}

/// An event of a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    pub id: u64,
    pub kind: String,
    pub data: Value,
}

pub fn events(text: &str) -> Result<Vec<Event>, String> {
    let mut all = Vec::new();
    for block in text.split("\n\n").filter(|block| block.contains("data:")) {
        let field =
            |name: &str| block.lines().find_map(|line| line.strip_prefix(name)).map(str::trim).unwrap_or_default();
        let data = told(serde_json::from_str(field("data:")))?;
        all.push(Event { id: told(field("id:").parse())?, kind: field("event:").to_owned(), data });
    }
    Ok(all)
}
