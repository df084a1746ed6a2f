//! Ways in: TLS, and sockets that somebody else has opened.

use std::process::Command;

use belljar_testkit::Who;
use belljar_testkit::twice::Check;

use crate::client::{self, Address};
use crate::desk::Desk;
use crate::server::{begin, begin_as};
use crate::{holds, told};

pub const ALL: &[(&str, Check)] = &[
    ("with_a_certificate_it_speaks_tls_and_nothing_else", tls),
    ("a_socket_that_was_handed_over_is_served_and_stays", handed_over),
];

struct Served(std::process::Child);

impl Drop for Served {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

fn openssl(words: &[&str]) -> Result<(), String> {
    let said = told(Command::new("openssl").args(words).output())?;
    holds(said.status.success(), String::from_utf8_lossy(&said.stderr))
}

/// What a client with the certificate of this file as its only authority is answered.
const ASKS: &str = "\
import http.client, ssl, sys
port, authority, name, token = int(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4]
context = ssl.create_default_context(cafile=authority)
class Named(http.client.HTTPSConnection):
    def connect(self):
        import socket
        self.sock = context.wrap_socket(socket.create_connection(('127.0.0.1', port)), server_hostname=name)
try:
    asks = Named('localhost', port, context=context)
    asks.request('POST', '/v1/run', body='{\"command\": [\"echo\", \"sealed\"]}',
                 headers={'Authorization': 'Bearer ' + token, 'Content-Type': 'application/json'})
    answer = asks.getresponse()
    print(asks.sock.version() if asks.sock else 'TLS', answer.status, answer.read().decode())
except ssl.SSLError as error:
    print('not trusted', error)
";

fn asks(port: u16, authority: &str, name: &str, token: &str) -> Result<String, String> {
    let said =
        told(Command::new("/usr/bin/python3").args(["-c", ASKS, &port.to_string(), authority, name, token]).output())?;
    Ok(format!("{}{}", String::from_utf8_lossy(&said.stdout), String::from_utf8_lossy(&said.stderr)))
}

fn tls(who: Who) -> Result<(), String> {
    let desk = Desk::of(who)?;
    let file = |name: &str| desk.home.join(name).display().to_string();
    let (certificate, key) = (file("cert.pem"), file("key.pem"));
    openssl(&[
        "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
        "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", &key, "-out", &certificate,
    ])?;
    let other = file("other.pem");
    openssl(&[
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-days",
        "2",
        "-subj",
        "/CN=localhost",
        "-addext",
        "subjectAltName=DNS:localhost",
        "-keyout",
        &file("other.key"),
        "-out",
        &other,
    ])?;
    for path in [&certificate, &key] {
        told(desk.project.give(path.as_ref()))?;
    }
    let with = |certificate: &str, key: &str| -> Vec<String> {
        ["serve", "--listen", "127.0.0.1:0", "--tls-cert", certificate, "--tls-key", key].map(str::to_owned).into()
    };
    let words = with(&certificate, &key);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (child, address) = begin(&desk, &words)?;
    let _served = Served(child);
    let Address::Sealed(port) = address else { return Err(format!("it says what it speaks: {address:?}")) };
    let token = told(std::fs::read_to_string(desk.project.state.join("belljar-service/token")))?;
    let answered = asks(port, &certificate, "localhost", token.trim())?;
    holds(answered.starts_with("TLSv1.3 200") && answered.contains("sealed"), answered)?;
    // Whoever trusts somebody else, or means another name, is not deceived.
    let refused = asks(port, &other, "localhost", token.trim())?;
    holds(refused.starts_with("not trusted"), refused)?;
    let refused = asks(port, &certificate, "example.org", token.trim())?;
    holds(refused.starts_with("not trusted"), refused)?;
    // In the clear there is no answer.
    let plain = client::send(&Address::Port(port), "GET", "/v1/health", &[], b"").and_then(client::receive);
    holds(plain.is_err(), format!("{plain:?}"))?;
    // With a certificate it may be served beyond loopback: this is all that the check is about.
    let beyond: Vec<String> =
        with(&certificate, &key).into_iter().map(|word| word.replace("127.0.0.1:0", "0.0.0.0:0")).collect();
    drop(_served);
    let beyond: Vec<&str> = beyond.iter().map(String::as_str).collect();
    let mut command = desk.project.command(&beyond);
    let mut child = told(command.stderr(std::process::Stdio::piped()).spawn())?;
    let mut said = std::io::BufReader::new(child.stderr.take().ok_or("it has an error output")?);
    let served = Served(child);
    let mut line = String::new();
    while !line.contains("listening at") {
        line.clear();
        holds(told(std::io::BufRead::read_line(&mut said, &mut line))? > 0, "it listens")?;
    }
    holds(line.contains("https://0.0.0.0:"), &line)?;
    drop(served);
    // A key that is not the certificate's, and what is none.
    let wrong = with(&certificate, &file("other.key"));
    told(desk.project.give(file("other.key").as_ref()))?;
    desk.expect(&wrong.iter().map(String::as_str).collect::<Vec<_>>(), 125, "for TLS")?;
    let wrong = with(&key, &key);
    desk.expect(&wrong.iter().map(String::as_str).collect::<Vec<_>>(), 125, "for TLS").map(drop)
}

/// As systemd does it: opens sockets, leaves them at 3 and after, and becomes the program.
const HANDS_OVER: &str = "\
import os, socket, sys
kind, count = sys.argv[1], int(sys.argv[2])
all = []
for number in range(count):
    if kind == 'tcp':
        opened = socket.socket()
        opened.bind(('127.0.0.1', 0))
    else:
        opened = socket.socket(socket.AF_UNIX)
        opened.bind(kind)
    opened.listen(64)
    all.append(opened)
free = [os.dup(opened.fileno()) for opened in all]
for number, opened in enumerate(free):
    high = os.dup2(opened, 60 + number)
for number in range(count):
    os.dup2(60 + number, 3 + number, inheritable=True)
os.closerange(3 + count, 80)
os.environ['LISTEN_FDS'] = str(count)
os.environ['LISTEN_PID'] = str(os.getpid() + int(sys.argv[3]))
os.execvp(sys.argv[4], sys.argv[4:])
";

/// A small parent that becomes `belljar serve`, as the desk's owner.
fn parent(desk: &Desk, kind: &str, count: usize, other: usize) -> Command {
    let served = desk.project.command(["serve", "--listen", "127.0.0.1:1"]);
    let mut command = Command::new("/usr/bin/python3");
    command.args(["-c", HANDS_OVER, kind, &count.to_string(), &other.to_string()]);
    command.arg(served.get_program()).args(served.get_args());
    command.env_clear().envs(served.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.current_dir(&desk.project.work).stdin(std::process::Stdio::null());
    command
}

fn handed_over(who: Who) -> Result<(), String> {
    let desk = Desk::of(who)?;
    let socket = desk.home.join("handed");
    for kind in ["tcp", &socket.display().to_string()] {
        let (child, address, log) = begin_as(parent(&desk, kind, 1, 0))?;
        let mut served = Served(child);
        match &address {
            Address::Port(port) => holds(*port != 1, "not where its words say")?,
            Address::Socket(path) => holds(*path == socket, path.display())?,
            other => return Err(format!("{other:?}")),
        }
        let token = told(std::fs::read_to_string(desk.project.state.join("belljar-service/token")))?;
        let bearer = format!("Bearer {}", token.trim());
        let headers = [("Authorization", bearer.as_str()), ("Content-Type", "application/json")];
        let body = br#"{"command": ["sh", "-c", "ls -l /proc/self/fd; env"]}"#;
        let answer = client::receive(client::send(&address, "POST", "/v1/run", &headers, body)?)?.expect(200)?;
        let said = answer.json()?["result"]["stdout"]["text"].as_str().unwrap_or_default().to_owned();
        holds(!said.contains("socket:") && !said.contains("LISTEN_"), format!("a guest has none of it: {said}"))?;
        // SAFETY: takes two integers; the child was not waited for, so its number is still its own.
        holds(unsafe { libc::kill(served.0.id() as i32, libc::SIGTERM) } == 0, "it can be signalled")?;
        let status = told(served.0.wait())?;
        holds(status.code() == Some(0), format!("{status:?} {}", log.lock().expect("a log")))?;
        holds(kind == "tcp" || socket.exists(), "whoever opened it removes it")?;
        if kind != "tcp" {
            told(std::fs::remove_file(&socket))?;
        }
    }
    // More than one is a mistake of whoever wrote the unit.
    let mut two = parent(&desk, "tcp", 2, 0);
    crate::desk::expected(&mut two, 125, "systemd handed over 2 sockets")?;
    // Meant for another process, they are nobody's business: then its words hold, and port 1 is not for an ordinary user.
    let mut others = parent(&desk, "tcp", 1, 1);
    others.stderr(std::process::Stdio::piped());
    match who {
        Who::Root => {
            let (child, address, _) = begin_as(others)?;
            let _served = Served(child);
            holds(matches!(address, Address::Port(1)), format!("{address:?}"))
        }
        Who::Ordinary => crate::desk::expected(&mut others, 125, "cannot listen at").map(drop),
    }
}
