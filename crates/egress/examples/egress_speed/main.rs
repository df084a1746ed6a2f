//! For `cargo xtask bench egress`: a server, and a client that runs inside and outside and says what it measured. Both do as
//! little as they can, so that what lies between them is what is measured.

#![allow(clippy::print_stdout, clippy::print_stderr)]

mod client;
mod server;
mod way;

use std::process::ExitCode;

/// Of the server, in its certificate.
pub const NAMES: [&str; 3] = ["server.bench.test", "localhost", "127.0.0.1"];

const USAGE: &str = "\
egress_speed serve FOLDER
egress_speed tcp|tls HOST PORT TRUST latency CONNECTIONS REQUESTS | bulk BYTES ROUNDS | crowd CONNECTIONS BYTES | hold CONNECTIONS
egress_speed name HOST COUNT

TRUST is a file of certificates, or `env`: the one that SSL_CERT_FILE names. HTTP_PROXY names a proxy to go through.";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["serve", folder] => server::serve(folder.as_ref()),
        ["name", host, count] => count.parse().map_err(Into::into).and_then(|count| client::names(host, count)),
        [lane @ ("tcp" | "tls"), host, port, trust, what @ ..] => {
            way::Way::new(lane, host, port, trust).and_then(|way| client::measure(way, what))
        }
        _ => Err(USAGE.into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("egress_speed: {error}");
            ExitCode::FAILURE
        }
    }
}

pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;
