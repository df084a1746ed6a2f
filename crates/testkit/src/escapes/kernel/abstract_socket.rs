//! Connects to an abstract unix socket of the host, which has a name but no place in any folder.

use std::io::Write;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener, UnixStream};
use std::time::Duration;

use model::Wall;

use super::support::{judge_by_ear, listen};
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "kernel/abstract_socket",
    wall: Wall::Network,
    about: "connect to an abstract unix socket of the host, by a stream and by a pair pointed elsewhere",
    flags: &[],
    prepare: |field| {
        let name = format!("belljar-{}", &field.secret[7..19]);
        field.tell("name", &name);
        let listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name)?)?;
        let datagrams = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(format!("{name}-datagram"))?)?;
        listen(
            field,
            listener,
            |listener| Ok(listener.accept()?.0),
            |stream| stream.set_read_timeout(Some(Duration::from_secs(1))),
        )?;
        let heard = field.outside.join("heard");
        std::thread::spawn(move || {
            let mut bytes = [0u8; 64];
            while let Ok(count) = datagrams.recv(&mut bytes) {
                if std::fs::write(&heard, &bytes[..count]).is_err() {
                    return;
                }
            }
        });
        Ok(())
    },
    inside: |inside| {
        let name = inside.hint("name")?;
        let (one, _other) = UnixDatagram::pair()?;
        let by_pair =
            one.send_to_addr(b"by a pair", &SocketAddr::from_abstract_name(format!("{name}-datagram"))?).map(drop);
        let mut stream = UnixStream::connect_addr(&SocketAddr::from_abstract_name(name)?)?;
        stream.write_all(b"by a stream")?;
        by_pair
    },
    judge: Some(judge_by_ear),
    control: Control::Bare,
};
