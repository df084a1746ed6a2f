//! What a client speaks, from its first bytes.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// Too little to tell.
    Unclear,
    Tls,
    Http,
    Other,
}

/// Longer than any method that somebody uses.
const LONGEST_METHOD: usize = 24;

pub fn look(bytes: &[u8]) -> Look {
    match bytes {
        [] | [22] => Look::Unclear,
        [22, 3, ..] => Look::Tls,
        _ => http(bytes),
    }
}

/// Servers overlook empty lines before a request: so whoever begins with one would be taken for somebody who speaks something
/// else, and could ask the same server for another host. The reader refuses it.
fn after_empty_lines(mut bytes: &[u8]) -> &[u8] {
    while let [b'\r' | b'\n', rest @ ..] = bytes {
        bytes = rest;
    }
    bytes
}

/// A method, a space, and the start of what one can ask for. Others have words in big letters too (`EHLO mail`, `GET key`),
/// so what follows the space counts.
fn http(bytes: &[u8]) -> Look {
    let bytes = after_empty_lines(bytes);
    if bytes.is_empty() {
        return Look::Unclear;
    }
    let letters = bytes.iter().take_while(|byte| byte.is_ascii_uppercase() || **byte == b'-').count();
    if letters == 0 || letters > LONGEST_METHOD {
        return Look::Other;
    }
    let (method, rest) = bytes.split_at(letters);
    match rest {
        [] | [b' '] => Look::Unclear,
        [b' ', b'/', ..] => Look::Http,
        [b' ', ..] if method == b"CONNECT" => Look::Http,
        [b' ', target @ ..] => ["http://", "https://", "* HTTP/"]
            .into_iter()
            .map(|start| {
                let same = target.iter().zip(start.bytes()).all(|(one, other)| one.eq_ignore_ascii_case(&other));
                match (same, target.len() >= start.len()) {
                    (true, true) => Look::Http,
                    (true, false) => Look::Unclear,
                    (false, _) => Look::Other,
                }
            })
            .find(|look| *look != Look::Other)
            .unwrap_or(Look::Other),
        _ => Look::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_known_by_their_start() {
        for text in [
            "GET / HTTP/1.1\r\n", "POST /a", "PROPFIND /", "M-SEARCH * HTTP/1.1", "GET http://a/", "GET HTTPS://a/",
            "CONNECT a:443 HTTP/1.1", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "VERSION-CONTROL /",
            "\r\n\r\nGET / HTTP/1.1", "\nPOST /",
        ] {
            assert_eq!(look(text.as_bytes()), Look::Http, "{text}");
            let early = (0..text.len()).map(|end| look(&text.as_bytes()[..end]));
            assert!(early.clone().all(|look| look != Look::Other), "{text}");
        }
    }

    #[test]
    fn other_protocols_are_not_taken_for_requests() {
        for text in [
            "SSH-2.0-OpenSSH_9.6\r\n", "EHLO host\r\n", "HELO h.example\r\n", "GET key\r\n", "*1\r\n$4\r\nPING\r\n",
            "PING\r\n", "get x\r\n", "a1 LOGIN x y\r\n", "\0\0\0\x08\x04\x52\x16\x2f", "USER me\r\n",
            "AMQP\0\0\x09\x01", "\x10\x0c\0\x04MQTT", "GET\r\n", " GET /", "\x16\x02", "ABCDEFGHIJKLMNOPQRSTUVWXYZ /",
        ] {
            assert_eq!(look(text.as_bytes()), Look::Other, "{text:?}");
        }
    }

    #[test]
    fn tls_is_known_by_its_record() {
        assert_eq!(look(&[22]), Look::Unclear);
        assert_eq!(look(&[22, 3]), Look::Tls);
        assert_eq!(look(&[22, 3, 1, 0, 9]), Look::Tls);
    }
}
