//! Connects to a service that listens on the host's loopback, by both versions of the address.

use std::io::Write;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use model::Wall;

use super::support::{judge_by_ear, listen};
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "kernel/host_loopback",
    wall: Wall::Network,
    about: "connect to a TCP service on the host's loopback, by IPv4, IPv6 and mapped addresses",
    flags: &[],
    prepare: |field| {
        for (name, address) in [("four", "127.0.0.1:0"), ("six", "[::1]:0")] {
            let listener = TcpListener::bind(address)?;
            field.tell(name, listener.local_addr()?.port());
            listen(
                field,
                listener,
                |listener| Ok(listener.accept()?.0),
                |stream| stream.set_read_timeout(Some(Duration::from_secs(1))),
            )?;
        }
        Ok(())
    },
    inside: |inside| {
        let (four, six) = (inside.hint("four")?, inside.hint("six")?);
        let mut refused = Ok(());
        for address in [
            format!("127.0.0.1:{four}"),
            format!("0.0.0.0:{four}"),
            format!("127.9.9.9:{four}"),
            format!("[::ffff:127.0.0.1]:{four}"),
            format!("[::1]:{six}"),
            format!("[::]:{six}"),
        ] {
            let address: SocketAddr = address.parse().map_err(std::io::Error::other)?;
            match TcpStream::connect_timeout(&address, Duration::from_secs(1)) {
                Ok(mut stream) => stream.write_all(address.to_string().as_bytes())?,
                Err(error) => refused = Err(error),
            }
        }
        refused
    },
    judge: Some(judge_by_ear),
    control: Control::Bare,
};
