//! Puts another protocol (TLS and others in the kernel) on top of a TCP connection.

use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;

use model::Wall;

use super::support::{is_refusal, judge_by_loot};
use crate::inside::call;
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "kernel/upper_protocol",
    wall: Wall::SystemCalls,
    about: "reach TCP_ULP and the packet-filter tables by setsockopt, also with rubbish in the high halves",
    flags: &[],
    prepare: |_| Ok(()),
    inside: |inside| {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let stream = TcpStream::connect(listener.local_addr()?)?;
        let mut refused = Ok(());
        for (level, option) in [(6, 31), (0, 64), (41, 64)] {
            for high in [0, 1 << 32, 0xffff_ffff << 32] {
                for name in [c"tls", c"espintcp", c"smc", c"mptcp"] {
                    let arguments =
                        [stream.as_raw_fd() as u64, level | high, option | high, name.as_ptr() as u64, 4, 0];
                    match call(libc::SYS_setsockopt, arguments) {
                        Err(error) if is_refusal(error.raw_os_error().unwrap_or_default()) => refused = Err(error),
                        answer => inside.loot(format!("{level} {option} {name:?}: {answer:?}\n"))?,
                    }
                }
            }
        }
        refused
    },
    judge: Some(judge_by_loot),
    control: Control::Bare,
};
