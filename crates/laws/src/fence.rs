//! The fence before requests: however bytes are cut, the same passes and the same is refused; and what passes is read in the
//! same way by the parser that other people's servers are made of.

use egress::{Fence, Violation};
use model::{Endpoint, Host, HostName};

const NAME: &str = "api.example.org";

pub fn law(bytes: &[u8]) {
    let whole = passes(bytes, &[bytes.len()]);
    for cuts in [&[1][..], &[2, 5], &[64]] {
        assert_eq!(passes(bytes, cuts), whole, "it depends on how it is cut");
    }
    let (sound, _) = whole;
    assert!(bytes.starts_with(&sound), "something passed that was not there");
    let read = read(&sound);
    for request in &read {
        assert!(request.hosts == 1, "a request without its host");
    }
}

fn passes(bytes: &[u8], cuts: &[usize]) -> (Vec<u8>, Option<Violation>) {
    let Some(name) = HostName::read(NAME) else { return (Vec::new(), None) };
    let mut fence = Fence::new(Endpoint { host: Host::Name(name), port: 443 });
    let (mut out, mut at, mut sizes) = (Vec::new(), 0, cuts.iter().cycle());
    while at < bytes.len() {
        let size = (*sizes.next().unwrap_or(&1)).max(1);
        let part = &bytes[at..bytes.len().min(at + size)];
        // Where it says that bytes may pass unseen, they do.
        let open = usize::try_from(fence.open_for()).unwrap_or(usize::MAX);
        if open >= part.len() {
            out.extend_from_slice(part);
            fence.passed(part.len() as u64);
            at += part.len();
            continue;
        }
        match fence.take(part, &mut out) {
            Ok(0) if fence.is_held() => fence.answered(false),
            Ok(taken) => at += taken,
            Err(violation) => return (out, Some(violation)),
        }
    }
    (out, None)
}

struct Request {
    hosts: usize,
}

/// What the other parser makes of it: the same requests, with the same bodies.
fn read(mut bytes: &[u8]) -> Vec<Request> {
    let mut requests = Vec::new();
    while !bytes.is_empty() {
        let mut headers = [httparse::EMPTY_HEADER; 100];
        let mut request = httparse::Request::new(&mut headers);
        let head = match request.parse(bytes).expect("what passes can be read") {
            httparse::Status::Complete(length) => length,
            httparse::Status::Partial => panic!("half a head has passed"),
        };
        let target = request.path.expect("a target");
        assert!(target.starts_with('/') || target == "*", "{target:?}");
        let named = |name: &str| -> Vec<&[u8]> {
            let same = request.headers.iter().filter(|header| header.name.eq_ignore_ascii_case(name));
            same.map(|header| header.value).collect()
        };
        let hosts = named("host").len();
        let (lengths, encodings) = (named("content-length"), named("transfer-encoding"));
        assert!(lengths.len() + encodings.len() <= 1, "two ways to know where it ends");
        bytes = &bytes[head..];
        if let [length] = lengths.as_slice() {
            let length: u64 = std::str::from_utf8(length).expect("digits").parse().expect("a number");
            bytes = &bytes[bytes.len().min(usize::try_from(length).unwrap_or(usize::MAX))..];
        } else if let [encoding] = encodings.as_slice() {
            assert!(encoding.eq_ignore_ascii_case(b"chunked"));
            bytes = after_chunks(bytes);
        }
        requests.push(Request { hosts });
    }
    requests
}

fn after_chunks(mut bytes: &[u8]) -> &[u8] {
    loop {
        let (line, size) = match httparse::parse_chunk_size(bytes).expect("a size") {
            httparse::Status::Complete(read) => read,
            httparse::Status::Partial => {
                assert!(bytes.is_empty(), "half a size has passed");
                return bytes;
            }
        };
        bytes = &bytes[line..];
        if size == 0 {
            let mut trailers = [httparse::EMPTY_HEADER; 100];
            return match httparse::parse_headers(bytes, &mut trailers).expect("trailers") {
                httparse::Status::Complete((length, _)) => &bytes[length..],
                httparse::Status::Partial => panic!("half of the trailers have passed"),
            };
        }
        let end = bytes.len().min(usize::try_from(size).unwrap_or(usize::MAX));
        bytes = &bytes[end..];
        match bytes {
            [] => return bytes,
            [b'\r', b'\n', rest @ ..] => bytes = rest,
            _ => panic!("a chunk that does not end where it says"),
        }
    }
}
