//! How a client begins: read within bounds, the same however it is cut, and never with a name that means two things.

use egress::hostile::{HelloReader, LONGEST, Look, Said, look};
use model::HostName;

pub fn law(bytes: &[u8]) {
    let mut whole = HelloReader::default();
    let said = whole.take(bytes);
    assert_eq!(whole.raw, bytes, "something of it is lost");
    let in_parts = in_parts(bytes, |_| 1);
    // What comes after the end of a hello does not change it; cut, it is read before the rest is there.
    match (&said, &in_parts) {
        (Said::Part, parts) => assert_eq!(*parts, Said::Part),
        (one, other) => assert_eq!(one, other, "it depends on how it is cut"),
    }
    assert_eq!(in_parts, self::in_parts(bytes, |at| 1 + at % 7), "it depends on how it is cut");
    if let Said::Part = said {
        assert!(bytes.len() <= LONGEST, "it is never too long");
    }
    if let Said::Whole(hello) = &said {
        assert_eq!(look(bytes), Look::Tls);
        if let Some(name) = &hello.name {
            assert!(name.bytes().all(|byte| byte.is_ascii_graphic() && !byte.is_ascii_uppercase()), "{name:?}");
            // What equals a granted name is one: nothing is cut off, and nothing is added.
            if let Some(read) = HostName::read(name) {
                assert_eq!(read.as_str(), name.strip_suffix('.').unwrap_or(name));
            }
        }
    }
    // What was once clear stays so.
    let mut before = Look::Unclear;
    for end in 0..bytes.len().min(64) {
        let now = look(&bytes[..end]);
        assert!(before == Look::Unclear || before == now, "{before:?} became {now:?}");
        before = now;
    }
}

fn in_parts(bytes: &[u8], size: impl Fn(usize) -> usize) -> Said {
    let mut reader = HelloReader::default();
    let mut said = Said::Part;
    let mut at = 0;
    while at < bytes.len() && said == Said::Part {
        let end = (at + size(at)).min(bytes.len());
        said = reader.take(&bytes[at..end]);
        at = end;
    }
    said
}
