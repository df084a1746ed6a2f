//! Which requests may be answered with what is kept, and which answers may be kept. Pure, and strict: whatever is not known to
//! be harmless passes as if nothing were kept.

use hyper::header::{
    CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG, HeaderName, LAST_MODIFIED,
    SET_COOKIE, TRAILER, TRANSFER_ENCODING, VARY,
};
use hyper::http::request::Parts;
use hyper::{HeaderMap, Method, StatusCode};

use super::entry::{Told, is_value};

/// Headers that say who asks and how, not what they may have. Any other could be a key to something, or ask for a part.
///
/// `cache-control` is among them: some tools always say that they want nothing kept, and mean indexes; of a file that never
/// changes they get the same either way.
const HARMLESS: [&str; 15] = [
    "accept", "accept-charset", "accept-encoding", "accept-language", "cache-control", "connection", "dnt", "host",
    "keep-alive", "pragma", "priority", "referer", "te", "upgrade-insecure-requests", "user-agent",
];
/// Of npm: which command it is, and for which package.
const HARMLESS_BEGINNINGS: [&str; 2] = ["npm-", "pacote-"];
/// What else is said by these names could be who somebody is.
const NOT_HARMLESS: [&str; 2] = ["npm-otp", "npm-session"];

/// Kept is only what is not encoded, which everybody takes; and none of what is told apart by the others.
const MAY_VARY: [&str; 4] =
    ["accept-encoding", "origin", "access-control-request-headers", "access-control-request-method"];

pub fn request(parts: &Parts) -> bool {
    let harmless = |name: &HeaderName| {
        let name = name.as_str();
        let begins = HARMLESS_BEGINNINGS.iter().any(|beginning| name.starts_with(beginning));
        HARMLESS.contains(&name) || begins && !NOT_HARMLESS.contains(&name)
    };
    parts.method == Method::GET && parts.uri.query().is_none() && parts.headers.keys().all(harmless)
}

/// How long it is, and what to tell of it. `length`: as whoever reads the body knows it.
pub fn answer(status: StatusCode, headers: &HeaderMap, length: Option<u64>) -> Option<(u64, Told)> {
    let odd = [SET_COOKIE, CONTENT_ENCODING, CONTENT_RANGE, TRANSFER_ENCODING, TRAILER];
    if status != StatusCode::OK || odd.iter().any(|name| headers.contains_key(name)) {
        return None;
    }
    let mut lengths = headers.get_all(CONTENT_LENGTH).iter();
    let said = lengths.next().and_then(|value| value.to_str().ok()).filter(|_| lengths.next().is_none())?;
    let said: u64 = said.bytes().all(|byte| byte.is_ascii_digit()).then(|| said.parse().ok()).flatten()?;
    if length != Some(said) || !may_be_kept(headers) || !is_the_same_for_all(headers) {
        return None;
    }
    // What could not be told again as it was is not told.
    let told = |name: HeaderName| {
        let mut values = headers.get_all(name).iter();
        let value = values.next().and_then(|value| value.to_str().ok()).filter(|value| is_value(value));
        value.filter(|_| values.next().is_none()).unwrap_or_default().to_owned()
    };
    Some((said, Told { content_type: told(CONTENT_TYPE), etag: told(ETAG), last_modified: told(LAST_MODIFIED) }))
}

/// Looked for anywhere in it, rather than read: whoever writes such a word in any way gets what they asked for.
fn may_be_kept(headers: &HeaderMap) -> bool {
    headers.get_all(CACHE_CONTROL).iter().all(|value| {
        let Ok(text) = value.to_str() else { return false };
        let text = text.to_ascii_lowercase();
        !["no-store", "no-cache", "private"].iter().any(|word| text.contains(word))
    })
}

fn is_the_same_for_all(headers: &HeaderMap) -> bool {
    headers.get_all(VARY).iter().all(|value| {
        let Ok(text) = value.to_str() else { return false };
        let known = |name: &str| MAY_VARY.iter().any(|known| known.eq_ignore_ascii_case(name.trim()));
        text.split(',').all(known)
    })
}

#[cfg(test)]
mod tests {
    use hyper::Request;
    use hyper::header::HeaderValue;

    use super::*;

    fn asks(method: &str, target: &str, headers: &[(&'static str, &'static str)]) -> bool {
        let mut request = Request::builder().method(method).uri(target);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        super::request(&request.body(()).expect("a request").into_parts().0)
    }

    fn answers(status: u16, length: u64, headers: &[(&'static str, &'static str)]) -> Option<(u64, Told)> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        super::answer(StatusCode::from_u16(status).expect("a status"), &map, Some(length))
    }

    #[test]
    fn what_tools_ask_for_is_fit() {
        assert!(asks(
            "GET",
            "/a.whl",
            &[("host", "a.test"), ("user-agent", "pip/24"), ("accept-encoding", "identity")]
        ));
        assert!(asks("GET", "/a.tgz", &[("npm-command", "install"), ("pacote-req-type", "tarball")]));
        assert!(asks("GET", "/a.jar", &[("cache-control", "no-cache, no-store"), ("pragma", "no-cache")]));
    }

    #[test]
    fn whoever_shows_a_key_or_asks_for_a_part_gets_their_own() {
        for header in [
            "authorization", "proxy-authorization", "cookie", "range", "if-range", "if-none-match",
            "if-modified-since", "if-match", "if-unmodified-since", "x-api-key", "private-token", "x-anything",
            "npm-otp", "npm-session", "expect", "upgrade", "forwarded", "x-forwarded-host", "x-http-method-override",
            "content-length",
        ] {
            assert!(!asks("GET", "/a.whl", &[(header, "x")]), "{header}");
        }
        assert!(!asks("HEAD", "/a.whl", &[]));
        assert!(!asks("POST", "/a.whl", &[]));
        assert!(!asks("GET", "/a.whl?x", &[]));
        assert!(!asks("GET", "/a.whl?", &[]));
    }

    #[test]
    fn only_a_whole_answer_that_is_for_everybody_is_kept() {
        let length = ("content-length", "5");
        let told = answers(200, 5, &[length, ("content-type", "a/b"), ("etag", "\"x\"")]).expect("it is fit");
        assert_eq!((told.0, told.1.content_type.as_str(), told.1.etag.as_str()), (5, "a/b", "\"x\""));
        let immutable = ("cache-control", "public, max-age=31536000, immutable");
        assert!(answers(200, 5, &[length, immutable, ("vary", "Accept-Encoding, Origin")]).is_some());
        for status in [201, 203, 204, 206, 301, 302, 304, 404, 500] {
            assert_eq!(answers(status, 5, &[length]), None, "{status}");
        }
        for bad in [
            ("set-cookie", "a=b"),
            ("content-encoding", "gzip"),
            ("content-range", "bytes 0-4/9"),
            ("transfer-encoding", "chunked"),
            ("trailer", "x"),
            ("cache-control", "no-store"),
            ("cache-control", "public, No-Store"),
            ("cache-control", "private=\"x\""),
            ("cache-control", "no-cache"),
            ("vary", "*"),
            ("vary", "accept-encoding, cookie"),
            ("vary", "user-agent"),
            ("vary", ""),
            ("content-length", "5"),
        ] {
            assert_eq!(answers(200, 5, &[length, bad]), None, "{bad:?}");
        }
        assert_eq!(answers(200, 5, &[]), None);
        assert_eq!(answers(200, 4, &[length]), None);
        assert_eq!(answers(200, 5, &[("content-length", "+5")]), None);
    }
}
