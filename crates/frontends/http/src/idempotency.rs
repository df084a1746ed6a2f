//! `Idempotency-Key`: the same request again gets the same answer, and is carried out once.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tokio::sync::watch;

use crate::App;
use crate::caller::Caller;
use crate::problem::{Problem, Result};

pub const HEADER: &str = "idempotency-key";
/// Keys of all tenants together, of one tenant, and for how long.
const MOST: usize = 4_096;
const MOST_OF_ONE: usize = 512;
const FOR: Duration = Duration::from_secs(3600);
/// Answers that are longer are not kept: the key then only stands for having been used.
const LARGEST: usize = 1 << 20;

#[derive(Default)]
pub struct Keys(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    by_name: HashMap<Name, Entry>,
    order: VecDeque<(Instant, Name)>,
}

/// Whose, for what.
type Name = (String, String, String);

#[derive(Clone)]
struct Entry {
    body: blake3::Hash,
    answer: watch::Receiver<Option<Answered>>,
}

#[derive(Clone)]
struct Answered {
    status: StatusCode,
    kind: Option<HeaderValue>,
    /// Nothing if it was too long to be kept.
    body: Option<Bytes>,
}

pub async fn once(State(app): State<App>, request: Request, next: Next) -> Response {
    let key = request.headers().get(HEADER).cloned();
    let caller = request.extensions().get::<Caller>().cloned();
    match (key, caller) {
        (Some(key), Some(caller)) if request.method() == Method::POST => {
            keyed(&app, &key, &caller, request, next).await.unwrap_or_else(IntoResponse::into_response)
        }
        _ => next.run(request).await,
    }
}

async fn keyed(app: &App, key: &HeaderValue, caller: &Caller, request: Request, next: Next) -> Result<Response> {
    let key = key.to_str().ok().filter(|key| (1..=255).contains(&key.len()));
    let key = key.ok_or_else(|| Problem::wrong("an `Idempotency-Key` has between 1 and 255 visible letters"))?;
    let name: Name = (caller.tenant.clone(), format!("{} {}", caller.token, request.uri().path()), key.to_owned());
    let (parts, body) = request.into_parts();
    let body = crate::body::read(app, body).await?;
    let digest = blake3::hash(&body);
    let sender = match app.keys.enter(&name, digest)? {
        Entered::First(sender) => sender,
        Entered::Again(mut answer) => {
            let answered = answer.wait_for(Option::is_some).await.ok().and_then(|answer| answer.clone());
            return answered.map_or_else(|| Err(again_later()), |answered| answered.again());
        }
    };
    // In a task of its own: whoever goes away and comes back with the same key finds its answer.
    let keys = app.keys.clone();
    let task = tokio::spawn(async move {
        let response = next.run(Request::from_parts(parts, Body::from(body))).await;
        keep(&keys, &name, sender, response).await
    });
    task.await.map_err(|_| again_later())
}

async fn keep(keys: &Keys, name: &Name, sender: watch::Sender<Option<Answered>>, response: Response) -> Response {
    let status = response.status();
    // What was not done is tried again.
    if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS || is_stream(response.headers()) {
        keys.forget(name);
        return response;
    }
    let (parts, body) = response.into_parts();
    let kind = parts.headers.get(header::CONTENT_TYPE).cloned();
    let Ok(bytes) = axum::body::to_bytes(body, usize::MAX).await else {
        keys.forget(name);
        return again_later().into_response();
    };
    let body = (bytes.len() <= LARGEST).then(|| bytes.clone());
    sender.send_replace(Some(Answered { status, kind, body }));
    Response::from_parts(parts, Body::from(bytes))
}

fn is_stream(headers: &HeaderMap) -> bool {
    headers.get(header::CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"))
}

fn again_later() -> Problem {
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "lost", "the first request with this key had no answer").after(1)
}

impl Answered {
    fn again(self) -> Result<Response> {
        let body = self.body.ok_or_else(|| {
            Problem::new(StatusCode::CONFLICT, "answered-before", "it was done; its answer was too long to be kept")
                .hint("look for what it made")
        })?;
        let mut response = (self.status, body).into_response();
        let headers = response.headers_mut();
        headers.remove(header::CONTENT_TYPE);
        if let Some(kind) = self.kind {
            headers.insert(header::CONTENT_TYPE, kind);
        }
        headers.insert("idempotency-replayed", HeaderValue::from_static("true"));
        Ok(response)
    }
}

enum Entered {
    First(watch::Sender<Option<Answered>>),
    Again(watch::Receiver<Option<Answered>>),
}

impl Keys {
    fn enter(&self, name: &Name, body: blake3::Hash) -> Result<Entered> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while kept.order.front().is_some_and(|(at, _)| at.elapsed() > FOR) {
            if let Some((_, old)) = kept.order.pop_front() {
                kept.by_name.remove(&old);
            }
        }
        if let Some(entry) = kept.by_name.get(name) {
            if entry.body != body {
                return Err(Problem::new(
                    StatusCode::UNPROCESSABLE_ENTITY,
                    "key-used",
                    "this `Idempotency-Key` was used with another body",
                )
                .hint("use a new key for a new request"));
            }
            return Ok(Entered::Again(entry.answer.clone()));
        }
        let of_this = kept.by_name.keys().filter(|(tenant, _, _)| *tenant == name.0).count();
        // Not by forgetting others': a key that is forgotten early is a request that is carried out twice.
        if of_this >= MOST_OF_ONE || kept.by_name.len() >= MOST {
            return Err(Problem::new(
                StatusCode::TOO_MANY_REQUESTS,
                "too-many-keys",
                "too many keys are remembered already",
            )
            .hint("do without a key, or wait")
            .after(60));
        }
        let (sender, receiver) = watch::channel(None);
        kept.by_name.insert(name.clone(), Entry { body, answer: receiver });
        kept.order.push_back((Instant::now(), name.clone()));
        Ok(Entered::First(sender))
    }

    fn forget(&self, name: &Name) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.by_name.remove(name);
        kept.order.retain(|(_, other)| other != name);
    }
}

pub type Shared = Arc<Keys>;

#[cfg(test)]
mod tests {
    use super::*;

    fn name(tenant: &str, key: usize) -> Name {
        (tenant.to_owned(), "/v1/run".to_owned(), key.to_string())
    }

    #[test]
    fn the_same_key_with_another_body_is_refused() {
        let keys = Keys::default();
        let first = keys.enter(&name("t", 1), blake3::hash(b"a"));
        assert!(matches!(first, Ok(Entered::First(_))));
        assert!(matches!(keys.enter(&name("t", 1), blake3::hash(b"a")), Ok(Entered::Again(_))));
        assert_eq!(keys.enter(&name("t", 1), blake3::hash(b"b")).err().map(|problem| problem.status), Some(422));
        assert!(matches!(keys.enter(&name("u", 1), blake3::hash(b"b")), Ok(Entered::First(_))));
    }

    #[test]
    fn a_tenant_has_an_end_to_its_keys_and_takes_none_from_others() {
        let keys = Keys::default();
        for key in 0..MOST_OF_ONE {
            assert!(keys.enter(&name("t", key), blake3::hash(b"")).is_ok());
        }
        assert!(keys.enter(&name("t", MOST_OF_ONE), blake3::hash(b"")).is_err());
        assert!(keys.enter(&name("u", 0), blake3::hash(b"")).is_ok());
        keys.forget(&name("t", 0));
        assert!(keys.enter(&name("t", MOST_OF_ONE), blake3::hash(b"")).is_ok());
    }
}
