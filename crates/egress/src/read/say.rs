//! What the gate itself says to a client, in words that a person reads too.

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use hyper::{Response, StatusCode};

use super::body::Answer;

pub fn page(status: StatusCode, text: String) -> Response<Answer> {
    let mut response = Response::new(Answer::Said(Full::new(Bytes::from(text))));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// The request itself is unsound.
pub fn unsound(why: &str) -> Response<Answer> {
    page(StatusCode::BAD_REQUEST, format!("refused by belljar: the request has {why}\nrule: egress.http\n"))
}

/// Something on the other side is not as it should be.
pub fn broken(why: &str) -> Response<Answer> {
    page(StatusCode::BAD_GATEWAY, format!("belljar: {why}\n"))
}

/// A request that is not allowed.
pub fn refused(what: &str, why: &str, rule: &str, hint: &str) -> Response<Answer> {
    let mut text = format!("refused by belljar: {what}\n");
    for (name, value) in [("why", why), ("rule", rule), ("hint", hint)] {
        if !value.is_empty() {
            text.push_str(&format!("{name}: {}\n", value.replace(['\r', '\n'], " ")));
        }
    }
    page(StatusCode::FORBIDDEN, text)
}
