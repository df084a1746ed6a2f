//! HTTP/1.1 over a socket of this host, as much of it as an engine's API needs: one request a connection, bodies of a
//! length or in chunks, and connections that become something else.
//!
//! Plain and blocking, like all of a backend: supervision is one loop over descriptors, and sandboxes are never forked
//! from a process with threads.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// Heads longer than this are no engine's.
const LONGEST_HEAD: usize = 64 << 10;
/// Answers that are kept whole.
const LONGEST_BODY: u64 = 64 << 20;

/// What is sent with a request.
pub enum Body<'a> {
    None,
    Json(&'a [u8]),
    /// Of unknown length, passed on as it is read.
    Stream(&'a mut dyn Read, &'static str),
}

/// An answer whose body is still to be read.
pub struct Answer {
    pub status: u16,
    headers: Headers,
    reader: BodyReader,
}

/// Names in lower case.
type Headers = Vec<(String, String)>;

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The user who answers, as the kernel says.
    pub fn peer(&self) -> io::Result<u32> {
        Ok(rustix::net::sockopt::socket_peercred(&self.reader.stream)?.uid.as_raw())
    }

    /// All of it.
    pub fn whole(mut self) -> io::Result<(u16, Vec<u8>)> {
        let mut all = Vec::new();
        (&mut self.reader).take(LONGEST_BODY).read_to_end(&mut all)?;
        Ok((self.status, all))
    }
}

/// Sends a request. `patience`: how long nothing may come back; for ever without one.
pub fn ask(socket: &Path, method: &str, path: &str, body: Body<'_>, patience: Option<Duration>) -> io::Result<Answer> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(patience)?;
    stream.set_write_timeout(patience)?;
    let head = |extra: &str| format!("{method} {path} HTTP/1.1\r\nHost: engine\r\nConnection: close\r\n{extra}\r\n");
    match body {
        Body::None => stream.write_all(head("Content-Length: 0\r\n").as_bytes())?,
        Body::Json(bytes) => {
            let extra = format!("Content-Type: application/json\r\nContent-Length: {}\r\n", bytes.len());
            let mut all = head(&extra).into_bytes();
            all.extend_from_slice(bytes);
            stream.write_all(&all)?;
        }
        Body::Stream(source, kind) => {
            let extra = format!("Content-Type: {kind}\r\nTransfer-Encoding: chunked\r\n");
            stream.write_all(head(&extra).as_bytes())?;
            // An engine that has seen enough answers and hangs up: its answer says why.
            match send_chunks(&mut stream, source) {
                Err(Sending::Here(error)) => return Err(error),
                Err(Sending::There) | Ok(()) => {}
            }
        }
    }
    let Head { status, headers, how, rest } = read_head(&mut stream)?;
    Ok(Answer { status, headers, reader: BodyReader { stream, how, rest, at: 0 } })
}

/// Sends a request after which the connection carries something else, and what came of that already.
/// An answer that is none is returned as one.
pub fn upgrade(
    socket: &Path,
    path: &str,
    body: &[u8],
    patience: Option<Duration>,
) -> io::Result<Result<(UnixStream, Vec<u8>), Answer>> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(patience)?;
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: engine\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let mut all = head.into_bytes();
    all.extend_from_slice(body);
    stream.write_all(&all)?;
    let Head { status, headers, how, rest } = read_head(&mut stream)?;
    if status != 101 && status != 200 {
        return Ok(Err(Answer { status, headers, reader: BodyReader { stream, how, rest, at: 0 } }));
    }
    stream.set_read_timeout(None)?;
    Ok(Ok((stream, rest)))
}

enum Sending {
    /// What was to be sent could not be read.
    Here(io::Error),
    There,
}

fn send_chunks(stream: &mut UnixStream, source: &mut dyn Read) -> Result<(), Sending> {
    let mut buffer = vec![0u8; 64 << 10];
    loop {
        let read = match source.read(&mut buffer) {
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(Sending::Here(error)),
        };
        let sent = write!(stream, "{read:x}\r\n")
            .and_then(|()| stream.write_all(&buffer[..read]))
            .and_then(|()| stream.write_all(b"\r\n"));
        sent.map_err(|_| Sending::There)?;
        if read == 0 {
            return Ok(());
        }
    }
}

/// How a body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    Length(u64),
    /// What is left of a chunk; none is begun yet where there is none.
    Chunks(Option<u64>),
    /// With the connection.
    Close,
    Ended,
}

struct Head {
    status: u16,
    headers: Headers,
    how: How,
    /// Came with it.
    rest: Vec<u8>,
}

fn read_head(stream: &mut UnixStream) -> io::Result<Head> {
    let mut bytes = Vec::new();
    let mut buffer = [0u8; 8 << 10];
    loop {
        let read = match stream.read(&mut buffer) {
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        bytes.extend_from_slice(&buffer[..read]);
        if let Some((status, headers, how, length)) = parse_head(&bytes)? {
            return Ok(Head { status, headers, how, rest: bytes.split_off(length) });
        }
        if bytes.len() > LONGEST_HEAD {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the head of the answer is too long"));
        }
    }
}

fn parse_head(bytes: &[u8]) -> io::Result<Option<(u16, Headers, How, usize)>> {
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut response = httparse::Response::new(&mut headers);
    let invalid = |error: httparse::Error| io::Error::new(io::ErrorKind::InvalidData, error.to_string());
    let httparse::Status::Complete(length) = response.parse(bytes).map_err(invalid)? else { return Ok(None) };
    let status = response.code.unwrap_or_default();
    let one = |header: &httparse::Header<'_>| {
        (header.name.to_ascii_lowercase(), String::from_utf8_lossy(header.value).trim().to_owned())
    };
    let all: Headers = response.headers.iter().map(one).collect();
    let header = |name: &str| all.iter().find(|(known, _)| known == name).map(|(_, value)| value.to_ascii_lowercase());
    let how = match (header("transfer-encoding"), header("content-length")) {
        _ if matches!(status, 101 | 204 | 304) => How::Ended,
        (Some(coding), _) if coding.ends_with("chunked") => How::Chunks(None),
        (_, Some(length)) => How::Length(
            length.parse().map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "a length that is no number"))?,
        ),
        _ => How::Close,
    };
    Ok(Some((status, all, how, length)))
}

/// Reads a body to its end, and no further.
pub struct BodyReader {
    stream: UnixStream,
    how: How,
    /// Came with the head; `at`: how much of it is taken.
    rest: Vec<u8>,
    at: usize,
}

impl BodyReader {
    fn some(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.at < self.rest.len() {
            let count = into.len().min(self.rest.len() - self.at);
            into[..count].copy_from_slice(&self.rest[self.at..self.at + count]);
            self.at += count;
            return Ok(count);
        }
        self.stream.read(into)
    }

    fn byte(&mut self) -> io::Result<u8> {
        let mut one = [0u8];
        match self.some(&mut one)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(one[0]),
        }
    }

    /// The line before a chunk, which says how long it is.
    fn next_chunk(&mut self, first: bool) -> io::Result<u64> {
        if !first {
            // The end of the line before.
            self.byte()?;
            self.byte()?;
        }
        let mut line = Vec::new();
        loop {
            match self.byte()? {
                b'\n' => break,
                byte if line.len() < 64 => line.push(byte),
                _ => return Err(io::ErrorKind::InvalidData.into()),
            }
        }
        let line = String::from_utf8_lossy(&line).into_owned();
        let number = line.split(';').next().unwrap_or_default().trim();
        u64::from_str_radix(number, 16).map_err(|_| io::ErrorKind::InvalidData.into())
    }
}

impl Read for BodyReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if into.is_empty() {
            return Ok(0);
        }
        let left = match self.how {
            How::Ended => return Ok(0),
            How::Close => return self.some(into),
            How::Length(left) => left,
            How::Chunks(Some(left)) if left > 0 => left,
            How::Chunks(before) => match self.next_chunk(before.is_none())? {
                0 => {
                    self.how = How::Ended;
                    return Ok(0);
                }
                length => length,
            },
        };
        if left == 0 {
            self.how = How::Ended;
            return Ok(0);
        }
        let most = usize::try_from(left).unwrap_or(usize::MAX).min(into.len());
        let read = self.some(&mut into[..most])?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let left = left - read as u64;
        self.how = match self.how {
            How::Length(_) => How::Length(left),
            _ => How::Chunks(Some(left)),
        };
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(text: &[u8]) -> io::Result<(u16, Vec<u8>)> {
        let (mut here, there) = UnixStream::pair()?;
        here.write_all(text)?;
        drop(here);
        let mut stream = there;
        let Head { status, headers, how, rest } = read_head(&mut stream)?;
        Answer { status, headers, reader: BodyReader { stream, how, rest, at: 0 } }.whole()
    }

    #[test]
    fn a_body_ends_where_its_head_says() -> io::Result<()> {
        let sized = body(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcdef")?;
        assert_eq!(sized, (200, b"abc".to_vec()));
        let chunked =
            body(b"HTTP/1.1 404 No\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n")?;
        assert_eq!(chunked, (404, b"abcde".to_vec()));
        assert_eq!(body(b"HTTP/1.1 200 OK\r\n\r\nall of it")?, (200, b"all of it".to_vec()));
        assert_eq!(body(b"HTTP/1.1 204 No Content\r\n\r\n")?, (204, Vec::new()));
        Ok(())
    }

    #[test]
    fn a_body_that_is_cut_off_is_an_error() {
        assert!(body(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc").is_err());
        assert!(body(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabc").is_err());
        assert!(body(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n").is_err());
        assert!(body(b"HTTP/1.1 200").is_err());
    }
}
