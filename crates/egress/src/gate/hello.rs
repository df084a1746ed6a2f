//! How a client begins TLS: whom it wants to talk to, as it says in the clear.
//!
//! Read twice: by a strict walk of our own, and by rustls. Both must say the same, so that no server is likely to read it
//! otherwise than we do.

use rustls::server::Acceptor;

/// Of all that a client may say before we know whom it means.
pub const LONGEST: usize = 64 << 10;
const HANDSHAKE: u8 = 22;
const CLIENT_HELLO: u8 = 1;
const LONGEST_RECORD: usize = 16 << 10;
const SERVER_NAME: u16 = 0;
const ALPN: u16 = 16;
const ENCRYPTED_CLIENT_HELLO: u16 = 0xfe0d;
/// The same as drafts had it, and the name alone: servers that still take them are told another name than we see.
const EARLIER_HIDING: &[u16] = &[0xffce, 0xff02, 0xff03, 0xff07, 0xfe08, 0xfe09, 0xfe0a, 0xfe0b, 0xfe0c];

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hello {
    /// As it was written, in small letters.
    pub name: Option<String>,
    pub protocols: Vec<Vec<u8>>,
    /// There may be another name, which only the server can read.
    pub encrypted: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// So far it may become one.
    Part,
    Whole(Hello),
    Bad(&'static str),
}

/// Takes it as it comes, in pieces of any size. What was taken costs no second look.
#[derive(Default)]
pub struct HelloReader {
    /// All of it, to be sent on.
    pub raw: Vec<u8>,
    /// Where the next record begins.
    at: usize,
    /// What the records have in them.
    message: Vec<u8>,
}

impl HelloReader {
    pub fn take(&mut self, bytes: &[u8]) -> Said {
        self.raw.extend_from_slice(bytes);
        loop {
            if let Some(whole) = self.whole() {
                return whole;
            }
            let rest = self.raw.get(self.at..).unwrap_or_default();
            let long = self.raw.len() > LONGEST;
            if let Err(bad) = sound_start(rest) {
                return Said::Bad(bad);
            }
            let (Some(&high), Some(&low)) = (rest.get(3), rest.get(4)) else {
                return if long { Said::Bad("it is too long") } else { Said::Part };
            };
            let length = usize::from(u16::from_be_bytes([high, low]));
            if length == 0 || length > LONGEST_RECORD {
                return Said::Bad("a record has no sound length");
            }
            let Some(content) = rest.get(5..5 + length) else {
                return if long { Said::Bad("it is too long") } else { Said::Part };
            };
            self.message.extend_from_slice(content);
            self.at += 5 + length;
        }
    }

    /// Once all of the message is there, or it can't become one.
    fn whole(&self) -> Option<Said> {
        let kind = *self.message.first()?;
        if kind != CLIENT_HELLO {
            return Some(Said::Bad("it begins with something else"));
        }
        let [_, a, b, c] = *self.message.first_chunk::<4>()?;
        let length = u32::from_be_bytes([0, a, b, c]) as usize;
        if length > LONGEST {
            return Some(Said::Bad("it is too long"));
        }
        let body = self.message.get(4..4 + length)?;
        if self.message.len() > 4 + length {
            return Some(Said::Bad("something follows it in the same record"));
        }
        Some(match walk(body).ok_or("it is malformed").and_then(|hello| second_opinion(&self.raw, hello)) {
            Ok(hello) => Said::Whole(hello),
            Err(bad) => Said::Bad(bad),
        })
    }
}

/// Of a record, as far as it is there.
fn sound_start(record: &[u8]) -> Result<(), &'static str> {
    match record {
        [kind, ..] if *kind != HANDSHAKE => Err("a record of another kind comes first"),
        [_, major, ..] if *major != 3 => Err("it is of an unknown version"),
        [_, _, minor, ..] if *minor > 4 => Err("it is of an unknown version"),
        _ => Ok(()),
    }
}

fn walk(body: &[u8]) -> Option<Hello> {
    let mut body = Bytes(body);
    body.take(2 + 32)?;
    (body.vector_1()?.0.len() <= 32).then_some(())?;
    let suites = body.vector_2()?;
    (!suites.0.is_empty() && suites.0.len().is_multiple_of(2)).then_some(())?;
    (!body.vector_1()?.0.is_empty()).then_some(())?;
    let mut hello = Hello::default();
    if body.0.is_empty() {
        return Some(hello);
    }
    let mut extensions = body.vector_2()?;
    body.0.is_empty().then_some(())?;
    let mut seen = Vec::new();
    while !extensions.0.is_empty() {
        let kind = extensions.number()?;
        let content = extensions.vector_2()?;
        // Whoever reads the first of two would read another name than whoever reads the last.
        if seen.contains(&kind) || seen.len() >= 256 {
            return None;
        }
        seen.push(kind);
        match kind {
            SERVER_NAME => hello.name = Some(server_name(content)?),
            ALPN => hello.protocols = protocols(content)?,
            ENCRYPTED_CLIENT_HELLO => hello.encrypted = true,
            other if EARLIER_HIDING.contains(&other) => hello.encrypted = true,
            _ => {}
        }
    }
    Some(hello)
}

/// Exactly one, of the only kind that there is.
fn server_name(mut content: Bytes<'_>) -> Option<String> {
    let mut list = content.vector_2()?;
    content.0.is_empty().then_some(())?;
    (list.take(1)? == [0]).then_some(())?;
    let name = list.vector_2()?.0;
    let sound = list.0.is_empty() && !name.is_empty() && name.len() <= 255 && name.iter().all(u8::is_ascii_graphic);
    sound.then(|| String::from_utf8_lossy(name).to_ascii_lowercase())
}

fn protocols(mut content: Bytes<'_>) -> Option<Vec<Vec<u8>>> {
    let mut list = content.vector_2()?;
    content.0.is_empty().then_some(())?;
    let mut protocols = Vec::new();
    while !list.0.is_empty() {
        let protocol = list.vector_1()?.0;
        (!protocol.is_empty()).then_some(())?;
        protocols.push(protocol.to_vec());
    }
    Some(protocols)
}

fn second_opinion(raw: &[u8], hello: Hello) -> Result<Hello, &'static str> {
    let mut acceptor = Acceptor::default();
    let mut rest = raw;
    loop {
        match acceptor.accept() {
            Ok(Some(accepted)) => {
                let other = accepted.client_hello().server_name().map(str::to_ascii_lowercase);
                // An address is no name, and is left out there; here it is said, and refused by whoever compares.
                let address = hello.name.as_ref().is_some_and(|name| name.parse::<std::net::IpAddr>().is_ok());
                return if other == hello.name || (address && other.is_none()) {
                    Ok(hello)
                } else {
                    Err("its name is not clear")
                };
            }
            Ok(None) if !rest.is_empty() => match acceptor.read_tls(&mut rest) {
                Ok(read) if read > 0 => {}
                _ => return Err("it is malformed"),
            },
            Ok(None) | Err(_) => return Err("it is malformed, or of a version before TLS 1.2"),
        }
    }
}

struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<u16> {
        let taken = self.take(2)?;
        Some(u16::from_be_bytes(taken.try_into().ok()?))
    }

    fn vector_1(&mut self) -> Option<Bytes<'a>> {
        let length = *self.take(1)?.first()?;
        self.take(usize::from(length)).map(Bytes)
    }

    fn vector_2(&mut self) -> Option<Bytes<'a>> {
        let length = self.number()?;
        self.take(usize::from(length)).map(Bytes)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::Arc;

    use super::*;

    /// As rustls says it.
    pub fn said_to(name: &str, protocols: &[&[u8]]) -> Vec<u8> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(rustls::RootCertStore::empty())
            .with_no_client_auth();
        config.alpn_protocols = protocols.iter().map(|one| one.to_vec()).collect();
        let name = rustls_pki_types::ServerName::try_from(name.to_owned()).expect("a name");
        let mut connection = rustls::ClientConnection::new(Arc::new(config), name).expect("a client");
        let mut bytes = Vec::new();
        connection.write_tls(&mut bytes).expect("a hello");
        bytes
    }

    /// The same with extensions of one's own put before the others.
    pub fn with_extensions(hello: &[u8], more: &[(u16, Vec<u8>)]) -> Vec<u8> {
        let body = &hello[9..];
        let mut at = 34;
        at += 1 + usize::from(body[at]);
        at += 2 + usize::from(u16::from_be_bytes([body[at], body[at + 1]]));
        at += 1 + usize::from(body[at]);
        let mut extensions = Vec::new();
        for (kind, content) in more {
            extensions.extend(kind.to_be_bytes());
            extensions.extend((content.len() as u16).to_be_bytes());
            extensions.extend(content);
        }
        extensions.extend(&body[at + 2..]);
        let mut new = body[..at].to_vec();
        new.extend((extensions.len() as u16).to_be_bytes());
        new.extend(extensions);
        let mut message = vec![CLIENT_HELLO];
        message.extend(&(new.len() as u32).to_be_bytes()[1..]);
        message.extend(new);
        in_records(&message, LONGEST_RECORD)
    }

    /// Of the right form; what it hides is noise.
    pub const HIDING: &[u8] = &[0, 0, 1, 0, 1, 7, 0, 2, 1, 2, 0, 3, 1, 2, 3];

    fn in_records(message: &[u8], size: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        for part in message.chunks(size) {
            bytes.extend([HANDSHAKE, 3, 1]);
            bytes.extend((part.len() as u16).to_be_bytes());
            bytes.extend(part);
        }
        bytes
    }

    fn read(bytes: &[u8]) -> Said {
        HelloReader::default().take(bytes)
    }

    fn name(name: &str) -> Vec<u8> {
        let mut list = vec![0];
        list.extend((name.len() as u16).to_be_bytes());
        list.extend(name.as_bytes());
        let mut content = (list.len() as u16).to_be_bytes().to_vec();
        content.extend(list);
        content
    }

    #[test]
    fn the_name_is_read_however_it_is_split() {
        let hello = said_to("Example.org", &[b"h2", b"http/1.1"]);
        let expected = Hello {
            name: Some("example.org".to_owned()),
            protocols: vec![b"h2".to_vec(), b"http/1.1".to_vec()],
            encrypted: false,
        };
        assert_eq!(read(&hello), Said::Whole(expected.clone()));
        for bytes in [hello.clone(), in_records(&hello[5..], 1), in_records(&hello[5..], 3)] {
            let mut reader = HelloReader::default();
            for (at, byte) in bytes.iter().enumerate() {
                let said = reader.take(&[*byte]);
                if at + 1 < bytes.len() {
                    assert_eq!(said, Said::Part);
                } else {
                    assert_eq!(said, Said::Whole(expected.clone()));
                }
            }
            assert_eq!(reader.raw, bytes);
        }
    }

    #[test]
    fn an_encrypted_hello_is_seen() {
        let hello = with_extensions(&said_to("example.org", &[]), &[(ENCRYPTED_CLIENT_HELLO, HIDING.to_vec())]);
        let Said::Whole(hello) = read(&hello) else { unreachable!("it is not read") };
        assert!(hello.encrypted && hello.name.as_deref() == Some("example.org"));
        for kind in EARLIER_HIDING {
            let hello = with_extensions(&said_to("example.org", &[]), &[(*kind, HIDING.to_vec())]);
            assert!(matches!(read(&hello), Said::Whole(hello) if hello.encrypted), "{kind:x}");
        }
    }

    #[test]
    fn no_name_is_no_name_and_an_address_is_not_hidden() {
        let hello = said_to("192.0.2.1", &[]);
        assert_eq!(read(&hello), Said::Whole(Hello::default()));
        let Said::Whole(said) = read(&with_extensions(&hello, &[(SERVER_NAME, name("192.0.2.9"))])) else {
            unreachable!("it is not read")
        };
        assert_eq!(said.name.as_deref(), Some("192.0.2.9"));
    }

    #[test]
    fn two_names_are_none() {
        let hello = said_to("good.example", &[]);
        assert!(matches!(read(&with_extensions(&hello, &[(SERVER_NAME, name("evil.example"))])), Said::Bad(_)));
        let bare = said_to("192.0.2.1", &[]);
        let two = {
            let (one, other) = (name("good.example"), name("evil.example"));
            let mut list = one[2..].to_vec();
            list.extend(&other[2..]);
            let mut content = (list.len() as u16).to_be_bytes().to_vec();
            content.extend(list);
            content
        };
        assert!(matches!(read(&with_extensions(&bare, &[(SERVER_NAME, two)])), Said::Bad(_)));
        for odd in ["evil.example\0.good.example", "good.example\n", "", "a b"] {
            assert!(matches!(read(&with_extensions(&bare, &[(SERVER_NAME, name(odd))])), Said::Bad(_)), "{odd:?}");
        }
    }

    #[test]
    fn games_with_records_are_refused() {
        let hello = said_to("good.example", &[]);
        let changed = |change: fn(&mut Vec<u8>)| {
            let mut bytes = hello.clone();
            change(&mut bytes);
            read(&bytes)
        };
        assert!(matches!(changed(|bytes| bytes[0] = 23), Said::Bad(_)));
        assert!(matches!(changed(|bytes| bytes[1] = 2), Said::Bad(_)));
        assert!(matches!(changed(|bytes| bytes[5] = 2), Said::Bad(_)));
        assert!(matches!(changed(|bytes| bytes[6] = 1), Said::Bad(_)));
        assert!(matches!(changed(|bytes| (bytes[3], bytes[4]) = (0, 0)), Said::Bad(_)));
        assert!(matches!(changed(|bytes| (bytes[3], bytes[4]) = (0xff, 0xff)), Said::Bad(_)));
        // A second message in the same record.
        let mut message = hello[5..].to_vec();
        message.extend([CLIENT_HELLO, 0, 0, 0]);
        assert!(matches!(read(&in_records(&message, LONGEST_RECORD)), Said::Bad(_)));
        // An alert, or an empty record, between two parts.
        let parts = in_records(&hello[5..], 100);
        for between in [vec![21, 3, 1, 0, 2, 1, 0], vec![HANDSHAKE, 3, 1, 0, 0]] {
            let mut bytes = parts[..105].to_vec();
            bytes.extend(between);
            bytes.extend(&parts[105..]);
            assert!(matches!(read(&bytes), Said::Bad(_)));
        }
        // The old form, which has no room for a name.
        assert!(matches!(read(&[0x80, 0x2e, 1, 3, 1]), Said::Bad(_)));
    }

    #[test]
    fn it_is_never_longer_than_it_may_be() {
        let mut reader = HelloReader::default();
        let start = [HANDSHAKE, 3, 1, 0x40, 0, CLIENT_HELLO, 0, 0xff, 0xf0];
        let mut said = reader.take(&start);
        let mut taken = start.len();
        while said == Said::Part {
            said = reader.take(&[0; 997]);
            taken += 997;
            assert!(taken < 2 * LONGEST, "it goes on and on");
        }
        assert!(matches!(said, Said::Bad(_)));
    }
}
