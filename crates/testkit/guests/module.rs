//! What the tests of modules run: one program for a machine, for WASI preview 1 and for components. The first word says
//! what it does; it ends with 0 if it could, and with 3 if it was kept from it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::process::exit;
use std::time::{Duration, Instant, SystemTime};

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match attempt(&words) {
        Ok(()) => {}
        Err(error) => {
            eprintln!("kept from it: {error}");
            exit(3);
        }
    }
}

fn attempt(words: &[&str]) -> io::Result<()> {
    match words {
        ["say", rest @ ..] => {
            println!("words {rest:?}");
            for (name, value) in std::env::vars() {
                println!("variable {name}={value}");
            }
            let mut input = String::new();
            io::stdin().read_to_string(&mut input)?;
            println!("input {input:?}");
            eprintln!("and an error");
            Ok(())
        }
        ["exit", code] => exit(code.parse().unwrap_or(99)),
        ["trap"] => std::process::abort(),
        ["read", path] => fs::read_to_string(path).map(|text| print!("{text}")),
        ["list", path] => {
            let mut names: Vec<String> =
                fs::read_dir(path)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect::<io::Result<_>>()?;
            names.sort();
            println!("{}", names.join(" "));
            Ok(())
        }
        ["write", path, text] => fs::write(path, text),
        ["append", path, text] => OpenOptions::new().append(true).open(path)?.write_all(text.as_bytes()),
        ["truncate", path] => OpenOptions::new().write(true).open(path)?.set_len(0),
        ["truncate-by-opening", path] => OpenOptions::new().write(true).truncate(true).open(path).map(drop),
        ["make-folder", path] => fs::create_dir(path),
        ["remove", path] => fs::remove_file(path),
        ["remove-folder", path] => fs::remove_dir(path),
        ["rename", from, to] => fs::rename(from, to),
        ["link", from, to] => fs::hard_link(from, to),
        ["touch", path] => {
            let times = fs::FileTimes::new().set_modified(SystemTime::UNIX_EPOCH);
            // Through a descriptor for reading: the owner may do so on the host.
            File::open(path)?.set_times(times)
        }
        ["connect", address] => {
            let mut stream = TcpStream::connect(address)?;
            stream.write_all(b"GET / HTTP/1.0\r\nHost: test\r\n\r\n")?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer)?;
            println!("{answer}");
            Ok(())
        }
        ["spin"] => loop {
            std::hint::black_box(Instant::now());
        },
        ["compute"] => {
            let mut number = 1u64;
            loop {
                number = std::hint::black_box(number.wrapping_mul(3));
            }
        }
        ["sleep", seconds] => {
            std::thread::sleep(Duration::from_secs(seconds.parse().unwrap_or(1)));
            Ok(())
        }
        ["recurse"] => {
            println!("{}", recurse(1));
            Ok(())
        }
        ["take", mebibytes] => {
            let count: usize = mebibytes.parse().unwrap_or(1);
            let mut held: Vec<Vec<u8>> = Vec::new();
            for _ in 0..count {
                let mut part: Vec<u8> = Vec::new();
                part.try_reserve_exact(1 << 20).map_err(|_| io::Error::other("no more memory"))?;
                part.resize(1 << 20, 7);
                held.push(part);
            }
            println!("{}", std::hint::black_box(&held).len());
            Ok(())
        }
        // By the clock: what is held back by a limit takes no shorter.
        ["compute-for", seconds] => {
            let until = Instant::now() + Duration::from_secs(seconds.parse().unwrap_or(1));
            let mut number = 1u64;
            while Instant::now() < until {
                for _ in 0..100_000 {
                    number = std::hint::black_box(number.wrapping_mul(3));
                }
            }
            Ok(())
        }
        ["say-much", mebibytes] => {
            for _ in 0..mebibytes.parse().unwrap_or(1) * 16 {
                io::stdout().write_all(&[b'x'; 65536])?;
            }
            Ok(())
        }
        ["flood"] => loop {
            io::stdout().write_all(&[b'x'; 65536])?;
        },
        other => Err(io::Error::other(format!("what is {other:?}?"))),
    }
}

#[allow(unconditional_recursion)]
fn recurse(depth: u64) -> u64 {
    let frame = std::hint::black_box([depth; 32]);
    recurse(depth + 1) + frame[(depth % 32) as usize]
}
