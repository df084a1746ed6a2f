//! Places for tests: a real server with TLS in Python, and one that does exactly what a test says.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use belljar_testkit::Who;
use serde_json::Value;

use crate::desk::Desk;
use crate::{beside, told};

/// `sink.py`, and what it was told.
pub struct Sink {
    child: Child,
    pub port: u16,
    folder: PathBuf,
}

impl Sink {
    /// With a certificate, if `names` says for whom (`IP:127.0.0.1`); the authority's is in `ca.pem` beside.
    pub fn start(folder: &Path, names: Option<&str>) -> Result<Sink, String> {
        Sink::with(folder, names, &[])
    }

    /// Takes one stream under TLS, as it comes.
    pub fn of_a_stream(folder: &Path, names: &str) -> Result<Sink, String> {
        Sink::with(folder, Some(names), &["raw"])
    }

    fn with(folder: &Path, names: Option<&str>, more: &[&str]) -> Result<Sink, String> {
        told(fs::create_dir_all(folder))?;
        let mut command = Command::new("/usr/bin/python3");
        command.arg(beside("sink.py")).arg(folder);
        if let Some(names) = names {
            certify(folder, names)?;
            command.arg(folder.join("server.pem")).arg(folder.join("server.key")).args(more);
        }
        let mut child = told(command.stdout(Stdio::piped()).stdin(Stdio::null()).spawn())?;
        let mut line = String::new();
        let stdout = child.stdout.take().ok_or("it has an output")?;
        told(BufReader::new(stdout).read_line(&mut line))?;
        let port = told(line.trim().parse())?;
        Ok(Sink { child, port, folder: folder.to_owned() })
    }

    pub fn authority(&self) -> String {
        self.folder.join("ca.pem").to_string_lossy().into_owned()
    }

    /// All of the stream, once it has ended.
    pub fn stream(&mut self) -> Result<Vec<u8>, String> {
        told(self.child.wait())?;
        told(fs::read(self.folder.join("raw")))
    }

    pub fn posts(&self) -> Result<Vec<Value>, String> {
        let text = fs::read_to_string(self.folder.join("posts")).unwrap_or_default();
        text.lines().map(|line| told(serde_json::from_str(line))).collect()
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        self.child.kill().and_then(|()| self.child.wait().map(drop)).ok();
    }
}

/// An authority, and a server's certificate of it.
fn certify(folder: &Path, names: &str) -> Result<(), String> {
    let openssl = |words: &[&str]| -> Result<(), String> {
        let common =
            ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"];
        let output = told(Command::new("openssl").current_dir(folder).args(common).args(words).output())?;
        match output.status.success() {
            true => Ok(()),
            false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        }
    };
    openssl(&["-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=belljar test authority"])?;
    let names = format!("subjectAltName={names}");
    openssl(&[
        "-keyout", "server.key", "-out", "server.pem", "-subj", "/CN=belljar test", "-CA", "ca.pem", "-CAkey",
        "ca.key", "-addext", &names, "-addext", "basicConstraints=critical,CA:FALSE",
    ])?;
    // The ordinary user reads it too.
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    told(fs::set_permissions(folder.join("ca.pem"), open))
}

/// Reads a whole post; nothing, if there is none.
pub fn post(stream: &mut TcpStream) -> Option<String> {
    let mut reader = BufReader::new(stream);
    let (mut length, mut line) = (0, String::new());
    loop {
        line.clear();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().ok()?;
        }
        if line == "\r\n" {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    String::from_utf8(body).ok()
}

pub fn answer(stream: &mut TcpStream, status: u16) -> Result<(), String> {
    told(write!(stream, "HTTP/1.1 {status} X\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"))
}

pub fn listen() -> Result<(TcpListener, String), String> {
    let listener = told(TcpListener::bind("127.0.0.1:0"))?;
    let at = told(listener.local_addr())?;
    Ok((listener, at.to_string()))
}

/// Numbers of the entries in lines of ndjson.
pub fn numbers(text: &str) -> Vec<u64> {
    let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    lines.filter_map(|entry| entry["n"].as_u64()).collect()
}

/// A desk with so many runs on its record.
pub fn desk_with_runs(who: Who, count: usize) -> Result<Desk, String> {
    let desk = Desk::of(who)?;
    for _ in 0..count {
        desk.expect(&["run", "-q", "--workspace-mode", "readonly", "--", "true"], 0, "")?;
    }
    Ok(desk)
}
