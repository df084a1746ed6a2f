//! `/v1/ledger`: everything that happened for this tenant.

use axum::extract::State;
use axum::{Extension, Json};
use serde::Deserialize;
use serde_json::Value;
use service::{Task, job};
use utoipa::IntoParams;

use super::types::{MOST_ON_A_PAGE, Page};
use super::{Asked, Named, ask};
use crate::App;
use crate::caller::Caller;
use crate::problem::{Problem, Result};
use crate::tokens::Scope;

#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct Which {
    /// At most so many.
    #[param(minimum = 1, maximum = 1000)]
    pub limit: Option<usize>,
    /// Entries after this one, from the oldest on; without it the newest.
    pub cursor: Option<u64>,
    /// Of one run.
    pub run: Option<String>,
    pub agent: Option<String>,
    /// Only what was refused.
    pub denied: bool,
    /// A whole kind, or its first word: `run` for `run.ended`.
    #[serde(rename = "type")]
    #[param(rename = "type")]
    pub kind: Option<String>,
    /// Times as in entries, or the start of one.
    pub since: Option<String>,
    pub until: Option<String>,
}

/// Entries of the record, in their order.
#[utoipa::path(get, path = "/v1/ledger", tag = "ledger", params(Which),
    responses((status = 200, description = "Some of them", body = Page)))]
pub async fn entries(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Asked(which): Asked<Which>,
) -> Result<Json<Page>> {
    caller.needs(Scope::Read)?;
    let Which { limit, cursor, run, agent, denied, kind, since, until } = which;
    let most = limit.unwrap_or(100);
    if !(1..=MOST_ON_A_PAGE).contains(&most) {
        return Err(Problem::wrong(format!("`limit` is between 1 and {MOST_ON_A_PAGE}")));
    }
    let query = job::Asked { run, agent, denied, kinds: kind.into_iter().collect(), since, until, after: cursor };
    let found = ask(&app, &caller, Task::Entries { query, most }).await?;
    let items = found.as_array().cloned().unwrap_or_default();
    let last = items.last().and_then(|entry| entry["n"].as_u64()).or(cursor);
    Ok(Json(Page { items, next: last.map(|last| last.to_string()) }))
}

#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct WhichTraffic {
    /// At most so many.
    #[param(minimum = 1, maximum = 1000)]
    pub limit: Option<usize>,
    /// Entries after this one, from the oldest on; without it the newest.
    pub cursor: Option<u64>,
    /// Only what was refused.
    pub denied: bool,
}

/// What of a sandbox went to the network or tried to, and who visited its servers: entries of the record, in their order.
#[utoipa::path(get, path = "/v1/sandboxes/{id}/network", tag = "sandboxes",
    params(("id" = String, Path, description = "Its id or name"), WhichTraffic),
    responses((status = 200, description = "Some of them", body = Page)))]
pub async fn network(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Named(id): Named<String>,
    Asked(which): Asked<WhichTraffic>,
) -> Result<Json<Page>> {
    caller.needs(Scope::Read)?;
    let WhichTraffic { limit, cursor, denied } = which;
    let most = limit.unwrap_or(100);
    if !(1..=MOST_ON_A_PAGE).contains(&most) {
        return Err(Problem::wrong(format!("`limit` is between 1 and {MOST_ON_A_PAGE}")));
    }
    let found = ask(&app, &caller, Task::Network { id, denied, after: cursor, most }).await?;
    let items = found.as_array().cloned().unwrap_or_default();
    let last = items.last().and_then(|entry| entry["n"].as_u64()).or(cursor);
    Ok(Json(Page { items, next: last.map(|last| last.to_string()) }))
}

/// Whether the record is what was written.
#[utoipa::path(get, path = "/v1/ledger/verify", tag = "ledger",
    responses((status = 200, description = "What was found", body = Object)))]
pub async fn verify(State(app): State<App>, Extension(caller): Extension<Caller>) -> Result<Json<Value>> {
    caller.needs(Scope::Read)?;
    Ok(Json(ask(&app, &caller, Task::Verify).await?))
}

/// The signed statement that a run ended with. `run` is what its result calls so.
#[utoipa::path(get, path = "/v1/ledger/receipts/{run}", tag = "ledger",
    params(("run" = String, Path, description = "As `result.run` says")),
    responses((status = 200, description = "An envelope", body = Object)))]
pub async fn receipt(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Named(run): Named<String>,
) -> Result<Json<Value>> {
    caller.needs(Scope::Read)?;
    Ok(Json(ask(&app, &caller, Task::Receipt { run }).await?))
}
