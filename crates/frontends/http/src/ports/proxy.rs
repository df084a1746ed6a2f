//! From a visitor to a server inside, and back.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http_body_util::BodyExt;
use hyper::client::conn::http1;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::timeout;

use super::counted::{Counted, Counts};
use super::{Port, headers};
use crate::App;
use crate::crowd::Connection;
use crate::opened::Using;
use crate::problem::{Problem, Result};

/// Until a server inside begins to answer.
const PATIENCE: Duration = Duration::from_secs(120);
/// What a person's browser brings once, in the address, and never again.
const IN_AN_ADDRESS: &str = "belljar_token";

/// What is under the name of a port is that server's, all of it; the rest is the API's.
pub async fn or_the_api(State(app): State<App>, request: Request, next: Next) -> Response {
    let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default().to_owned();
    let Some(label) = app.ports_at.label(&host) else { return next.run(request).await };
    let answer = visit(&app, label, &host, request).await.unwrap_or_else(|problem| {
        let mut response = problem.into_response();
        for (name, value) in [(header::CACHE_CONTROL, "no-store"), (header::X_CONTENT_TYPE_OPTIONS, "nosniff")] {
            response.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        response
    });
    app.count(answer.status());
    answer
}

async fn visit(app: &App, label: &str, host: &str, mut request: Request) -> Result<Response> {
    let port = app.ports.find(label).ok_or_else(Problem::not_found)?;
    if let Some(answer) = let_in(app, &port, host, &request)? {
        return Ok(answer);
    }
    // One who names another than it asks is answered by neither.
    let same = request.uri().authority().is_none_or(|named| named.as_str().eq_ignore_ascii_case(host));
    if !same || matches!(*request.method(), Method::CONNECT | Method::TRACE) {
        return Err(Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method", "this can't be asked of a server inside"));
    }
    let held = Held {
        using: app.opened.uses(&port.key.0, &port.key.1)?,
        place: request.extensions().get::<Connection>().cloned(),
        permit: port.visitors.clone().try_acquire_owned().map_err(|_| {
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, "full", "too many visitors of this port are there").after(1)
        })?,
    };
    let websocket = headers::is_websocket(request.headers());
    let upgrades: Option<OnUpgrade> = websocket.then(|| hyper::upgrade::on(&mut request));
    let (visit, stream) = Visit::begin(&port, held).await?;
    let inside = inwards(request, host, app.ports_at.scheme, port.number)?;
    let (counts, over) = (visit.counts.clone(), port.over.subscribe());
    let mut answer = send(inside, stream, counts, over.clone()).await?;
    let accepted =
        websocket && answer.status() == StatusCode::SWITCHING_PROTOCOLS && headers::is_websocket(answer.headers());
    if answer.status() == StatusCode::SWITCHING_PROTOCOLS && !accepted {
        return Err(bad("the server inside went on with something that nobody asked for"));
    }
    headers::outwards(answer.headers_mut(), accepted);
    if let (true, Some(visitor)) = (accepted, upgrades) {
        let server = hyper::upgrade::on(&mut answer);
        tokio::spawn(both_ways(visitor, server, over, visit));
        return Ok(answer.map(|_| Body::empty()));
    }
    // The visit lasts as long as its answer does.
    Ok(answer.map(move |body| {
        Body::new(body.map_frame(move |frame| {
            let _kept = &visit;
            frame
        }))
    }))
}

/// Whether somebody may come; or what they are answered first.
fn let_in(app: &App, port: &Port, host: &str, request: &Request) -> Result<Option<Response>> {
    let no = || {
        Problem::new(StatusCode::UNAUTHORIZED, "unauthorized", "there is no token for this port, or none that holds")
            .hint("send `Belljar-Port-Token`; or come once with `?belljar_token=`")
    };
    let sent: &HeaderMap = request.headers();
    if let Some(token) = sent.get(headers::TOKEN) {
        return token.to_str().ok().filter(|token| port.lets_in(token)).map(|_| None).ok_or_else(no);
    }
    if let Some((token, rest)) = token_in(request.uri()) {
        let shown = request.method() == Method::GET && port.lets_in(&token);
        return if shown { welcome(app, &token, &rest).map(Some) } else { Err(no()) };
    }
    headers::cookie_of_ours(sent).filter(|token| port.lets_in(token)).ok_or_else(no)?;
    // A browser brings a cookie along whoever's page asks for it.
    match sent.get(header::ORIGIN) {
        Some(origin) if !headers::is_own(origin, host) => {
            Err(Problem::new(StatusCode::FORBIDDEN, "origin", "a page of another origin asks, with a cookie")
                .hint("send `Belljar-Port-Token` instead"))
        }
        _ => Ok(None),
    }
}

/// The token in an address, and the address without it.
fn token_in(uri: &Uri) -> Option<(String, String)> {
    let query = uri.query()?;
    let named = |part: &&str| part.split_once('=').is_some_and(|(name, _)| name == IN_AN_ADDRESS);
    let token = query.split('&').find(named)?.split_once('=')?.1.to_owned();
    let rest: Vec<&str> = query.split('&').filter(|part| !named(part)).collect();
    // Two slashes at the beginning would lead to another host.
    let path = format!("/{}", uri.path().trim_start_matches('/'));
    let rest = if rest.is_empty() { path } else { format!("{path}?{}", rest.join("&")) };
    Some((token, rest))
}

/// From now on the browser brings it as a cookie, and its history has it nowhere but here.
fn welcome(app: &App, token: &str, rest: &str) -> Result<Response> {
    let secure = if app.ports_at.scheme == "https" { "; Secure" } else { "" };
    let cookie = format!("{}={token}; Path=/; HttpOnly; SameSite=Lax{secure}", headers::COOKIE);
    let headers = [
        (header::SET_COOKIE, cookie),
        (header::LOCATION, rest.to_owned()),
        (header::CACHE_CONTROL, "no-store".to_owned()),
        (header::REFERRER_POLICY, "no-referrer".to_owned()),
    ];
    Ok((StatusCode::SEE_OTHER, headers).into_response())
}

fn inwards(request: Request, host: &str, scheme: &str, port: u16) -> Result<Request> {
    let (mut parts, body) = request.into_parts();
    let path = parts.uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
    parts.uri = path.parse().map_err(|_| Problem::wrong("this is no path"))?;
    parts.version = axum::http::Version::HTTP_11;
    headers::inwards(&mut parts.headers, host, scheme, port);
    parts.extensions.clear();
    Ok(Request::from_parts(parts, body))
}

async fn send(
    request: Request,
    stream: tokio::net::TcpStream,
    counts: Arc<Counts>,
    mut over: watch::Receiver<bool>,
) -> Result<Response<hyper::body::Incoming>> {
    // Small messages go on as they come; where that can't be said, they wait a little.
    drop(stream.set_nodelay(true));
    let mut builder = http1::Builder::new();
    builder.max_buf_size(64 << 10).max_headers(128);
    let (mut sender, connection) =
        builder.handshake(TokioIo::new(Counted { stream, counts })).await.map_err(|_| bad("it does not answer"))?;
    tokio::spawn(async move {
        tokio::select! {
            ended = connection.with_upgrades() => drop(ended),
            () = closed(&mut over) => {}
        }
    });
    match timeout(PATIENCE, sender.send_request(request)).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(error)) => Err(bad(&format!("the server inside has no answer that is one: {error}"))),
        Err(_) => {
            Err(Problem::new(StatusCode::GATEWAY_TIMEOUT, "no-answer", "the server inside takes too long to answer"))
        }
    }
}

/// Comes back when nobody may come any more.
async fn closed(over: &mut watch::Receiver<bool>) {
    drop(over.wait_for(|over| *over).await);
}

async fn both_ways(visitor: OnUpgrade, server: OnUpgrade, mut over: watch::Receiver<bool>, visit: Visit) {
    if let (Ok(visitor), Ok(server)) = (visitor.await, server.await) {
        let (mut visitor, mut server) = (TokioIo::new(visitor), TokioIo::new(server));
        tokio::select! {
            // How it ends is theirs.
            ended = tokio::io::copy_bidirectional(&mut visitor, &mut server) => drop(ended),
            () = closed(&mut over) => {}
        }
    }
    drop(visit);
}

fn bad(detail: &str) -> Problem {
    Problem::new(StatusCode::BAD_GATEWAY, "bad-answer", detail)
}

/// Kept as long as somebody is there.
struct Held {
    #[expect(dead_code, reason = "it is kept, and not looked at")]
    using: Option<Using>,
    #[expect(dead_code, reason = "it is kept, and not looked at")]
    place: Option<Connection>,
    #[expect(dead_code, reason = "it is kept, and not looked at")]
    permit: OwnedSemaphorePermit,
}

/// One visitor, led in; its end is on the record, however it comes.
struct Visit {
    port: Arc<Port>,
    number: u64,
    counts: Arc<Counts>,
    held: Option<Held>,
}

impl Visit {
    async fn begin(port: &Arc<Port>, held: Held) -> Result<(Visit, tokio::net::TcpStream)> {
        let port = port.clone();
        // On its own: a question that is not waited for would be the last, and a visitor that has gone would never leave.
        let led = tokio::spawn(async move {
            let (number, to) = (port.usher.next(), port.number);
            let Some(stream) = port.usher.asking.comes(number, to).await? else { return Ok(None) };
            Ok(Some((Visit { port, number, counts: Arc::default(), held: Some(held) }, stream)))
        });
        let led = led.await.map_err(|_| service::Lost::Ended)?;
        led.map_err(|error| Problem::from(service::Lost::Io(error)))?.ok_or_else(|| {
            Problem::new(StatusCode::BAD_GATEWAY, "nobody-listens", "nobody listens at that port in the sandbox")
                .hint("start the server first")
        })
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        drop(self.held.take());
        let (port, number, counts) = (self.port.clone(), self.number, self.counts.clone());
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        runtime.spawn(async move {
            let (said, told) = (counts.read.load(Ordering::Relaxed), counts.written.load(Ordering::Relaxed));
            // With the sandbox, whoever would write it down has ended too.
            drop(port.usher.asking.leaves(number, port.number, said, told).await);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_taken_out_of_an_address_and_nothing_else_is() {
        let taken = |uri: &str| token_in(&uri.parse().expect("an address"));
        let pair = |token: &str, rest: &str| Some((token.to_owned(), rest.to_owned()));
        assert_eq!(taken("/a/b?x=1&belljar_token=bp_t&y=2"), pair("bp_t", "/a/b?x=1&y=2"));
        assert_eq!(taken("/?belljar_token=bp_t"), pair("bp_t", "/"));
        assert_eq!(taken("//evil.example/?belljar_token=t"), pair("t", "/evil.example/"));
        assert_eq!(taken("/?belljar_token=a&belljar_token=b"), pair("a", "/"));
        assert_eq!((taken("/"), taken("/?a=belljar_token"), taken("/?xbelljar_token=1")), (None, None, None));
    }
}
