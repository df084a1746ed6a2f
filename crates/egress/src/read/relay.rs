//! One request: what it is, whether it may go, what is added to it; and its answer. The same for both versions of HTTP.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::{Body, Incoming};
use hyper::client::conn::{http1, http2};
use hyper::header::{
    ACCEPT_ENCODING, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, ETAG, EXPECT, HOST, HeaderName,
    HeaderValue, IF_RANGE, LAST_MODIFIED, RANGE, TE, TRANSFER_ENCODING, UPGRADE,
};
use hyper::http::request::Parts;
use hyper::http::uri::PathAndQuery;
use hyper::{HeaderMap, Method, Request, Response, StatusCode, Uri, Version};
use model::{
    AskedAtGate, Cached, Judgement, NetworkDeed, NetworkEvent, OutgoingRequest, Reason, Refusal, Retry, Ruling, Trouble,
};
use tokio::task::JoinHandle;
use zeroize::Zeroizing;

use super::body::{Answer, Cut, Outgoing, conceal_headers};
use super::conceal::Conceal;
use super::exchange::{Exchange, about};
use super::fence::{LARGEST_HEAD, MOST_HEADERS, Violation, is_host};
use super::path::Path;
use super::say;
use super::secrets::{Applied, Denial, Keys, Plan};
use super::value::SecretValue;
use super::watch::Watch;
use crate::cache::{self, Cache, Found, Key, Told, Whole};
use crate::gate::passage::Passage;
use crate::gate::session::Session;

/// As much of a body is read, at most, before a person is asked about it: its digest is of that much.
const SHOWN_BODY: usize = 64 << 10;
/// For it to come: some send nothing until they have heard something.
const SHOWN_WAITS: Duration = Duration::from_secs(2);
/// Both ways of a web socket.
const TUNNEL: usize = 32 << 10;

const HOP_BY_HOP: [HeaderName; 7] = [
    CONNECTION,
    EXPECT,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    HeaderName::from_static("proxy-authorization"),
    HeaderName::from_static("http2-settings"),
    UPGRADE,
];

/// One connection of a client, with its one to the server.
pub struct Relay {
    pub session: Rc<Session>,
    pub passage: Rc<Passage>,
    pub secrets: Rc<Vec<SecretValue>>,
    judged: Vec<Judgement>,
    encrypted: bool,
    cache: Option<Rc<Cache>>,
    upstream: Upstream,
    pub watch: Option<Arc<Watch>>,
    requests: Cell<u64>,
    /// A web socket that was opened: goes on when HTTP has ended.
    tunnel: RefCell<Option<JoinHandle<()>>>,
}

pub enum Upstream {
    One(RefCell<http1::SendRequest<Outgoing>>),
    Many(http2::SendRequest<Outgoing>),
    /// It can't be reached, because of this.
    Nobody(String),
}

/// Why there is no answer at all: the connection ends.
#[derive(Debug, thiserror::Error)]
pub enum Ended {
    #[error("the server has closed the connection")]
    Closed,
    #[error("{0}")]
    Record(String),
}

/// What was sent encoded, and what is shown in its place.
type Encoded = Vec<(Zeroizing<String>, String)>;

/// What goes on, once it is known to be sound.
struct Sound {
    path: Path,
    query: String,
    authority: Option<String>,
}

impl Relay {
    pub fn new(
        (session, passage): (Rc<Session>, Rc<Passage>),
        secrets: Rc<Vec<SecretValue>>,
        encrypted: bool,
        cache: Option<Rc<Cache>>,
        upstream: Upstream,
        watch: Option<Arc<Watch>>,
    ) -> Relay {
        let judged = secrets.iter().map(|secret| session.porter.adds(&secret.name, &passage.endpoint)).collect();
        let (requests, tunnel) = (Cell::new(0), RefCell::new(None));
        Relay { session, passage, secrets, judged, encrypted, cache, upstream, watch, requests, tunnel }
    }

    pub fn tunnel(&self) -> Option<JoinHandle<()>> {
        self.tunnel.borrow_mut().take()
    }

    pub async fn serve(&self, request: Request<Incoming>) -> Result<Response<Answer>, Ended> {
        let number = self.requests.get() + 1;
        self.requests.set(number);
        let answer = self.answer(request, number).await;
        if let (Some(watch), Ok(answer)) = (&self.watch, &answer) {
            watch.answers(number, answer.status() == StatusCode::SWITCHING_PROTOCOLS);
        }
        answer
    }

    async fn answer(&self, mut request: Request<Incoming>, number: u64) -> Result<Response<Answer>, Ended> {
        if let Some(violation) = self.watch.as_ref().and_then(|watch| watch.head(number)) {
            // Nothing of what was said is believed, so nothing of it is in the record.
            return self.unsound(&self.exchange("", ""), violation);
        }
        let raw = request.uri().path();
        let sound = match self.sound(&request) {
            Ok(sound) => sound,
            Err(violation) => return self.unsound(&self.exchange(request.method().as_str(), raw), violation),
        };
        let exchange = self.exchange(request.method().as_str(), &sound.path.sent);
        let keys = self.keys();
        let mut judgement = self.judge(&request, &sound);
        if judgement.ruling == Ruling::Deny {
            return self.denied(&exchange, &judgement);
        }
        let plan = match keys.plan(request.headers(), &sound.path.sent, &sound.query) {
            Ok(plan) => plan,
            Err(denial) => return self.secret_denied(&exchange, denial),
        };
        for used in plan.used.iter().filter_map(|number| self.judged.get(*number)) {
            judgement = judgement.with(used.reasons.clone());
        }
        let upgrade = hyper::upgrade::on(&mut request);
        let switches = self.watch.is_some() && request.headers().contains_key(UPGRADE);
        let (parts, body) = request.into_parts();
        let fence = self.watch.clone().map(|watch| (watch, number));
        let mut body = Outgoing::new(body, self.secrets.clone(), fence, exchange.clone());
        let mut why = String::new();
        match judgement.ruling {
            Ruling::Allow => {}
            Ruling::Deny => return self.denied(&exchange, &judgement),
            Ruling::Ask => match self.ask(&judgement, &parts, &sound, &mut body).await {
                Ok(Ok(approved)) => why = approved,
                Ok(Err(refusal)) => return self.refused(&exchange, &judgement, &refusal),
                Err(_) => return self.cut(&exchange),
            },
        }
        // After the answer: a person may take longer than a value lasts.
        if let Err(denial) = keys.ready(&plan).await {
            return self.secret_denied(&exchange, denial);
        }
        let rule = judgement.reasons.first().map_or("", |reason| &reason.rule);
        let method = parts.method.clone();
        // After all that decides whether it may go: what is kept is for whoever could have fetched it.
        let key = self.key(&parts, &sound, &plan, &body);
        match self.kept(key.as_ref()).await {
            Found::Nothing => {}
            Found::Damaged(digest) => exchange.is_cached(Cached::Damaged(digest)),
            Found::Whole(whole) => {
                exchange.is_cached(Cached::Served(whole.entry.digest.clone()));
                self.goes(&exchange, rule, why, &plan)?;
                return Ok(serve(whole, exchange));
            }
        }
        let (onward, encoded) = match self.onward(parts, &sound, &plan, switches) {
            Ok(onward) => onward,
            Err(denial) => return self.secret_denied(&exchange, denial),
        };
        self.goes(&exchange, rule, why, &plan)?;
        let response = match self.send(onward.map(|()| body)).await {
            Ok(response) => response,
            Err(_) if exchange.stopped().is_some() => return self.cut(&exchange),
            // As if it had been the client's own connection that was closed: it knows whether it may try again.
            Err(Unsent::Closed) if number > 1 => return Err(Ended::Closed),
            Err(unsent) => {
                let why = unsent.to_string();
                exchange.is_answered(StatusCode::BAD_GATEWAY.as_u16());
                return Ok(say::broken(&why));
            }
        };
        self.back(response, &exchange, (&plan, &encoded), (&method, key), switches.then_some(upgrade))
    }

    /// Under what its answer is kept, if it may be: the very request that was judged, if it is one that the policy calls
    /// immutable, and there is nothing about it that is not for everybody.
    fn key(&self, parts: &Parts, sound: &Sound, plan: &Plan, body: &Outgoing) -> Option<Key> {
        self.cache.as_ref()?;
        let one_reading = sound.path.readings.len() == 1 && sound.query.is_empty();
        let secrets = self.looked_for(plan).next().is_some();
        if !self.encrypted || !one_reading || secrets || !body.is_end_stream() || !cache::fit_request(parts) {
            return None;
        }
        let about = OutgoingRequest {
            destination: self.passage.endpoint.clone(),
            method: parts.method.as_str().to_owned(),
            path: sound.path.sent.clone(),
            query: String::new(),
            body: Some(0),
        };
        self.session.porter.keeps(&about).then(|| Key::new(&about.destination, &about.path)).flatten()
    }

    async fn kept(&self, key: Option<&Key>) -> Found {
        match (&self.cache, key) {
            (Some(cache), Some(key)) => cache.find(key).await,
            _ => Found::Nothing,
        }
    }

    fn exchange(&self, method: &str, path: &str) -> Rc<Exchange> {
        Rc::new(Exchange::new(self.session.clone(), self.passage.clone(), self.watch.clone(), method, path))
    }

    fn keys(&self) -> Keys<'_> {
        let exposed = !self.encrypted && !self.passage.address.is_some_and(|address| address.is_loopback());
        Keys { secrets: &self.secrets, judged: &self.judged, exposed }
    }

    /// What the fence can't know, or has not seen because it is of the other version.
    fn sound(&self, request: &Request<Incoming>) -> Result<Sound, Violation> {
        let (uri, headers) = (request.uri(), request.headers());
        if request.method() == Method::CONNECT {
            return Err(Violation("a request to connect to somebody else"));
        }
        if headers.len() > MOST_HEADERS {
            return Err(Violation("too many headers"));
        }
        let size: usize = headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum();
        if size > LARGEST_HEAD {
            return Err(Violation("a head that is too large"));
        }
        let mut hosts = headers.get_all(HOST).iter();
        let same = |value: &HeaderValue| value.to_str().is_ok_and(|said| is_host(said, &self.passage.endpoint));
        let (host, more) = (hosts.next(), hosts.next());
        if more.is_some() || host.is_some_and(|host| !same(host)) {
            return Err(Violation("a host that is not the one of this connection"));
        }
        let authority = match self.upstream {
            Upstream::Many(_) => {
                let authority = uri.authority().map(|authority| authority.as_str()).ok_or(Violation("no authority"))?;
                if !is_host(authority, &self.passage.endpoint) {
                    return Err(Violation("an authority that is not the host of this connection"));
                }
                if uri.scheme_str() != Some("https") {
                    return Err(Violation("a scheme that is not https"));
                }
                Some(authority.to_owned())
            }
            Upstream::One(_) | Upstream::Nobody(_) if host.is_none() || uri.authority().is_some() => {
                return Err(Violation("no host"));
            }
            Upstream::One(_) | Upstream::Nobody(_) => None,
        };
        if uri.path() == "*" && request.method() != Method::OPTIONS {
            return Err(Violation("a target that is no path"));
        }
        let path = Path::read(uri.path())?;
        let query = uri.query().unwrap_or_default().to_owned();
        if !query.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\') {
            return Err(Violation("a query with a letter that may not be in it"));
        }
        Ok(Sound { path, query, authority })
    }

    /// The strictest answer to all ways in which the path can be taken.
    fn judge(&self, request: &Request<Incoming>, sound: &Sound) -> Judgement {
        let about = |path: &String| OutgoingRequest {
            destination: self.passage.endpoint.clone(),
            // It begins as a GET, and then carries whatever both sides like: no download.
            method: match request.headers().contains_key(UPGRADE) {
                true => model::WEB_SOCKET.to_owned(),
                false => request.method().as_str().to_owned(),
            },
            path: path.clone(),
            query: sound.query.clone(),
            body: request.body().size_hint().exact(),
        };
        let judged = sound.path.readings.iter().map(|path| self.session.porter.lets(&about(path)));
        judged.reduce(|one, other| if other.ruling > one.ruling { other } else { one }).unwrap_or_else(|| {
            Judgement::of(Vec::new(), || reason("egress.http", "it has no path".to_owned(), String::new()))
        })
    }

    /// Asks a person, who is shown the digest of as much of the body as has come. What they saw is what is sent first.
    async fn ask(
        &self,
        judgement: &Judgement,
        parts: &Parts,
        sound: &Sound,
        body: &mut Outgoing,
    ) -> Result<Result<String, Refusal>, Cut> {
        let told = body.size_hint().exact();
        let (mut length, mut digest, mut whole) = (0, blake3::Hasher::new(), body.is_end_stream());
        let deadline = tokio::time::sleep(SHOWN_WAITS);
        tokio::pin!(deadline);
        while !whole && length < SHOWN_BODY {
            let piece = tokio::select! {
                piece = poll_fn(|context| body.poll_ahead(context)) => piece,
                () = &mut deadline => break,
            };
            match piece {
                Some(piece) => {
                    let piece = piece?;
                    length += piece.len();
                    digest.update(&piece);
                }
                None => whole = true,
            }
        }
        whole |= told == Some(length as u64);
        let digest = digest.finalize().to_hex();
        // A longer body is not bound by it beyond that, and whoever answers is told so.
        let digest = if whole { digest.to_string() } else { format!("{digest} (of its first {length} bytes)") };
        let target = if sound.query.is_empty() {
            sound.path.sent.clone()
        } else {
            format!("{}?{}", sound.path.sent, sound.query)
        };
        let asked = AskedAtGate {
            caller: self.passage.caller.clone(),
            destination: self.passage.endpoint.clone(),
            request: Some((parts.method.as_str().to_owned(), target)),
            body: (length > 0 || !whole).then(|| (told.unwrap_or(length as u64), digest)),
        };
        let answer = self.session.porter.asks(judgement, &asked).await;
        Ok(answer.map(|approval| format!("approved by {}", approval.by)))
    }

    /// As it is sent: what was judged, with what was decided to be added.
    fn onward(
        &self,
        mut parts: Parts,
        sound: &Sound,
        plan: &Plan,
        switches: bool,
    ) -> Result<(Request<()>, Encoded), Denial> {
        let named: Vec<HeaderName> = parts
            .headers
            .get_all(CONNECTION)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(','))
            .filter_map(|name| name.trim().parse().ok())
            .filter(|name| ![HOST, CONTENT_LENGTH, TRANSFER_ENCODING].contains(name))
            .collect();
        for name in named.iter().chain(&HOP_BY_HOP) {
            parts.headers.remove(name);
        }
        if !matches!(self.upstream, Upstream::Many(_)) {
            parts.headers.remove(TE);
        }
        if switches {
            parts.headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
            parts.headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
        }
        let Applied { query, encoded } = self.keys().apply(plan, &mut parts.headers, &sound.query)?;
        if self.looked_for(plan).next().is_some() {
            // So that the value can be seen if it comes back: whole, and as it is.
            parts.headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
            parts.headers.remove(RANGE);
            parts.headers.remove(IF_RANGE);
        }
        let unfit = |_| Denial {
            rule: "secret.value".to_owned(),
            why: "what would be sent is no request any more".to_owned(),
            grant: String::new(),
            secret: None,
        };
        let target = if query.is_empty() && parts.uri.query().is_none() {
            sound.path.sent.clone()
        } else {
            format!("{}?{query}", sound.path.sent)
        };
        let mut uri = hyper::http::uri::Parts::default();
        uri.path_and_query = Some(PathAndQuery::try_from(target).map_err(|_| unfit(()))?);
        if let Some(authority) = &sound.authority {
            uri.scheme = Some(hyper::http::uri::Scheme::HTTPS);
            uri.authority = Some(authority.parse().map_err(|_| unfit(()))?);
        }
        parts.uri = Uri::from_parts(uri).map_err(|_| unfit(()))?;
        parts.version = if sound.authority.is_some() { Version::HTTP_2 } else { Version::HTTP_11 };
        Ok((Request::from_parts(parts, ()), encoded))
    }

    /// First it is written down, then it goes.
    fn goes(&self, exchange: &Exchange, rule: &str, why: String, plan: &Plan) -> Result<(), Ended> {
        exchange.goes(rule, why)?;
        for number in &plan.used {
            let judged = self.judged.get(*number).and_then(|judgement| judgement.reasons.first());
            let event = NetworkEvent {
                secret: self.secrets.get(*number).map(|secret| secret.name.clone()),
                rule: judged.map_or(String::new(), |reason| reason.rule.clone()),
                ..exchange.event(NetworkDeed::Secret)
            };
            self.session.record(&event)?;
        }
        Ok(())
    }

    async fn send(&self, request: Request<Outgoing>) -> Result<Response<Incoming>, Unsent> {
        match &self.upstream {
            Upstream::One(sender) => {
                poll_fn(|context| sender.borrow_mut().poll_ready(context)).await.map_err(|_| Unsent::Closed)?;
                let answer = sender.borrow_mut().send_request(request);
                Ok(answer.await?)
            }
            Upstream::Many(sender) => {
                let mut sender = sender.clone();
                sender.ready().await.map_err(|_| Unsent::Closed)?;
                Ok(sender.send_request(request).await?)
            }
            Upstream::Nobody(why) => Err(Unsent::Nobody(why.clone())),
        }
    }

    fn back(
        &self,
        mut response: Response<Incoming>,
        exchange: &Rc<Exchange>,
        (plan, encoded): (&Plan, &Encoded),
        (method, key): (&Method, Option<Key>),
        upgrade: Option<hyper::upgrade::OnUpgrade>,
    ) -> Result<Response<Answer>, Ended> {
        let status = response.status();
        exchange.is_answered(status.as_u16());
        let switched = status == StatusCode::SWITCHING_PROTOCOLS;
        if switched {
            let Some(client) = upgrade else {
                return Ok(say::broken("the server wants to speak something that nobody asked for"));
            };
            let server = hyper::upgrade::on(&mut response);
            let tunnel = tokio::task::spawn_local(tunnel(client, server, exchange.clone()));
            *self.tunnel.borrow_mut() = Some(tunnel);
        }
        let (mut parts, body) = response.into_parts();
        // It would lead the client to a protocol that does not pass here.
        parts.headers.remove("alt-svc");
        parts.headers.remove("keep-alive");
        parts.headers.remove("proxy-connection");
        let mut conceal = None;
        // Nobody can be told what was not fetched yet.
        if self.looked_for(plan).any(|secret| secret.value().is_some()) {
            // Without a way to look for the value, nothing comes back.
            let Some(looks) = Conceal::new(self.looked_for(plan), encoded) else {
                return Ok(say::broken("what came back can't be searched for the secrets of this host"));
            };
            let empty = body.is_end_stream() || *method == Method::HEAD || switched;
            if !empty && is_encoded(&parts.headers) {
                return Ok(say::broken(
                    "what came back is compressed, and can't be searched for the secrets of this host",
                ));
            }
            conceal_headers(&looks, &mut parts.headers);
            // The server's own words for its status are not needed by anybody.
            parts.extensions.remove::<hyper::ext::ReasonPhrase>();
            if !empty {
                parts.headers.remove(CONTENT_LENGTH);
                conceal = Some(looks);
            }
        }
        let keeping = match (&self.cache, key) {
            (Some(cache), Some(key)) if conceal.is_none() => {
                let fit = cache::fit_answer(status, &parts.headers, body.size_hint().exact());
                fit.and_then(|(length, told)| cache.begin(&key, length, told))
            }
            _ => None,
        };
        Ok(Response::from_parts(parts, Answer::relayed(body, conceal, keeping, exchange.clone())))
    }

    /// Secrets whose values must not come back: not only of what this request has, since a server may keep what an earlier
    /// one said and tell it to the next.
    fn looked_for(&self, plan: &Plan) -> impl Iterator<Item = &SecretValue> {
        let may_be_added = |number: usize| self.judged.get(number).is_some_and(|said| said.ruling != Ruling::Deny);
        let all = self.secrets.iter().enumerate();
        all.filter(move |(number, _)| may_be_added(*number) || plan.used.contains(number)).map(|(_, secret)| secret)
    }

    fn unsound(&self, exchange: &Exchange, violation: Violation) -> Result<Response<Answer>, Ended> {
        let event = NetworkEvent {
            denied: true,
            rule: "egress.http".to_owned(),
            why: format!("the request has {}", violation.0),
            ..exchange.event(NetworkDeed::Request)
        };
        self.session.refuses(&event)?;
        let mut answer = say::unsound(violation.0);
        self.closes(&mut answer);
        Ok(answer)
    }

    /// A body was stopped on its way; that is in the record already.
    fn cut(&self, exchange: &Exchange) -> Result<Response<Answer>, Ended> {
        let Some(stopped) = exchange.stopped() else { return Err(Ended::Closed) };
        let mut answer = if stopped.status == 400 {
            say::unsound(&stopped.why)
        } else {
            say::refused(&self.words(exchange), &stopped.why, &stopped.rule, "")
        };
        self.closes(&mut answer);
        Ok(answer)
    }

    fn closes(&self, answer: &mut Response<Answer>) {
        if !matches!(self.upstream, Upstream::Many(_)) {
            answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
    }

    fn denied(&self, exchange: &Exchange, judgement: &Judgement) -> Result<Response<Answer>, Ended> {
        let Some(reason) = judgement.reasons.first() else {
            return self.secret_denied(
                exchange,
                Denial {
                    rule: "egress.default".to_owned(),
                    why: "nothing allows it".to_owned(),
                    grant: String::new(),
                    secret: None,
                },
            );
        };
        let event = NetworkEvent {
            denied: true,
            rule: reason.rule.clone(),
            why: reason.why.clone(),
            grant: reason.grant.clone(),
            ..exchange.event(NetworkDeed::Request)
        };
        self.session.refuses(&event)?;
        self.session.refused(judgement, Retry::No);
        let rule = placed(reason);
        Ok(say::refused(&self.words(exchange), &reason.why, &rule, &reason.grant))
    }

    fn refused(
        &self,
        exchange: &Exchange,
        judgement: &Judgement,
        refusal: &Refusal,
    ) -> Result<Response<Answer>, Ended> {
        let event = NetworkEvent {
            denied: true,
            rule: refusal.rule.clone(),
            why: refusal.message.clone(),
            grant: refusal.hint.clone(),
            ..exchange.event(NetworkDeed::Request)
        };
        self.session.refuses(&event)?;
        self.session.refused(judgement, Retry::AfterApproval);
        Ok(say::refused(&self.words(exchange), &refusal.message, &refusal.rule, &refusal.hint))
    }

    fn secret_denied(&self, exchange: &Exchange, denial: Denial) -> Result<Response<Answer>, Ended> {
        let Denial { rule, why, grant, secret } = denial;
        let what = if secret.is_some() { NetworkDeed::Secret } else { NetworkDeed::Request };
        let event = NetworkEvent {
            denied: true,
            rule: rule.clone(),
            why: why.clone(),
            grant: grant.clone(),
            secret,
            ..exchange.event(what)
        };
        self.session.refuses(&event)?;
        let about = Reason {
            action: model::Action::SecretUse,
            about: self.passage.endpoint.to_string(),
            ..reason(&rule, why.clone(), grant.clone())
        };
        self.session.refused(&Judgement { ruling: Ruling::Deny, reasons: vec![about] }, Retry::No);
        Ok(say::refused(&self.words(exchange), &why, &rule, &grant))
    }

    fn words(&self, exchange: &Exchange) -> String {
        format!("{} {}{}", exchange.method, self.passage.endpoint, exchange.path)
    }
}

/// An event about the connection as a whole: it could not be read.
pub fn unreadable(session: &Session, passage: &Passage, rule: &str, why: String) -> Result<(), Trouble> {
    let event = NetworkEvent { denied: true, rule: rule.to_owned(), why, ..about(passage, NetworkDeed::Connect) };
    session.record(&event)
}

#[derive(Debug, thiserror::Error)]
enum Unsent {
    #[error("the server has closed the connection")]
    Closed,
    #[error("{0}")]
    Nobody(String),
    #[error("the server did not answer: {0}")]
    Broken(#[from] hyper::Error),
}

impl From<Trouble> for Ended {
    fn from(trouble: Trouble) -> Ended {
        Ended::Record(trouble.to_string())
    }
}

fn reason(rule: &str, why: String, grant: String) -> Reason {
    Reason {
        ruling: Ruling::Deny,
        rule: rule.to_owned(),
        place: String::new(),
        why,
        action: model::Action::Connect,
        about: String::new(),
        grant,
    }
}

/// With what is kept of it.
fn serve(whole: Whole, exchange: Rc<Exchange>) -> Response<Answer> {
    exchange.is_answered(StatusCode::OK.as_u16());
    let Told { content_type, etag, last_modified } = whole.entry.told.clone();
    let length = whole.entry.length;
    let mut response = Response::new(Answer::kept(whole, exchange));
    let headers = response.headers_mut();
    headers.insert(CONTENT_LENGTH, length.into());
    for (name, value) in [(CONTENT_TYPE, content_type), (ETAG, etag), (LAST_MODIFIED, last_modified)] {
        if let Some(value) = HeaderValue::from_str(&value).ok().filter(|value| !value.is_empty()) {
            headers.insert(name, value);
        }
    }
    response
}

fn placed(reason: &Reason) -> String {
    if reason.place.is_empty() { reason.rule.clone() } else { format!("{} ({})", reason.rule, reason.place) }
}

fn is_encoded(headers: &HeaderMap) -> bool {
    let other = |name: HeaderName, fine: &'static str| {
        headers.get_all(name).iter().any(|value| !value.as_bytes().trim_ascii().eq_ignore_ascii_case(fine.as_bytes()))
    };
    other(CONTENT_ENCODING, "identity") || other(TRANSFER_ENCODING, "chunked")
}

/// Both speak something else now. Nobody reads it: neither what stands for a secret nor its value is looked for in there.
async fn tunnel(client: hyper::upgrade::OnUpgrade, server: hyper::upgrade::OnUpgrade, exchange: Rc<Exchange>) {
    let (Ok(client), Ok(server)) = tokio::join!(client, server) else { return };
    let mut client = hyper_util::rt::TokioIo::new(client);
    let mut server = hyper_util::rt::TokioIo::new(server);
    if let Ok((sent, received)) =
        tokio::io::copy_bidirectional_with_sizes(&mut client, &mut server, TUNNEL, TUNNEL).await
    {
        exchange.counts(sent, received);
    }
}
