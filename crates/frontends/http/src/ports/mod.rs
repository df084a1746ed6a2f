//! Servers inside sandboxes, reached through the API: each under a host name of its own that nobody can guess, so that what a guest says
//! to a browser is never said in the name of the API or of another guest. See docs/decisions/0020-terminals-and-ports.md.

mod counted;
mod headers;
mod proxy;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::http::StatusCode;
use model::Ushering;
use serde_json::{Value, json};
use service::{Asking, Lost, Said, Task};
use tokio::sync::{Semaphore, watch};

use crate::App;
use crate::caller::Caller;
use crate::problem::{Problem, Result};
use crate::{runs, tokens};

pub use proxy::or_the_api;

/// Of one sandbox.
const MOST_PORTS: usize = 32;
/// Visitors of one port at once.
const MOST_VISITORS: usize = 256;
const TOKEN_PREFIX: &str = "bp_";
/// Far from the numbers that a gate gives to connections.
const FIRST_VISITOR: u64 = 1 << 32;

#[derive(Default)]
pub struct Ports {
    by_label: Mutex<HashMap<String, Arc<Port>>>,
    ushers: Mutex<HashMap<Key, Arc<Usher>>>,
}

/// A tenant, and the whole id of a sandbox.
type Key = (String, String);

/// Somebody who leads visitors into a sandbox.
struct Usher {
    asking: Asking,
    next: AtomicU64,
    over: watch::Sender<bool>,
}

/// One that visitors may come to.
pub struct Port {
    key: Key,
    name: Option<String>,
    pub number: u16,
    pub label: String,
    /// Only its digest is kept.
    token: blake3::Hash,
    created: u64,
    usher: Arc<Usher>,
    visitors: Arc<Semaphore>,
    /// True when nobody may come any more.
    over: watch::Sender<bool>,
}

impl Port {
    fn is_of(&self, tenant: &str, sandbox: &str) -> bool {
        self.key.0 == tenant && (self.key.1 == sandbox || self.name.as_deref() == Some(sandbox))
    }

    /// By its digest: how long that takes says nothing of the token.
    fn lets_in(&self, token: &str) -> bool {
        token.starts_with(TOKEN_PREFIX) && token.len() <= 128 && blake3::hash(token.as_bytes()) == self.token
    }

    pub fn shown(&self, app: &App) -> Value {
        let host = app.ports_at.host(&self.label);
        json!({
            "sandbox": self.key.1, "port": self.number, "created": self.created,
            "url": format!("{}://{host}/", app.ports_at.scheme), "host": host,
        })
    }
}

/// How the service is called by those who visit ports.
#[derive(Clone, Debug)]
pub struct At {
    pub scheme: &'static str,
    /// All labels are below this name.
    pub below: String,
    /// If it is not that of the scheme.
    pub port: Option<u16>,
}

impl At {
    fn host(&self, label: &str) -> String {
        let port = self.port.map_or(String::new(), |port| format!(":{port}"));
        format!("{label}.{}{port}", self.below)
    }

    /// Which port's host that is, if it is one.
    fn label<'a>(&self, host: &'a str) -> Option<&'a str> {
        let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
        let (label, below) = name.split_once('.')?;
        let hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        let is_one = label.strip_prefix('p').is_some_and(|rest| rest.len() == 32 && rest.bytes().all(hex));
        (is_one && below.eq_ignore_ascii_case(&self.below)).then_some(label)
    }
}

impl Ports {
    /// Visitors may come to this port of a sandbox that is open; with the token that they need. One that there was for it before holds no
    /// more.
    pub async fn open(
        &self,
        app: &App,
        caller: &Caller,
        sandbox: (String, Option<String>),
        number: u16,
    ) -> Result<(Arc<Port>, String)> {
        let (id, name) = sandbox;
        let key = (caller.tenant.clone(), id);
        let others = self.lock().values().filter(|port| port.key == key && port.number != number).count();
        if others >= MOST_PORTS {
            let detail = format!("{MOST_PORTS} ports of a sandbox are the most");
            return Err(Problem::new(StatusCode::CONFLICT, "conflict", detail).hint("close some of them"));
        }
        let usher = self.usher(app, caller, &key).await?;
        let token = format!("{TOKEN_PREFIX}{}{}", runs::new_id()?, runs::new_id()?);
        let port = Arc::new(Port {
            key: key.clone(),
            name,
            number,
            label: format!("p{}", runs::new_id()?),
            token: blake3::hash(token.as_bytes()),
            created: tokens::now(),
            usher: usher.clone(),
            visitors: Arc::new(Semaphore::new(MOST_VISITORS)),
            over: watch::Sender::new(false),
        });
        told(usher.clone(), Ushering::Opens { port: number }).await?;
        let mut all = self.lock();
        // It may have ended meanwhile, with all its ports.
        if *usher.over.borrow() {
            return Err(Lost::Ended.into());
        }
        all.retain(|_, known| {
            let replaced = known.key == key && known.number == number;
            if replaced {
                known.over.send_replace(true);
            }
            !replaced
        });
        all.insert(port.label.clone(), port.clone());
        Ok((port, token))
    }

    /// Nobody comes any more, and who is there is cut off.
    pub async fn close(&self, tenant: &str, sandbox: &str, number: u16) -> Result<Arc<Port>> {
        let found = {
            let mut all = self.lock();
            let label = all.iter().find(|(_, port)| port.is_of(tenant, sandbox) && port.number == number);
            let label = label.map(|(label, _)| label.clone()).ok_or_else(Problem::not_found)?;
            all.remove(&label).ok_or_else(Problem::not_found)?
        };
        found.over.send_replace(true);
        told(found.usher.clone(), Ushering::Closes { port: number }).await?;
        Ok(found)
    }

    pub fn list(&self, tenant: &str, sandbox: &str) -> Vec<Arc<Port>> {
        let mut all: Vec<Arc<Port>> =
            self.lock().values().filter(|port| port.is_of(tenant, sandbox)).cloned().collect();
        all.sort_by_key(|port| port.number);
        all
    }

    fn find(&self, label: &str) -> Option<Arc<Port>> {
        self.lock().get(label).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<Port>>> {
        self.by_label.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_ushers(&self) -> MutexGuard<'_, HashMap<Key, Arc<Usher>>> {
        self.ushers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn usher(&self, app: &App, caller: &Caller, key: &Key) -> Result<Arc<Usher>> {
        if let Some(known) = self.lock_ushers().get(key) {
            return Ok(known.clone());
        }
        let (asking, streams) = Asking::new().map_err(Lost::Io)?;
        let job = caller.job(app, Task::Usher { id: key.1.clone() });
        let mut running = app.pool.begin(&job, Some(streams)).await?;
        loop {
            match running.next().await? {
                Said::Ready(_) => break,
                Said::Answer(answer) => {
                    Problem::or_value(answer)?;
                    return Err(Lost::Ended.into());
                }
                Said::Notice(_) | Said::Asks { .. } | Said::Asked { .. } => {}
            }
        }
        let usher = Arc::new(Usher { asking, next: AtomicU64::new(FIRST_VISITOR), over: watch::Sender::new(false) });
        {
            let mut all = self.lock_ushers();
            // Somebody else was faster; ours is told to end as it is dropped.
            if let Some(known) = all.get(key) {
                return Ok(known.clone());
            }
            all.insert(key.clone(), usher.clone());
        }
        let (app, key, kept) = (app.clone(), key.clone(), usher.clone());
        tokio::spawn(async move {
            while let Ok(Said::Notice(_) | Said::Asks { .. } | Said::Asked { .. } | Said::Ready(_)) =
                running.next().await
            {}
            app.ports.ended(&key, &kept);
        });
        Ok(usher)
    }

    /// The sandbox has ended, or whoever led visitors in: then nobody may come to what was open.
    fn ended(&self, key: &Key, usher: &Arc<Usher>) {
        self.lock_ushers().retain(|known, other| known != key || !Arc::ptr_eq(other, usher));
        usher.over.send_replace(true);
        self.lock().retain(|_, port| {
            let over = Arc::ptr_eq(&port.usher, usher);
            if over {
                port.over.send_replace(true);
            }
            !over
        });
    }
}

/// On its own: a question that is not waited for would be the last.
async fn told(usher: Arc<Usher>, what: Ushering) -> Result<()> {
    let told = tokio::spawn(async move { usher.asking.tells(what).await }).await;
    told.map_err(|_| Lost::Ended)?.map_err(|error| Problem::from(Lost::Io(error)))
}

impl Usher {
    fn next(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_name_of_that_form_is_a_ports() {
        let at = At { scheme: "http", below: "localhost".to_owned(), port: Some(7070) };
        let label = format!("p{}", "0f".repeat(16));
        assert_eq!(at.label(&format!("{label}.localhost:7070")), Some(label.as_str()));
        assert_eq!(at.label(&format!("{label}.LOCALHOST")), Some(label.as_str()));
        let upper = label.to_uppercase();
        for other in [
            "localhost:7070".to_owned(),
            "127.0.0.1:7070".to_owned(),
            String::new(),
            format!("{label}.localhost.evil.example"),
            format!("x.{label}.localhost"),
            format!("{label}0.localhost"),
            format!("{upper}.localhost"),
            label.clone(),
            format!("{label}."),
            "[::1]:7070".to_owned(),
        ] {
            assert_eq!(at.label(&other), None, "{other}");
        }
    }
}
