//! `/v1/approvals`: questions that wait for a person, and a person's answers. Never an agent's.

use std::collections::BTreeSet;
use std::time::Duration;

use axum::extract::State;
use axum::response::Response;
use axum::{Extension, Json};
use bytes::Bytes;
use model::Decision;
use serde::Deserialize;
use serde_json::{Value, json};
use service::Task;
use tokio::sync::mpsc;
use utoipa::ToSchema;

use super::types::{Page, Paging};
use super::{Asked, Named, ask, streamed};
use crate::App;
use crate::body::Sent;
use crate::caller::Caller;
use crate::problem::{Problem, Result};
use crate::runs::Event;
use crate::tokens::Scope;

/// How often a stream looks for new ones.
const EVERY: Duration = Duration::from_secs(1);

/// Questions that somebody waits for now.
#[utoipa::path(get, path = "/v1/approvals", tag = "approvals", params(Paging),
    responses((status = 200, description = "Some of them", body = Page)))]
pub async fn list(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Asked(paging): Asked<Paging>,
) -> Result<Json<Page>> {
    caller.needs(Scope::Approve)?;
    let limit = paging.limit()?;
    let all = ask(&app, &caller, Task::Questions).await?;
    super::sandboxes::page(all, limit, paging.cursor.as_deref()).map(Json)
}

/// One of them, with what `always` would write down.
#[utoipa::path(get, path = "/v1/approvals/{id}", tag = "approvals", params(("id" = String, Path, description = "Its id")),
    responses((status = 200, description = "It", body = Object)))]
pub async fn show(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Named(id): Named<String>,
) -> Result<Json<Value>> {
    caller.needs(Scope::Approve)?;
    Ok(Json(ask(&app, &caller, Task::Question { id }).await?))
}

#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Reply {
    /// `once`, `session`, `always` or `deny`.
    #[schema(value_type = String)]
    pub decision: Decision,
    /// Of the question as it was shown: an answer to another is none.
    pub digest: String,
    /// For whoever asked.
    #[serde(default)]
    pub reason: String,
}

/// Answer exactly the question that was shown.
#[utoipa::path(post, path = "/v1/approvals/{id}", tag = "approvals", request_body = Reply,
    params(("id" = String, Path, description = "Its id")),
    responses((status = 200, description = "Whoever waited has it", body = Object)))]
pub async fn reply(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Named(id): Named<String>,
    Sent(reply): Sent<Reply>,
) -> Result<Json<Value>> {
    caller.needs(Scope::Approve)?;
    let Reply { decision, digest, reason } = reply;
    if reason.chars().count() > model::LONGEST_REASON {
        return Err(Problem::wrong(format!("`reason` has at most {} letters", model::LONGEST_REASON)));
    }
    Ok(Json(ask(&app, &caller, Task::Reply { id, digest: Some(digest), decision, reason }).await?))
}

/// Questions as they come (`question`), and ids of those that nobody waits for any more (`gone`).
#[utoipa::path(get, path = "/v1/approvals/stream", tag = "approvals",
    responses((status = 200, description = "Events", content_type = "text/event-stream", body = String)))]
pub async fn stream(State(app): State<App>, Extension(caller): Extension<Caller>) -> Result<Response> {
    caller.needs(Scope::Approve)?;
    let first = ask(&app, &caller, Task::Questions).await?;
    let (sends, receives) = mpsc::channel(64);
    tokio::spawn(async move {
        let (mut seen, mut number, mut now) = (BTreeSet::new(), 0, first);
        loop {
            let items = now.as_array().cloned().unwrap_or_default();
            let ids: BTreeSet<String> =
                items.iter().filter_map(|item| item["id"].as_str().map(str::to_owned)).collect();
            let new = items.iter().filter(|item| item["id"].as_str().is_some_and(|id| !seen.contains(id)));
            let gone = seen.difference(&ids).map(|id| ("gone", json!({"id": id})));
            let events: Vec<(&str, Value)> = new.map(|item| ("question", item.clone())).chain(gone).collect();
            for (kind, data) in events {
                number += 1;
                if sends.send(Event { number, kind, data: Bytes::from(data.to_string()) }).await.is_err() {
                    return;
                }
            }
            seen = ids;
            tokio::select! {
                () = tokio::time::sleep(EVERY) => {}
                () = sends.closed() => return,
            }
            // A moment in which it can't be looked at is no end.
            if let Ok(looked) = ask(&app, &caller, Task::Questions).await {
                now = looked;
            }
        }
    });
    Ok(streamed(receives))
}
