//! `/v1/sandboxes/{id}/ports`: servers inside that visitors may come to.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde::Deserialize;
use serde_json::Value;
use service::Task;
use utoipa::ToSchema;

use super::types::Page;
use super::{Named, ask};
use crate::App;
use crate::body::Sent;
use crate::caller::Caller;
use crate::problem::{Problem, Result};
use crate::tokens::Scope;

#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PortRequest {
    /// Of the sandbox's own loopback.
    #[schema(minimum = 1)]
    pub port: u16,
}

/// Let visitors come to a server inside an open sandbox, over HTTP and WebSocket.
///
/// `url` is an origin of its own. Whoever comes brings `token` as `Belljar-Port-Token`; a browser comes once with `?belljar_token=TOKEN`, and has a cookie
/// from then on. Said again, there is another address and another token, and the old ones hold no more. It ends with the sandbox.
#[utoipa::path(post, path = "/v1/sandboxes/{id}/ports", tag = "ports", request_body = PortRequest,
    params(("id" = String, Path, description = "The sandbox's id or name")),
    responses((status = 201, description = "Where it is, and the token: it is said this once", body = Object)))]
pub async fn open(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Named(id): Named<String>,
    Sent(request): Sent<PortRequest>,
) -> Result<Response> {
    caller.needs(Scope::Run)?;
    if request.port == 0 {
        return Err(Problem::wrong("`port` is between 1 and 65535"));
    }
    let known = ask(&app, &caller, Task::Sandbox { id }).await?;
    let id = known["id"].as_str().unwrap_or_default().to_owned();
    if known["open"] != true {
        return Err(Problem::new(StatusCode::CONFLICT, "conflict", "the sandbox is not open")
            .hint("open it first: `POST /v1/sandboxes/{id}/open`"));
    }
    let using = app.opened.uses(&caller.tenant, &id)?;
    let sandbox = (id, known["name"].as_str().map(str::to_owned));
    let (port, token) = app.ports.open(&app, &caller, sandbox, request.port).await?;
    drop(using);
    let mut shown = port.shown(&app);
    shown["token"] = token.into();
    Ok((StatusCode::CREATED, Json(shown)).into_response())
}

/// Ports of a sandbox that visitors may come to.
#[utoipa::path(get, path = "/v1/sandboxes/{id}/ports", tag = "ports",
    params(("id" = String, Path, description = "The sandbox's id or name")),
    responses((status = 200, description = "They, without their tokens", body = Page)))]
pub async fn list(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Named(id): Named<String>,
) -> Result<Json<Page>> {
    caller.needs(Scope::Read)?;
    let items: Vec<Value> = app.ports.list(&caller.tenant, &id).iter().map(|port| port.shown(&app)).collect();
    if items.is_empty() {
        // Of a sandbox that is there; of none there is no list.
        ask(&app, &caller, Task::Sandbox { id }).await?;
    }
    Ok(Json(Page { items, next: None }))
}

/// Let nobody come any more; who is there is cut off.
#[utoipa::path(delete, path = "/v1/sandboxes/{id}/ports/{port}", tag = "ports",
    params(("id" = String, Path, description = "The sandbox's id or name"), ("port" = u16, Path, description = "Which", minimum = 1)),
    responses((status = 200, description = "What it was", body = Object)))]
pub async fn close(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Named((id, port)): Named<(String, u16)>,
) -> Result<Json<Value>> {
    caller.needs(Scope::Run)?;
    Ok(Json(app.ports.close(&caller.tenant, &id, port).await?.shown(&app)))
}
