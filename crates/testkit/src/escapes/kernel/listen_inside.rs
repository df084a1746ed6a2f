//! Listens on every address, so that somebody on the host's network could come in.

use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use model::Wall;

use crate::{Attack, Control, Verdict};

pub const ATTACK: Attack = Attack {
    id: "kernel/listen_inside",
    wall: Wall::Network,
    about: "listen on every address and be reached from the host",
    flags: &[],
    prepare: |field| {
        // A port that was free a moment ago, and is nobody's habit.
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        field.tell("port", port);
        let (ready, heard) = (field.workspace.join("ready"), field.outside.join("heard"));
        std::thread::spawn(move || {
            let until = Instant::now() + Duration::from_secs(20);
            while Instant::now() < until && !ready.exists() {
                std::thread::sleep(Duration::from_millis(5));
            }
            for address in [format!("127.0.0.1:{port}"), format!("[::1]:{port}")] {
                let Ok(mut stream) = TcpStream::connect(address) else {
                    continue;
                };
                let mut line = [0u8; 5];
                if stream.set_read_timeout(Some(Duration::from_secs(1))).is_ok()
                    && std::io::Read::read_exact(&mut stream, &mut line).is_ok()
                    && line == *b"enter"
                {
                    assert!(std::fs::write(&heard, "came in").is_ok(), "the evidence could not be kept");
                }
            }
        });
        Ok(())
    },
    inside: |inside| {
        let port = inside.hint("port")?;
        let listeners = [TcpListener::bind(format!("0.0.0.0:{port}"))?];
        for listener in &listeners {
            listener.set_nonblocking(true)?;
        }
        std::fs::write(inside.workspace.join("ready"), "")?;
        let until = Instant::now() + Duration::from_millis(700);
        while Instant::now() < until {
            for listener in &listeners {
                if let Ok((mut stream, _)) = listener.accept() {
                    stream.write_all(b"enter")?;
                }
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    },
    judge: Some(|field, _| match field.outside.join("heard").exists() {
        true => Verdict::Broken("the host could come in".to_owned()),
        false => Verdict::Held,
    }),
    control: Control::Bare,
};
