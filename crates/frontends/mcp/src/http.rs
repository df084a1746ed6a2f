//! The same over streamable HTTP, behind whatever let the request in. Sessions of the older revisions belong to one caller.

use std::collections::HashMap;
use std::convert::Infallible;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use http_types::{HeaderMap, Request, Response, StatusCode};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use service::Pool;
use tokio_util::sync::CancellationToken;

use crate::caller::{Admission, Caller, Presence};
use crate::house::House;
use crate::server::Server;

const SESSION: &str = "mcp-session-id";
/// Of one caller, at once. An idle one ends by itself after five minutes.
const MOST_SESSIONS: usize = 32;

pub type Answered = Response<BoxBody<Bytes, Infallible>>;

/// Whose a session is, and whether they are there.
#[derive(Clone)]
struct Owner {
    key: String,
    presence: Arc<Presence>,
}

#[derive(Clone)]
pub struct Mcp {
    house: Arc<House>,
    service: StreamableHttpService<Server, LocalSessionManager>,
    sessions: Arc<LocalSessionManager>,
    owners: Arc<Mutex<HashMap<String, Owner>>>,
    stop: CancellationToken,
}

/// Why a request is not for us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotServed {
    /// There is no such session, or it is another's.
    NoSession,
    TooManySessions,
}

impl Mcp {
    pub fn new(
        version: &'static str,
        pool: Pool,
        admission: Arc<dyn Admission>,
        largest_body: usize,
    ) -> Result<Mcp, String> {
        let house = House::new(version, pool, admission, None)?;
        let sessions = Arc::new(LocalSessionManager::default());
        let stop = CancellationToken::new();
        // Which hosts and origins are answered is decided before anything comes here, for all of the service.
        let config = StreamableHttpServerConfig::default()
            .disable_allowed_hosts()
            .disable_allowed_origins()
            .with_max_request_body_bytes(largest_body)
            .with_cancellation_token(stop.clone());
        let shared = house.clone();
        let make = move || -> io::Result<Server> { Ok(Server::new(shared.clone(), None)) };
        let service = StreamableHttpService::new(make, sessions.clone(), config);
        Ok(Mcp { house, service, sessions, owners: Arc::default(), stop })
    }

    /// Answers one request of somebody who is known.
    pub async fn answer(&self, mut caller: Caller, mut request: Request<Full<Bytes>>) -> Result<Answered, NotServed> {
        let key = caller.key.clone();
        let presence = match session(request.headers()) {
            None => {
                self.room_for(&key).await?;
                None
            }
            Some(session) => match self.owner(&session) {
                Some(owner) if owner.key == key => Some(owner.presence),
                // Not told apart from one that is not there.
                _ => return Err(NotServed::NoSession),
            },
        };
        // From now on, since what is asked begins before there is anything to listen to.
        let listens = presence.as_ref().map(Presence::listens);
        caller.presence = presence;
        request.extensions_mut().insert(caller);
        let response = self.service.handle(request).await;
        if let Some(session) = session(response.headers()) {
            let owner = || Owner { key, presence: Arc::default() };
            self.owners.lock().unwrap_or_else(PoisonError::into_inner).entry(session).or_insert_with(owner);
        }
        Ok(match listens {
            None => response,
            // It goes with the body, which goes with the connection.
            Some(listens) => response.map(|body| {
                body.map_frame(move |frame| {
                    let _kept = &listens;
                    frame
                })
                .boxed()
            }),
        })
    }

    fn owner(&self, session: &str) -> Option<Owner> {
        self.owners.lock().unwrap_or_else(PoisonError::into_inner).get(session).cloned()
    }

    async fn room_for(&self, key: &str) -> Result<(), NotServed> {
        let going = self.sessions.sessions.read().await;
        let mut owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
        owners.retain(|session, _| going.contains_key(session.as_str()));
        match owners.values().filter(|owner| owner.key == key).count() < MOST_SESSIONS {
            true => Ok(()),
            false => Err(NotServed::TooManySessions),
        }
    }

    /// Ends whatever goes on.
    pub fn stop(&self) {
        self.house.calls.end_all();
        self.stop.cancel();
    }
}

impl NotServed {
    pub fn status(self) -> StatusCode {
        match self {
            NotServed::NoSession => StatusCode::NOT_FOUND,
            NotServed::TooManySessions => StatusCode::TOO_MANY_REQUESTS,
        }
    }
}

fn session(headers: &HeaderMap) -> Option<String> {
    // One that is no text is one that nobody has.
    headers.get(SESSION).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
}
