//! TLS that says one thing and means another: names that are hidden, and several hosts over one connection.

use std::process::Command;

use belljar_testkit::Who;
use belljar_testkit::twice::Check;

use crate::attacks::{in_the_open, same};
use crate::needing::{Needing, PYTHON, python};
use crate::served::Served;
use crate::world::{NAME, OTHER, World};

pub const ALL: &[(&str, Check)] = &[("a_hello_that_hides_its_name_goes_nowhere", hidden)];

pub const NEEDING: &[Needing] = &[("a_connection_to_one_host_carries_no_request_to_another", &[PYTHON], coalesced)];

/// A hello as OpenSSL says it, with and without an extension that hides the real one. Prints what came back: a handshake
/// begins with 16.
const HELLO: &str = r#"
import socket, ssl, struct
def hello(extra):
    context = ssl.create_default_context()
    ours, theirs = ssl.MemoryBIO(), ssl.MemoryBIO()
    talk = context.wrap_bio(ours, theirs, server_hostname="NAME")
    try:
        talk.do_handshake()
    except ssl.SSLWantReadError:
        pass
    record = theirs.read()
    body = record[9:]
    at = 34
    at += 1 + body[at]
    at += 2 + struct.unpack(">H", body[at:at + 2])[0]
    at += 1 + body[at]
    extensions = body[at + 2:] + extra
    body = body[:at] + struct.pack(">H", len(extensions)) + extensions
    message = b"\x01" + struct.pack(">I", len(body))[1:] + body
    return b"\x16\x03\x01" + struct.pack(">H", len(message)) + message
def extension(kind, data):
    return struct.pack(">HH", kind, len(data)) + data
outer = b"\0" + struct.pack(">HH", 1, 1) + b"\x07" + struct.pack(">H", 32) + bytes(32) + struct.pack(">H", 64) + bytes(64)
for extra in (b"", extension(0xfe0d, outer), extension(0xffce, outer), extension(0xfe0d, b"")):
    s = socket.create_connection(("NAME", PORT), 10)
    s.settimeout(10)
    s.sendall(hello(extra))
    try:
        print(s.recv(1).hex() or "closed")
    except OSError as error:
        print("reset")
"#;

fn hidden(who: Who) -> Result<(), String> {
    let world = World::of(who)?;
    let script = HELLO.replace("NAME", NAME).replace("PORT", &world.https.to_string());
    let said = in_the_open(&world, &[], &["/usr/bin/python3", "-c", &script])?;
    let out = String::from_utf8_lossy(&said.out).into_owned();
    let lines: Vec<&str> = out.lines().collect();
    same(lines.first(), Some(&"16"), &said)?;
    same(lines.len() == 4 && lines[1..].iter().all(|line| *line != "16"), true, &said)?;
    let net = world.desk.expect(&["net", "--denied"], 0, "")?;
    same(String::from_utf8_lossy(&net.out).contains("encrypted client hello hides the name"), true, &net)
}

/// Speaks only HTTP/2, for whatever name; tells its port, and notes who was asked for what in FOLDER/streams.
const SERVER: &str = r#"
import socket, ssl, sys, threading
import h2.connection, h2.config, h2.events
folder = sys.argv[1]
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(folder + "/server.pem", folder + "/server.key")
context.set_alpn_protocols(["h2"])
def serve(raw):
    s = context.wrap_socket(raw, server_side=True)
    talk = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
    talk.initiate_connection()
    s.sendall(talk.data_to_send())
    while data := s.recv(65536):
        for event in talk.receive_data(data):
            if isinstance(event, h2.events.RequestReceived):
                asked = {name.decode(): value.decode() for name, value in event.headers}
                with open(folder + "/streams", "a") as file:
                    file.write(asked.get(":authority", "none").split(":")[0] + " " + asked.get("host", "none") + "\n")
                talk.send_headers(event.stream_id, [(":status", "200"), ("content-length", "2")])
                talk.send_data(event.stream_id, b"ok", end_stream=True)
        s.sendall(talk.data_to_send())
def quietly(raw):
    try:
        serve(raw)
    except Exception:
        pass
s = socket.create_server(("127.0.0.1", 0))
print(s.getsockname()[1], flush=True)
while True:
    raw, _ = s.accept()
    threading.Thread(target=quietly, args=(raw,), daemon=True).start()
"#;

/// On one connection to NAME: requests to it, and to others. Prints the status of each.
const CLIENT: &str = r#"
import os, socket, ssl
import h2.connection, h2.config, h2.events
context = ssl.create_default_context(cafile=os.environ["SSL_CERT_FILE"])
context.set_alpn_protocols(["h2"])
s = context.wrap_socket(socket.create_connection(("NAME", PORT), 20), server_hostname="NAME")
s.settimeout(20)
talk = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True, validate_outbound_headers=False))
talk.initiate_connection()
def ask(authority, *more):
    stream = talk.get_next_available_stream_id()
    head = [(":method", "GET"), (":scheme", "https"), (":path", "/"), (":authority", authority), *more]
    talk.send_headers(stream, head, end_stream=True)
    s.sendall(talk.data_to_send())
    status = "none"
    while data := s.recv(65536):
        for event in talk.receive_data(data):
            if isinstance(event, h2.events.ResponseReceived):
                status = dict(event.headers).get(b":status", b"none").decode()
            if isinstance(event, (h2.events.StreamEnded, h2.events.StreamReset)) and event.stream_id == stream:
                s.sendall(talk.data_to_send())
                return status
        s.sendall(talk.data_to_send())
    return "closed"
print(ask("NAME:PORT"), ask("OTHER:PORT"), ask("NAME:PORT", ("host", "OTHER:PORT")), ask("OTHER"), ask("NAME:PORT"))
"#;

fn coalesced(who: Who) -> Result<(), String> {
    let world = World::of(who)?;
    let served = Served::telling(Command::new(python()).args(["-c", SERVER]).arg(&world.folder))?;
    world.reads_at("download", served.port, "1ms")?;
    let port = served.port.to_string();
    let script = CLIENT.replace("NAME", NAME).replace("OTHER", OTHER).replace("PORT", &port);
    let said = world.run(&[], &[&python(), "-c", &script])?;
    let out = String::from_utf8_lossy(&said.out).into_owned();
    let streams = std::fs::read_to_string(world.folder.join("streams")).unwrap_or_default();
    let codes: Vec<&str> = out.split_whitespace().collect();
    same((codes.first(), codes.last()), (Some(&"200"), Some(&"200")), (&said, &streams))?;
    same(codes.get(1..4).is_some_and(|bad| !bad.contains(&"200")), true, (&said, &streams))?;
    same(streams, format!("{NAME} none\n").repeat(2), &said)
}
