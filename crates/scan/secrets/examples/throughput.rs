//! How fast streams are redacted and cleaned: `cargo run --release -p belljar-secrets --example throughput`.

use std::time::{Duration, Instant};

use secrets::terminal::Cleaner;
use secrets::{Formats, Redactor, Values};

const SIZE: usize = 64 << 20;
/// As much as a pipe gives at once.
const PIECE: usize = 64 << 10;
const ROUNDS: usize = 3;

#[allow(clippy::print_stdout)]
fn main() {
    let text = log();
    for count in [0, 10, 100] {
        for formats in [None, Some(Formats::built_in())] {
            let mut values = Values::new();
            let mut chance = Chance(count as u64 + 1);
            for number in 0..count {
                let value: Vec<u8> = (0..32)
                    .map(|_| chance.one_of(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/+"))
                    .collect();
                assert_eq!(values.add(&format!("NAME_{number}"), &value), secrets::Added::Kept);
            }
            let began = Instant::now();
            let mut redactor = Redactor::new(&values, formats.as_ref());
            let made = began.elapsed();
            let mut out = Vec::with_capacity(PIECE * 2);
            let mut total = 0;
            let speed = best(|| {
                let mut bytes = 0;
                for piece in text.chunks(PIECE) {
                    out.clear();
                    redactor.push(piece, &mut out);
                    bytes += out.len();
                }
                out.clear();
                total = redactor.finish(&mut out).total();
                bytes + out.len()
            });
            let with = if formats.is_some() { "all formats" } else { "no formats" };
            println!("redact  {count:>3} values, {with:<11} {speed:>6.0} MB/s  made in {made:?}, {total} redacted");
        }
    }
    let mut out = Vec::with_capacity(PIECE * 2);
    let speed = best(|| {
        let mut cleaner = Cleaner::new();
        let mut bytes = 0;
        for piece in text.chunks(PIECE) {
            out.clear();
            cleaner.push(piece, &mut out);
            bytes += out.len();
        }
        bytes
    });
    println!("clean                            {speed:>6.0} MB/s");
}

fn best(mut run: impl FnMut() -> usize) -> f64 {
    let mut best = f64::MAX;
    for _ in 0..ROUNDS {
        let began = on_a_core();
        std::hint::black_box(run());
        best = best.min((on_a_core() - began).as_secs_f64());
    }
    SIZE as f64 / best / 1e6
}

/// How long this thread ran, whoever else wants the cores.
fn on_a_core() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = text.split(' ').next().and_then(|number| number.parse().ok());
    nanoseconds.map_or_else(|| Duration::from_secs(1), Duration::from_nanos)
}

/// What cargo, pytest, npm, gcc and servers print.
fn log() -> Vec<u8> {
    let mut chance = Chance(7);
    let mut text = Vec::with_capacity(SIZE + 512);
    let crates = [
        "serde", "tokio", "regex-automata", "aho-corasick", "proc-macro2", "windows-sys", "task-local", "password-hash",
    ];
    let files = ["src/main.rs", "src/net/socket.c", "tests/test_api.py", "lib/token.js", "include/linux/disk-io.h"];
    while text.len() < SIZE {
        let number = chance.next() % 100_000;
        let name = crates[(chance.next() % 8) as usize];
        let file = files[(chance.next() % 5) as usize];
        let line = match chance.next() % 14 {
            0 => format!("   Compiling {name} v1.{}.{}\n", number % 90, number % 17),
            1 => format!("  Downloaded {name} v0.{} (registry `crates-io`)\n", number % 90),
            2 => format!("{file}:{number}:12: warning: unused variable 'request' [-Wunused-variable]\n"),
            3 => format!(
                "tests/test_users.py::test_login_{number} PASSED                                   [ {}%]\n",
                number % 100
            ),
            4 => format!(
                "npm http fetch GET 200 https://registry.npmjs.org/{name}/-/{name}-{number}.tgz {}ms (cache miss)\n",
                number % 900
            ),
            5 => format!(
                "2026-11-16T10:{:02}:{:02}.123Z INFO  server::http request id={:032x} path=/api/v1/users/{number} status=200\n",
                number % 60,
                number % 59,
                u128::from(chance.next()) * 7919
            ),
            6 => format!(
                "gcc -O2 -g -Wall -Wextra -Iinclude -DVERSION=\\\"1.{number}\\\" -c {file} -o build/{number}.o\n"
            ),
            7 => format!("      \"integrity\": \"sha512-{:x}{:x}==\",\n", chance.next(), chance.next()),
            8 => format!("   {number}:     0x{:012x} - core::ops::function::FnOnce::call_once\n", chance.next()),
            9 => format!(
                "  File \"/usr/lib/python3.11/site-packages/{name}/session.py\", line {number}, in request\n    return self.send(prepared, **kwargs)\n"
            ),
            10 => format!(
                "commit {:040x}\nAuthor: A Developer <developer@example.org>\n",
                u128::from(chance.next()) * 104_729
            ),
            11 => format!(
                "[{}/1000] Building CXX object lib/CMakeFiles/{name}.dir/Transforms/Pass{number}.cpp.o\n",
                number % 1000
            ),
            12 => format!("test net::tests::a_token_is_read_back_{number} ... ok\n"),
            _ => format!("added {number} packages, and audited {} packages in {}s\n", number + 1, number % 60),
        };
        text.extend_from_slice(line.as_bytes());
    }
    text.truncate(SIZE);
    text
}

struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 24
    }

    fn one_of(&mut self, letters: &[u8]) -> u8 {
        letters[(self.next() % letters.len() as u64) as usize]
    }
}
