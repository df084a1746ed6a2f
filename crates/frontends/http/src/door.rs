//! What every request passes, before anybody is known: which host it means, from which page it comes, and what it is called.

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::App;
use crate::problem::Problem;
use crate::tokens;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const TRACE: HeaderName = HeaderName::from_static("traceparent");

/// Around everything: an id, the headers that browsers heed, and the id in problems.
pub async fn around(State(app): State<App>, request: Request, next: Next) -> Response {
    let id = request_id(request.headers());
    let trace = request.headers().get(&TRACE).filter(|trace| is_trace(trace)).cloned();
    let mut response = match check(&app, request.headers()).and_then(|()| plain(request.headers())) {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    };
    app.count(response.status());
    if let Some(mut problem) = response.extensions_mut().remove::<Problem>() {
        problem.request_id = id.to_str().ok().map(str::to_owned);
        let body = serde_json::to_vec(&problem).unwrap_or_default();
        response.headers_mut().remove(header::CONTENT_LENGTH);
        *response.body_mut() = Body::from(body);
    }
    let headers = response.headers_mut();
    headers.insert(REQUEST_ID, id);
    if let Some(trace) = trace {
        headers.insert(TRACE, trace);
    }
    for (name, value) in [
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CONTENT_SECURITY_POLICY, "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

/// The client's own, where it can stand in a log; else a new one.
fn request_id(headers: &HeaderMap) -> HeaderValue {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
    let own = headers.get(&REQUEST_ID).filter(|id| (1..=64).contains(&id.len()) && id.as_bytes().iter().all(plain));
    own.cloned().unwrap_or_else(|| {
        let new = tokens::random(16).unwrap_or_default();
        HeaderValue::from_str(&new).unwrap_or_else(|_| HeaderValue::from_static("none"))
    })
}

/// `00-TRACE-SPAN-FLAGS`, as the W3C writes it.
fn is_trace(value: &HeaderValue) -> bool {
    let Ok(text) = value.to_str() else { return false };
    let parts: Vec<&str> = text.split('-').collect();
    let hex = |part: &&str| part.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    matches!(parts.as_slice(), [version, trace, span, flags]
        if [version.len(), trace.len(), span.len(), flags.len()] == [2, 32, 16, 2])
        && parts.iter().all(hex)
}

/// Against pages of others that a person looks at: a name of theirs may lead to this machine's loopback, and their scripts
/// send what they like to it.
fn check(app: &App, headers: &HeaderMap) -> Result<(), Problem> {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    if app.on_loopback && !is_loopback(host) {
        return Err(Problem::new(
            StatusCode::MISDIRECTED_REQUEST,
            "host",
            "this service is not what the header `Host` names",
        )
        .hint("call it by 127.0.0.1, [::1] or localhost"));
    }
    let Some(origin) = headers.get(header::ORIGIN) else { return Ok(()) };
    let own = origin.to_str().ok().and_then(|origin| origin.split_once("://")).is_some_and(|(_, from)| from == host);
    if own && !host.is_empty() {
        return Ok(());
    }
    Err(Problem::new(StatusCode::FORBIDDEN, "origin", "this service answers no pages of other origins")
        .hint("call it from a program, not from a page"))
}

/// Nothing is unpacked here: a few bytes could become more than there is memory.
fn plain(headers: &HeaderMap) -> Result<(), Problem> {
    let packed = |value: &HeaderValue| !value.as_bytes().eq_ignore_ascii_case(b"identity");
    if headers.get_all(header::CONTENT_ENCODING).iter().any(packed) {
        let detail = "the body must not be compressed: there is no `Content-Encoding` here";
        return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "media-type", detail).hint("send it as it is"));
    }
    Ok(())
}

fn is_loopback(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_this_machines_loopback_are_answered_there() {
        for host in ["localhost", "localhost:7070", "127.0.0.1:7070", "127.0.0.1", "[::1]:7070", "[::1]", "LOCALHOST:1"]
        {
            assert!(is_loopback(host), "{host}");
        }
        for host in [
            "", "evil.example", "evil.example:7070", "127.0.0.1.evil.example", "localhost.evil.example:80",
            "10.0.0.1:7070", "[::2]:7070", "0.0.0.0:7070",
        ] {
            assert!(!is_loopback(host), "{host}");
        }
    }

    #[test]
    fn a_trace_is_passed_on_only_if_it_is_one() {
        let good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        assert!(is_trace(&HeaderValue::from_static(good)));
        for bad in ["", "00", "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01", "00-x-y-01"] {
            assert!(!is_trace(&HeaderValue::from_str(bad).expect("a value")), "{bad}");
        }
    }
}
