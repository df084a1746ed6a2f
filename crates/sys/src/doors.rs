//! A network namespace in which everything that wants out ends at sockets of ours.
//!
//! There is still nothing in it but its own loopback. But all addresses are its own, so whatever is sent stays here; and a
//! table of the packet filter sends connections on to our sockets, where they can be asked where they wanted to go. What
//! no socket waits for, such as any datagram that is no question about a name, is refused at once.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, listen, socket_with, sockopt};

use crate::netlink::{Attributes, How, Messages, To};

/// Where whatever goes out over TCP arrives. Below 1024, where nobody inside can listen in our place.
pub const GATE: u16 = 47;
const NAMES: u16 = 53;
/// What connections come from: of a range for tests of networks (RFC 2544), so nobody's.
pub const SOURCE: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
/// How many connections may wait to be taken; the kernel may have its own idea.
const WAITING: i32 = 1024;

/// What is opened for one version of the protocol.
#[derive(Debug)]
pub struct Doors {
    /// Listens; whatever goes out over TCP.
    pub streams: OwnedFd,
    /// Questions about names, each in a datagram.
    pub names: OwnedFd,
    /// The same over TCP; listens.
    pub long_names: OwnedFd,
}

/// Opens doors in the current network namespace, whose loopback is up: for version 4, then 6 if there is one here.
/// `loopback`: ports of the own loopback that lead out as well.
pub fn open(loopback: &[u16]) -> io::Result<(Doors, Option<Doors>)> {
    let four = sockets(Ipv4Addr::LOCALHOST.into())?;
    let six = match sockets(Ipv6Addr::LOCALHOST.into()) {
        Ok(six) => Some(six),
        // Where the kernel has none, or it is switched off, nobody inside has any either.
        Err(Errno::AFNOSUPPORT | Errno::ADDRNOTAVAIL) => None,
        Err(error) => return Err(error.into()),
    };
    // First the filter: at no time is there a way that does not lead to us.
    filter(loopback).send(To::PacketFilter)?;
    routes(six.is_some()).send(To::Routing)?;
    Ok((four, six))
}

fn sockets(at: IpAddr) -> Result<Doors, Errno> {
    let open = |kind: SocketType, port: u16| -> Result<OwnedFd, Errno> {
        let family = if at.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let socket = socket_with(family, kind, SocketFlags::CLOEXEC, None)?;
        if at.is_ipv6() {
            sockopt::set_ipv6_v6only(&socket, true)?;
        }
        bind(&socket, &SocketAddr::new(at, port))?;
        if kind == SocketType::STREAM {
            listen(&socket, WAITING)?;
        }
        Ok(socket)
    };
    Ok(Doors {
        streams: open(SocketType::STREAM, GATE)?,
        names: open(SocketType::DGRAM, NAMES)?,
        long_names: open(SocketType::STREAM, NAMES)?,
    })
}

// From linux/rtnetlink.h, if_addr.h and if_link.h.
const NEW_ADDRESS: u16 = 20;
const ADDRESS_LOCAL: u16 = 2;
const NEW_ROUTE: u16 = 24;
const ROUTE_DEVICE: u16 = 4;
const ROUTE_SOURCE: u16 = 7;
const TABLE_LOCAL: u8 = 255;
const BY_BOOT: u8 = 3;
const SCOPE_HOST: u8 = 254;
const TYPE_LOCAL: u8 = 2;
const INET: u8 = 2;
const INET6: u8 = 10;
/// The first device of every namespace.
const LOOPBACK: u32 = 1;

/// An address to come from, and every address as one's own: `local default dev lo`.
fn routes(six: bool) -> Messages {
    let mut messages = Messages::default();
    // struct ifaddrmsg: family, length of the prefix, flags, scope; device.
    let mut address = vec![INET, 32, 0, SCOPE_HOST];
    address.extend_from_slice(&LOOPBACK.to_ne_bytes());
    messages.add(NEW_ADDRESS, How::New, &address, |attributes| {
        attributes.bytes(ADDRESS_LOCAL, &SOURCE.octets());
    });
    // struct rtmsg: family, lengths of destination and source (none: every address), service, table, by whom, scope, type;
    // flags.
    let route = |family| [family, 0, 0, 0, TABLE_LOCAL, BY_BOOT, SCOPE_HOST, TYPE_LOCAL, 0, 0, 0, 0];
    messages.add(NEW_ROUTE, How::New, &route(INET), |attributes| {
        attributes.bytes(ROUTE_DEVICE, &LOOPBACK.to_ne_bytes()).bytes(ROUTE_SOURCE, &SOURCE.octets());
    });
    if six {
        messages.add(NEW_ROUTE, How::New, &route(INET6), |attributes| {
            attributes.bytes(ROUTE_DEVICE, &LOOPBACK.to_ne_bytes());
        });
    }
    messages
}

// From linux/netfilter/nfnetlink.h and nf_tables.h.
const BATCH_BEGIN: u16 = 0x10;
const BATCH_END: u16 = 0x11;
const TABLES: u16 = 10;
const NEW_TABLE: u16 = TABLES << 8;
const NEW_CHAIN: u16 = TABLES << 8 | 3;
const NEW_RULE: u16 = TABLES << 8 | 6;
/// Both versions of the protocol.
const EITHER: u8 = 1;
const HOOK_OUTPUT: u32 = 3;
/// Where destinations are changed.
const PRIORITY: i32 = -100;
const TABLE: &str = "belljar";
const CHAIN: &str = "out";

const TCP: u8 = 6;
const UDP: u8 = 17;

/// The table, as `nft` would show it:
/// ```text
/// table inet belljar { chain out { type nat hook output priority -100;
///   meta l4proto udp th dport 53 redirect to :53
///   meta l4proto tcp th dport 53 redirect to :53
///   meta l4proto tcp ip daddr 127.0.0.1 th dport PORT redirect to :47     # for each port of `loopback`
///   meta l4proto tcp ip6 daddr ::1 th dport PORT redirect to :47
///   meta l4proto tcp ip daddr != 127.0.0.0/8 redirect to :47
///   meta l4proto tcp ip6 daddr != ::1 redirect to :47
/// } }
/// ```
fn filter(loopback: &[u16]) -> Messages {
    let mut messages = Messages::default();
    // struct nfgenmsg: family, version, and in a mark, in the network's order, what the batch is for.
    let head = |family: u8, about: u16| [family, 0, about.to_be_bytes()[0], about.to_be_bytes()[1]];
    messages.add(BATCH_BEGIN, How::Mark, &head(0, TABLES), |_| {});
    messages.add(NEW_TABLE, How::New, &head(EITHER, 0), |attributes| {
        attributes.name(1, TABLE);
    });
    messages.add(NEW_CHAIN, How::New, &head(EITHER, 0), |attributes| {
        // Table, name, hook with its number and priority, kind.
        attributes.name(1, TABLE).name(3, CHAIN);
        attributes.nest(4, |hook| {
            hook.number(1, HOOK_OUTPUT).number(2, PRIORITY.cast_unsigned());
        });
        attributes.name(7, "nat");
    });
    let mut rule = |only: &[Only], to: u16| {
        messages.add(NEW_RULE, How::Append, &head(EITHER, 0), |attributes| {
            attributes.name(1, TABLE).name(2, CHAIN).nest(4, |expressions| {
                only.iter().for_each(|only| only.write(expressions));
                redirect(expressions, to);
            });
        });
    };
    for protocol in [UDP, TCP] {
        rule(&[Only::Protocol(protocol), Only::To(NAMES)], NAMES);
    }
    for port in loopback {
        for version in [INET, INET6] {
            rule(&[Only::Version(version), Only::Protocol(TCP), Only::Own(version), Only::To(*port)], GATE);
        }
    }
    for version in [INET, INET6] {
        rule(&[Only::Version(version), Only::Protocol(TCP), Only::Others(version)], GATE);
    }
    messages.add(BATCH_END, How::Mark, &head(0, TABLES), |_| {});
    messages
}

/// What a rule is about.
#[derive(Clone, Copy)]
enum Only {
    Version(u8),
    Protocol(u8),
    /// A port as the destination.
    To(u16),
    /// The first address of the loopback, as the destination.
    Own(u8),
    /// Any but addresses of the loopback.
    Others(u8),
}

/// The only register that we use.
const REGISTER: u32 = 1;
const EQUAL: u32 = 0;
const UNEQUAL: u32 = 1;
/// Parts of a packet.
const NETWORK: u32 = 1;
const TRANSPORT: u32 = 2;

impl Only {
    fn write(self, list: &mut Attributes<'_>) {
        match self {
            Only::Version(version) => {
                meta(list, 15);
                compare(list, EQUAL, &[version]);
            }
            Only::Protocol(protocol) => {
                meta(list, 16);
                compare(list, EQUAL, &[protocol]);
            }
            Only::To(port) => {
                payload(list, TRANSPORT, 2, 2);
                compare(list, EQUAL, &port.to_be_bytes());
            }
            Only::Own(INET) => {
                payload(list, NETWORK, 16, 4);
                compare(list, EQUAL, &Ipv4Addr::LOCALHOST.octets());
            }
            Only::Others(INET) => {
                // The first byte alone: all of 127.0.0.0/8 is the loopback's.
                payload(list, NETWORK, 16, 1);
                compare(list, UNEQUAL, &[127]);
            }
            Only::Own(_) | Only::Others(_) => {
                payload(list, NETWORK, 24, 16);
                let how = if matches!(self, Only::Own(_)) { EQUAL } else { UNEQUAL };
                compare(list, how, &Ipv6Addr::LOCALHOST.octets());
            }
        }
    }
}

/// An expression of a rule: its name, and what it is told.
fn expression(list: &mut Attributes<'_>, name: &str, told: impl FnOnce(&mut Attributes<'_>)) {
    list.nest(1, |expression| {
        expression.name(1, name).nest(2, told);
    });
}

/// Puts something about a packet into the register.
fn meta(list: &mut Attributes<'_>, what: u32) {
    expression(list, "meta", |told| {
        told.number(1, REGISTER).number(2, what);
    });
}

/// Puts a part of a packet into the register.
fn payload(list: &mut Attributes<'_>, of: u32, from: u32, length: u32) {
    expression(list, "payload", |told| {
        told.number(1, REGISTER).number(2, of).number(3, from).number(4, length);
    });
}

/// Goes on to the next rule unless the register has this value, or has not.
fn compare(list: &mut Attributes<'_>, how: u32, value: &[u8]) {
    expression(list, "cmp", |told| {
        told.number(1, REGISTER).number(2, how).nest(3, |data| {
            data.bytes(1, value);
        });
    });
}

/// Ends here, at a port of the loopback.
fn redirect(list: &mut Attributes<'_>, to: u16) {
    expression(list, "immediate", |told| {
        told.number(1, REGISTER).nest(2, |data| {
            data.bytes(1, &to.to_be_bytes());
        });
    });
    expression(list, "redir", |told| {
        told.number(1, REGISTER);
    });
}
