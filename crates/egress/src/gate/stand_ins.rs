//! Addresses that stand for names inside. They lead nowhere; they only let us know which name a connection means.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use model::HostName;

/// Of 198.18.0.0/15, which is for benchmarks: nobody's. What is below the first is for the sandbox itself.
const FIRST: u32 = u32::from_be_bytes([198, 18, 1, 1]);
const NETWORK: u32 = u32::from_be_bytes([198, 18, 0, 0]);
const NETWORK_BITS: u32 = 15;
/// Private, and random as the standard wants it.
const NETWORK_6: [u16; 4] = [0xfd62, 0x656c, 0x6c6a, 0];
/// More would not fit into version 4's.
pub const MOST: usize = 65_000;

pub struct StandIns {
    names: Vec<HostName>,
    numbers: HashMap<HostName, u32>,
    most: usize,
}

impl StandIns {
    pub fn new(most: usize) -> StandIns {
        StandIns { names: Vec::new(), numbers: HashMap::new(), most: most.min(MOST) }
    }

    pub fn number(&self, name: &HostName) -> Option<u32> {
        self.numbers.get(name).copied()
    }

    pub fn is_full(&self) -> bool {
        self.names.len() >= self.most
    }

    /// The number that stands for this name from now on; none if there are too many.
    pub fn add(&mut self, name: &HostName) -> Option<u32> {
        if let Some(number) = self.number(name) {
            return Some(number);
        }
        if self.is_full() {
            return None;
        }
        let number = u32::try_from(self.names.len()).ok()?;
        self.names.push(name.clone());
        self.numbers.insert(name.clone(), number);
        Some(number)
    }

    pub fn name(&self, number: u32) -> Option<&HostName> {
        self.names.get(usize::try_from(number).ok()?)
    }
}

pub fn version_4(number: u32) -> Ipv4Addr {
    Ipv4Addr::from(FIRST.saturating_add(number))
}

pub fn version_6(number: u32) -> Ipv6Addr {
    let [a, b, c, d] = NETWORK_6;
    let [high, low] = [(number >> 16) as u16, number as u16];
    // Never zero at its end: that is the address of any router.
    Ipv6Addr::new(a, b, c, d, 0, 1, high, low)
}

/// What an address of the network of stand-ins means; `None` for all other addresses.
pub fn meant(address: IpAddr) -> Option<Meant> {
    match address {
        IpAddr::V4(address) => {
            let address = u32::from(address);
            let ours = address >> (32 - NETWORK_BITS) == NETWORK >> (32 - NETWORK_BITS);
            ours.then(|| address.checked_sub(FIRST).map_or(Meant::Nobody, Meant::Number))
        }
        IpAddr::V6(address) => match address.segments() {
            [a, b, c, d, 0, 1, high, low] if [a, b, c, d] == NETWORK_6 => {
                Some(Meant::Number(u32::from(high) << 16 | u32::from(low)))
            }
            [a, b, c, ..] if [a, b, c] == NETWORK_6[..3] => Some(Meant::Nobody),
            _ => None,
        },
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meant {
    Number(u32),
    Nobody,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> HostName {
        HostName::read(text).expect("a name")
    }

    #[test]
    fn a_name_keeps_its_addresses_and_they_mean_it() {
        let mut stand_ins = StandIns::new(MOST);
        for number in 0..1000 {
            assert_eq!(stand_ins.add(&name(&format!("n{number}.example"))), Some(number));
        }
        assert_eq!(stand_ins.add(&name("N7.example.")), Some(7));
        assert_eq!(version_4(0).to_string(), "198.18.1.1");
        assert_eq!(version_6(7).to_string(), "fd62:656c:6c6a::1:0:7");
        for number in [0, 1, 7, 255, 999] {
            assert_eq!(meant(version_4(number).into()), Some(Meant::Number(number)));
            assert_eq!(meant(version_6(number).into()), Some(Meant::Number(number)));
            assert_eq!(stand_ins.name(number), Some(&name(&format!("n{number}.example"))));
        }
        assert_eq!(stand_ins.name(1000), None);
    }

    #[test]
    fn other_addresses_mean_no_name() {
        for text in ["198.18.0.1", "198.18.1.0", "fd62:656c:6c6a::1", "fd62:656c:6c6a:1::7"] {
            assert_eq!(meant(text.parse().expect("an address")), Some(Meant::Nobody), "{text}");
        }
        for text in ["198.17.255.255", "198.20.0.0", "1.1.1.1", "127.0.0.1", "::1", "fd62:656c:6c6b::1:0:7"] {
            assert_eq!(meant(text.parse().expect("an address")), None, "{text}");
        }
    }

    #[test]
    fn there_is_an_end_to_names() {
        let mut stand_ins = StandIns::new(2);
        assert_eq!(stand_ins.add(&name("a.example")), Some(0));
        assert_eq!(stand_ins.add(&name("b.example")), Some(1));
        assert_eq!(stand_ins.add(&name("c.example")), None);
        assert_eq!(stand_ins.add(&name("a.example")), Some(0));
        assert!(u32::from(version_4(MOST as u32)) >> 17 == u32::from(version_4(0)) >> 17);
    }
}
