//! What is said between whoever serves visitors of a sandbox and whoever leads them in: a message each.

/// What is asked, or told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ushering {
    /// Visitors may come to this port from now on.
    Opens { port: u16 },
    /// And now not any more.
    Closes { port: u16 },
    /// One is here; the answer comes with a connection, or without.
    Comes { visitor: u64, port: u16 },
    /// It has left. Bytes that the server said, and that it was told.
    Leaves { visitor: u64, port: u16, said: u64, told: u64 },
}

/// What is answered to `Opens`, `Closes` and `Comes`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ushered {
    /// Done; to `Comes`, with a connection.
    Yes,
    /// Nobody listens there.
    Nobody,
    /// It could not be written down, so it was not done.
    NotRecorded,
}

const LENGTH: usize = 1 + 2 + 3 * 8;

impl Ushering {
    pub fn encode(self) -> [u8; LENGTH] {
        let (kind, port, numbers) = match self {
            Ushering::Opens { port } => (b'o', port, [0; 3]),
            Ushering::Closes { port } => (b'c', port, [0; 3]),
            Ushering::Comes { visitor, port } => (b'v', port, [visitor, 0, 0]),
            Ushering::Leaves { visitor, port, said, told } => (b'l', port, [visitor, said, told]),
        };
        let mut bytes = [0; LENGTH];
        bytes[0] = kind;
        bytes[1..3].copy_from_slice(&port.to_le_bytes());
        for (at, number) in numbers.into_iter().enumerate() {
            bytes[3 + at * 8..11 + at * 8].copy_from_slice(&number.to_le_bytes());
        }
        bytes
    }

    /// `None` for anything that `encode` does not make.
    pub fn decode(bytes: &[u8]) -> Option<Ushering> {
        let (kind, rest) = bytes.split_first()?;
        let (port, rest) = rest.split_first_chunk::<2>()?;
        let port = u16::from_le_bytes(*port);
        let mut numbers = [0; 3];
        let (chunks, []) = rest.as_chunks::<8>() else { return None };
        let [one, two, three] = chunks else { return None };
        for (number, chunk) in numbers.iter_mut().zip([one, two, three]) {
            *number = u64::from_le_bytes(*chunk);
        }
        match (kind, numbers) {
            (b'o', [0, 0, 0]) => Some(Ushering::Opens { port }),
            (b'c', [0, 0, 0]) => Some(Ushering::Closes { port }),
            (b'v', [visitor, 0, 0]) => Some(Ushering::Comes { visitor, port }),
            (b'l', [visitor, said, told]) => Some(Ushering::Leaves { visitor, port, said, told }),
            _ => None,
        }
    }
}

impl Ushered {
    pub fn byte(self) -> u8 {
        match self {
            Ushered::Yes => 0,
            Ushered::Nobody => 1,
            Ushered::NotRecorded => 2,
        }
    }

    pub fn of(byte: u8) -> Option<Ushered> {
        [Ushered::Yes, Ushered::Nobody, Ushered::NotRecorded].into_iter().find(|answer| answer.byte() == byte)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_heard_and_nothing_else_is() {
        let all = [
            Ushering::Opens { port: 1 },
            Ushering::Closes { port: 65535 },
            Ushering::Comes { visitor: u64::MAX, port: 8080 },
            Ushering::Leaves { visitor: 7, port: 80, said: 1 << 40, told: 3 },
        ];
        for said in all {
            assert_eq!(Ushering::decode(&said.encode()), Some(said));
            assert_eq!(Ushering::decode(&said.encode()[1..]), None);
            let mut longer = said.encode().to_vec();
            longer.push(0);
            assert_eq!(Ushering::decode(&longer), None);
        }
        let mut strange = Ushering::Opens { port: 1 }.encode();
        strange[20] = 1;
        assert_eq!((Ushering::decode(&strange), Ushering::decode(&[]), Ushered::of(3)), (None, None, None));
    }
}
