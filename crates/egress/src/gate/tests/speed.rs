//! How fast, beside a direct connection. Run by hand: `cargo test --release -p belljar-egress -- --ignored --nocapture speed`.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use hickory_proto::rr::RecordType;

use super::stage::{PUBLIC, Rules, Setup, Stage, at, echo, heard, server};

const BULK: usize = 2 << 30;

fn stage(server: SocketAddr) -> Stage {
    let stage = Setup {
        rules: Rules { knows: vec!["a.example"], opens: vec!["a.example:*"], ..Rules::default() },
        destinations: vec![at("198.18.1.1:7777")],
        lands: Some(server),
        resolves: vec![PUBLIC],
        ..Setup::default()
    }
    .opened();
    stage.asks("a.example.", RecordType::A);
    stage
}

#[test]
#[ignore = "measures; run it in release"]
#[allow(clippy::print_stderr)]
fn bulk_passes_nearly_as_fast_as_without_a_gate() {
    let source = server(|mut stream| {
        let chunk = vec![7; 256 << 10];
        let mut left = BULK;
        while left > 0 {
            let length = chunk.len().min(left);
            if stream.write_all(&chunk[..length]).is_err() {
                return;
            }
            left -= length;
        }
    });
    let drain = |mut stream: TcpStream| {
        let began = Instant::now();
        let mut room = vec![0; 256 << 10];
        let mut total = 0;
        loop {
            match stream.read(&mut room).expect("bytes") {
                0 => break,
                length => total += length,
            }
        }
        assert_eq!(total, BULK);
        BULK as f64 / began.elapsed().as_secs_f64() / 1e9
    };
    let stage = stage(source);
    let (mut direct, mut gated) = (0f64, 0f64);
    for _ in 0..3 {
        direct = direct.max(drain(TcpStream::connect(source).expect("a connection")));
        gated = gated.max(drain(stage.connect(0)));
    }
    stage.ends();
    eprintln!("direct {direct:.2} GB/s, through the gate {gated:.2} GB/s: {:.0} %", gated / direct * 100.0);
}

#[test]
#[ignore = "measures; run it in release"]
#[allow(clippy::print_stderr)]
fn a_new_connection_costs_little() {
    let server = echo();
    let stage = stage(server);
    let once = |stream: TcpStream| {
        let mut stream = stream;
        stream.write_all(b"x").expect("sent");
        stream.shutdown(Shutdown::Write).expect("half closed");
        assert_eq!(heard(stream), Some(b"x".to_vec()));
    };
    let middle = |mut all: Vec<Duration>| {
        all.sort();
        all[all.len() / 2]
    };
    let measured = |connect: &dyn Fn() -> TcpStream| -> Vec<Duration> {
        (0..300)
            .map(|_| {
                let began = Instant::now();
                once(connect());
                began.elapsed()
            })
            .collect()
    };
    let direct = middle(measured(&|| TcpStream::connect(server).expect("a connection")));
    let gated = middle(measured(&|| stage.connect(0)));
    stage.ends();
    eprintln!("a connection with one byte there and back: direct {direct:?}, through the gate {gated:?}");
}
