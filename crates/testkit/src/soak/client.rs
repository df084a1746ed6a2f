//! One request a connection.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

use super::house::House;

pub struct Client {
    stream: TcpStream,
    token: String,
}

impl Client {
    pub fn connect(house: &House) -> io::Result<Client> {
        let stream = TcpStream::connect(("127.0.0.1", house.port()))?;
        // However slow the machine is, an answer takes less.
        stream.set_read_timeout(Some(Duration::from_secs(120)))?;
        Ok(Client { stream, token: house.token().to_owned() })
    }

    pub fn send(&mut self, method: &str, path: &str, body: &Value) -> io::Result<()> {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            self.token,
            body.len()
        );
        self.stream.write_all(format!("{head}{body}").as_bytes())
    }

    /// Its status, and all that follows the empty line.
    pub fn receive(mut self) -> io::Result<(u16, String)> {
        let mut bytes = Vec::new();
        self.stream.read_to_end(&mut bytes)?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let cut = || io::Error::from(io::ErrorKind::UnexpectedEof);
        let (head, body) = text.split_once("\r\n\r\n").ok_or_else(cut)?;
        let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).ok_or_else(cut)?;
        let length = head.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
        });
        // One that was killed while it spoke has not answered.
        match length {
            Some(length) if body.len() < length => Err(cut()),
            _ => Ok((status, body.to_owned())),
        }
    }
}
