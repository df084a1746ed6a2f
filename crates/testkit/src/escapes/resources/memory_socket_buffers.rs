//! What is sent and never read is kept in the kernel, charged to nobody that /proc knows.

use std::io::Write;
use std::os::unix::net::UnixStream;

use model::Wall;

use super::support::{self, TOO_MUCH};
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "resources/memory_socket_buffers",
    wall: Wall::Memory,
    about: "park 200 MiB in socket buffers with --memory 64M",
    flags: &["--memory", "64M"],
    prepare: |_| Ok(()),
    inside: |inside| {
        support::at_the_brink(inside)?;
        let block = vec![0u8; 64 << 10];
        let (mut kept, mut sent) = (Vec::new(), 0);
        while sent < TOO_MUCH && kept.len() < 2_000 {
            let (mut from, to) = UnixStream::pair()?;
            from.set_nonblocking(true)?;
            while let Ok(written) = from.write(&block) {
                sent += written;
            }
            kept.push((from, to));
        }
        support::pause(support::UNTIL_SEEN);
        if sent < TOO_MUCH {
            return Err(std::io::Error::other(format!("only {sent} bytes")));
        }
        inside.loot("200 MiB in socket buffers")
    },
    judge: Some(support::stopped_for_memory),
    control: Control::Bare,
};
