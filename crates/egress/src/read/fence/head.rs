//! The head of a request, whole: what it says, and what follows it.

use hyper::http::uri::PathAndQuery;
use model::Endpoint;

use super::{MOST_HEADERS, Violation, is_host};

/// What comes after a head.
pub enum Follows {
    Nothing,
    Length(u64),
    Chunks,
    /// Something else than HTTP, if the server agrees.
    Another,
}

/// Nobody needs these after a body, and each changes what was decided before it.
const NOT_IN_TRAILERS: &[&str] = &[
    "host", "content-length", "transfer-encoding", "content-encoding", "content-type", "content-range", "trailer",
    "te", "connection", "upgrade", "expect", "authorization", "proxy-authorization", "cookie", "range", "max-forwards",
];

/// `head` ends with an empty line, all lines end with CRLF, and it has no other controls than tabs.
pub fn read(head: &[u8], endpoint: &Endpoint) -> Result<Follows, Violation> {
    let mut lines = lines(head);
    let old = request(lines.next().unwrap_or_default())?;
    let (mut hosts, mut lengths, mut encodings, mut upgrades) = (0, Vec::new(), 0, Vec::new());
    for (number, line) in lines.enumerate() {
        if number >= MOST_HEADERS {
            return Err(Violation("too many headers"));
        }
        let (name, value) = header(line)?;
        let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
        if is("host") {
            hosts += 1;
            let said = std::str::from_utf8(value).map_err(|_| Violation("a host that is no name"))?;
            if !is_host(said, endpoint) {
                return Err(Violation("a host that is not the one of this connection"));
            }
        } else if is("content-length") {
            lengths.push(length(value)?);
        } else if is("transfer-encoding") {
            encodings += 1;
            if old || encodings > 1 || !value.eq_ignore_ascii_case(b"chunked") {
                return Err(Violation("a transfer encoding that is not just `chunked`"));
            }
        } else if is("upgrade") {
            upgrades.push(value);
        }
    }
    if hosts != 1 {
        return Err(Violation(if hosts == 0 { "no host" } else { "more than one host" }));
    }
    match (lengths.as_slice(), encodings, upgrades.as_slice()) {
        ([_], 1, _) => Err(Violation("both a length and a transfer encoding")),
        ([_, _, ..], _, _) => Err(Violation("more than one length")),
        // Whatever is spoken then, nobody reads it: that is for web sockets, and not for another kind of HTTP.
        ([] | [0], 0, [value]) if value.eq_ignore_ascii_case(b"websocket") && !old => Ok(Follows::Another),
        (_, _, [_, ..]) => Err(Violation("an upgrade to something else than a web socket")),
        ([], 1, []) => Ok(Follows::Chunks),
        ([0] | [], _, []) => Ok(Follows::Nothing),
        ([length], _, []) => Ok(Follows::Length(*length)),
    }
}

/// Each ends with CRLF, the last is empty.
pub fn trailers(lines_of: &[u8]) -> Result<(), Violation> {
    for (number, line) in lines(lines_of).enumerate() {
        if number >= MOST_HEADERS {
            return Err(Violation("too many trailers"));
        }
        let (name, _) = header(line)?;
        if NOT_IN_TRAILERS.iter().any(|known| name.eq_ignore_ascii_case(known.as_bytes())) {
            return Err(Violation("a trailer that belongs before the body"));
        }
    }
    Ok(())
}

/// Whether a name may be in trailers.
pub fn may_trail(name: &str) -> bool {
    !NOT_IN_TRAILERS.contains(&name)
}

fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let bytes = bytes.strip_suffix(b"\r\n").unwrap_or(bytes);
    bytes.split_inclusive(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r\n").unwrap_or(line))
}

/// Whether it is of the older version.
fn request(line: &[u8]) -> Result<bool, Violation> {
    let mut words = line.split(|byte| *byte == b' ');
    let (Some(method), Some(target), Some(version), None) = (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(Violation("a first line that is not `METHOD /path HTTP/1.1`"));
    };
    let old = match version {
        b"HTTP/1.1" => false,
        b"HTTP/1.0" => true,
        _ => return Err(Violation("a version that is not HTTP/1.1")),
    };
    if !is_token(method) || method.len() > 32 {
        return Err(Violation("a method that is no word"));
    }
    if method.eq_ignore_ascii_case(b"CONNECT") {
        return Err(Violation("a request to connect to somebody else"));
    }
    if target == b"*" && method == b"OPTIONS" {
        return Ok(old);
    }
    if target.first() != Some(&b'/') {
        return Err(Violation("a target that is no path"));
    }
    if !target.iter().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'#' | b'\\')) {
        return Err(Violation("a target with a letter that may not be in it"));
    }
    match PathAndQuery::try_from(target) {
        Ok(read) if read.as_str().as_bytes() == target => Ok(old),
        _ => Err(Violation("a target with a letter that may not be in it")),
    }
}

fn header(line: &[u8]) -> Result<(&[u8], &[u8]), Violation> {
    if matches!(line.first(), Some(b' ' | b'\t')) {
        return Err(Violation("a header that goes on in the next line"));
    }
    let colon = line.iter().position(|byte| *byte == b':').ok_or(Violation("a header without a colon"))?;
    let (name, value) = (&line[..colon], &line[colon + 1..]);
    if !is_token(name) || name.len() > 256 {
        return Err(Violation("a header whose name is no word"));
    }
    Ok((name, value.trim_ascii()))
}

fn length(value: &[u8]) -> Result<u64, Violation> {
    let odd = Violation("a length that is no plain number");
    // More would be more than can be counted, for some.
    if value.is_empty() || value.len() > 18 || !value.iter().all(u8::is_ascii_digit) {
        return Err(odd);
    }
    std::str::from_utf8(value).ok().and_then(|text| text.parse().ok()).ok_or(odd)
}

fn is_token(word: &[u8]) -> bool {
    let may = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    !word.is_empty() && word.iter().all(may)
}
