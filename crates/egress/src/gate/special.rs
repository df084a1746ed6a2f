//! Addresses that are not everybody's: a name that leads to one was either meant so by somebody, or is an attack.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

/// What kind of address it is, if it is not a public one of somebody else.
pub fn kind(address: IpAddr) -> Option<&'static str> {
    by_number(address).or_else(|| is_own(address).then_some("an address of this machine"))
}

/// Without asking the kernel.
pub fn by_number(address: IpAddr) -> Option<&'static str> {
    match address.to_canonical() {
        IpAddr::V4(address) => version_4(address),
        IpAddr::V6(address) => version_6(address),
    }
}

fn version_4(address: Ipv4Addr) -> Option<&'static str> {
    let kind = match address.octets() {
        [0, ..] => "an unspecified address",
        [127, ..] => "a loopback address",
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => "a private address",
        // Of one carrier; the metadata of some clouds is here as well.
        [100, 64..=127, ..] => "an address shared behind a carrier",
        [169, 254, 169, 254] | [168, 63, 129, 16] => "an address of a cloud's metadata",
        [169, 254, ..] => "a link-local address",
        [192, 0, 0, _] => "an address for protocols",
        [192, 0, 2, _] | [198, 51, 100, _] | [203, 0, 113, _] => "an address for documentation",
        // Relays from version 4 to 6: whoever answers there is nobody in particular.
        [192, 88, 99, _] => "an address of a relay",
        [198, 18..=19, ..] => "an address for benchmarks",
        [224..=239, ..] => "a multicast address",
        [255, 255, 255, 255] => "the broadcast address",
        [240..=255, ..] => "a reserved address",
        _ => return None,
    };
    Some(kind)
}

fn version_6(address: Ipv6Addr) -> Option<&'static str> {
    let embedded = |high: u16, low: u16| {
        let [a, b] = high.to_be_bytes();
        let [c, d] = low.to_be_bytes();
        version_4(Ipv4Addr::new(a, b, c, d))
    };
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0] => Some("an unspecified address"),
        [0, 0, 0, 0, 0, 0, 0, 1] => Some("a loopback address"),
        // Version 4 inside of version 6, in forms that nobody needs: refused whatever is inside.
        [0, 0, 0, 0, 0, 0, _, _] | [0, 0, 0, 0, 0xffff, 0, _, _] => Some("an embedded address"),
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => embedded(high, low),
        [0x64, 0xff9b, ..] => Some("an address of a translator"),
        [0xfe80..=0xfebf, ..] => Some("a link-local address"),
        [0xfec0..=0xfeff, ..] => Some("a site-local address"),
        [0xfc00..=0xfdff, ..] => Some("a private address"),
        [0xff00..=0xffff, ..] => Some("a multicast address"),
        [0x2001, 0, ..] => Some("an address of a tunnel"),
        [0x2001, 0x0001..=0x01ff, ..] => Some("an address for protocols"),
        [0x2001, 0xdb8, ..] | [0x3fff, 0..=0x0fff, ..] => Some("an address for documentation"),
        // It says so in its middle, so a router on the way sends it to what is embedded.
        [0x2002, high, low, ..] => embedded(high, low),
        [.., 0 | 0x200, 0x5efe, high, low] => embedded(high, low),
        // All that was ever handed out begins like this.
        [0x2000..=0x3fff, ..] => None,
        _ => Some("a reserved address"),
    }
}

/// Whether the kernel would deliver it to this machine itself. Asked anew each time, since interfaces come and go, and of the
/// kernel itself, which alone knows all that it takes for its own. Sends nothing.
fn is_own(address: IpAddr) -> bool {
    let any = match address {
        IpAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
        IpAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
    };
    let asked = UdpSocket::bind(any).map(|socket| {
        // To ourselves we talk from the very address.
        socket.connect((address, 9)).and_then(|()| socket.local_addr()).is_ok_and(|from| from.ip() == address)
    });
    match asked {
        Ok(true) => true,
        // A route may say to talk from elsewhere; only what is ours can be listened on.
        Ok(false) => !foreign_can_be_bound(address) && UdpSocket::bind((address, 0)).is_ok(),
        // Without this version there is no dialling either.
        Err(_) => true,
    }
}

/// Some machines let programs listen on addresses that they do not have yet.
fn foreign_can_be_bound(address: IpAddr) -> bool {
    let version = if address.is_ipv4() { "ipv4" } else { "ipv6" };
    let setting = std::fs::read(format!("/proc/sys/net/{version}/ip_nonlocal_bind"));
    setting.is_ok_and(|value| value.first() == Some(&b'1'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_special_address_is_known_in_every_spelling() {
        let special = [
            "0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "100.64.0.1", "100.100.100.200", "100.127.255.255",
            "127.0.0.1", "127.255.255.254", "168.63.129.16", "169.254.0.1", "169.254.169.254", "172.16.0.1",
            "172.31.255.255", "192.0.0.192", "192.0.2.1", "192.88.99.1", "192.168.0.1", "198.18.0.1", "198.19.255.255",
            "198.51.100.7", "203.0.113.9", "224.0.0.1", "239.255.255.250", "240.0.0.1", "255.255.255.255",
        ];
        for text in special {
            let address: Ipv4Addr = text.parse().expect("an address");
            let [a, b, c, d] = address.octets();
            let (high, low) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
            for spelling in [
                IpAddr::V4(address),
                IpAddr::V6(address.to_ipv6_mapped()),
                IpAddr::V6(Ipv6Addr::new(0, 0, 0, 0, 0, 0, high, low)),
                IpAddr::V6(Ipv6Addr::new(0, 0, 0, 0, 0xffff, 0, high, low)),
                IpAddr::V6(Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, high, low)),
                IpAddr::V6(Ipv6Addr::new(0x64, 0xff9b, 1, 0, 0, 0, high, low)),
                IpAddr::V6(Ipv6Addr::new(0x2002, high, low, 0, 0, 0, 0, 1)),
                IpAddr::V6(Ipv6Addr::new(0x2001, 0, high, low, 0, 0, !high, !low)),
                IpAddr::V6(Ipv6Addr::new(0x2600, 1, 2, 3, 0, 0x5efe, high, low)),
                IpAddr::V6(Ipv6Addr::new(0x2600, 1, 2, 3, 0x200, 0x5efe, high, low)),
            ] {
                assert!(by_number(spelling).is_some(), "{spelling}");
            }
        }
        for text in [
            "::", "::1", "::7f00:1", "fe80::1", "febf::1", "fec0::1", "fc00::1", "fd00:ec2::254", "fd62:656c:6c6a::1",
            "ff02::1", "2001:db8::1", "3fff:0fff::1", "2001::1", "2001:10::1", "2001:20::1", "100::1", "5f00::1",
            "4000::1", "1fff::1", "64:ff9b:1::808:808",
        ] {
            assert!(by_number(text.parse().expect("an address")).is_some(), "{text}");
        }
    }

    #[test]
    fn public_addresses_are_everybodys() {
        for text in [
            "1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.1", "100.63.255.255", "100.128.0.1", "126.1.1.1",
            "128.0.0.1", "169.253.1.1", "172.15.0.1", "172.32.0.1", "192.0.1.1", "192.167.1.1", "198.17.1.1",
            "198.20.1.1", "223.1.1.1", "::ffff:8.8.8.8", "2606:4700::1", "2001:4860:4860::8888", "2a00:1450::1",
            "64:ff9b::808:808", "2002:808:808::1",
        ] {
            assert_eq!(by_number(text.parse().expect("an address")), None, "{text}");
        }
    }

    #[test]
    fn what_the_kernel_takes_for_its_own_is_own() {
        assert!(is_own(Ipv4Addr::LOCALHOST.into()));
        assert!(is_own(Ipv4Addr::new(127, 9, 8, 7).into()));
        assert!(!is_own(Ipv4Addr::new(192, 0, 2, 77).into()));
        // Whatever address we would talk to others from is one of ours.
        let socket = UdpSocket::bind("0.0.0.0:0").expect("a socket");
        if socket.connect("192.0.2.1:9").is_ok() {
            let own = socket.local_addr().expect("an address").ip();
            assert!(is_own(own), "{own}");
        }
    }
}
