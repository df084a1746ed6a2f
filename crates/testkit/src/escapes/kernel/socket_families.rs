//! Makes sockets of families that few use and many exploits do.

use model::Wall;

use super::support::{Try, judge_by_loot, reach};
use crate::{Attack, Control};

const RAW: u64 = 3;
const STREAM: u64 = 1;
const DATAGRAM: u64 = 2;
const SEQUENCED: u64 = 5;
const PACKET: u64 = 10;
const HIGH: u64 = 7 << 32;

const fn socket(name: &'static str, family: u64, kind: u64, protocol: u64) -> Try {
    (name, libc::SYS_socket, [family, kind, protocol, 0, 0, 0])
}

pub const ATTACK: Attack = Attack {
    id: "kernel/socket_families",
    wall: Wall::SystemCalls,
    about: "make a socket of an exotic family, type or protocol",
    flags: &[],
    prepare: |_| Ok(()),
    inside: |inside| {
        reach(
            inside,
            &[
                socket("packet", 17, RAW, 0x300),
                socket("packet by its old name", 2, PACKET, 0x300),
                socket("vsock", 40, STREAM, 0),
                socket("vsock datagram", 40, DATAGRAM, 0),
                socket("vsock sequenced", 40, SEQUENCED, 0),
                socket("vsock with rubbish", 40 | HIGH, STREAM | HIGH, HIGH),
                socket("alg", 38, SEQUENCED, 0),
                socket("key", 15, RAW, 2),
                socket("xdp", 44, RAW, 0),
                socket("bluetooth", 31, RAW, 1),
                socket("tipc", 30, SEQUENCED, 0),
                socket("rds", 21, SEQUENCED, 0),
                socket("can", 29, RAW, 1),
                socket("can isotp", 29, DATAGRAM, 6),
                socket("smc", 43, STREAM, 0),
                socket("kcm", 41, SEQUENCED, 0),
                socket("qipcrtr", 42, DATAGRAM, 0),
                socket("llc", 26, STREAM, 0),
                socket("x25", 9, SEQUENCED, 0),
                socket("ax25", 3, SEQUENCED, 0),
                socket("phonet", 35, DATAGRAM, 0),
                socket("caif", 37, SEQUENCED, 0),
                socket("nfc", 39, SEQUENCED, 0),
                socket("mctp", 45, DATAGRAM, 0),
                socket("sctp", 2, STREAM, 132),
                socket("sctp sequenced", 2, SEQUENCED, 132),
                socket("dccp", 2, 6, 33),
                socket("udplite", 2, DATAGRAM, 136),
                socket("raw", 2, RAW, 255),
                socket("raw of version 6", 10, RAW, 58),
                socket("netlink sock_diag", 16, RAW, 4),
                socket("netlink xfrm", 16, RAW, 6),
                socket("netlink audit", 16, RAW, 9),
                socket("netlink connector", 16, DATAGRAM, 11),
                socket("netlink netfilter", 16, RAW, 12),
                socket("netlink uevent", 16, RAW, 15),
                socket("netlink generic", 16, RAW, 16),
                socket("netlink crypto", 16, RAW, 21),
                socket("netlink generic with rubbish", 16 | HIGH, RAW | HIGH, 16 | HIGH),
                ("pair of vsock", libc::SYS_socketpair, [40, STREAM, 0, 8, 0, 0]),
                ("pair of tipc", libc::SYS_socketpair, [30, STREAM, 0, 8, 0, 0]),
            ],
        )
    },
    judge: Some(judge_by_loot),
    control: Control::Bare,
};
