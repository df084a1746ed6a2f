//! `/v1/sandboxes`: kept sandboxes, what they changed, and what becomes of it.

use std::path::PathBuf;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use service::job::Favored;
use service::{Task, Wish};
use utoipa::{IntoParams, ToSchema};

use super::live::{self, OpenRequest};
use super::types::{CreateRequest, ExecRequest, Page, Paging, files};
use super::{Asked, Named, ask, revision, run, templates};
use crate::App;
use crate::body::Sent;
use crate::caller::Caller;
use crate::idempotency;
use crate::problem::{Problem, Result};
use crate::runs::{self, Piped};
use crate::tokens::Scope;

/// Sandboxes that run or are kept, the newest first.
#[utoipa::path(get, path = "/v1/sandboxes", tag = "sandboxes", params(Paging),
    responses((status = 200, description = "Some of them", body = Page)))]
pub async fn list(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Asked(paging): Asked<Paging>,
) -> Result<Json<Page>> {
    caller.needs(Scope::Read)?;
    let limit = paging.limit()?;
    let all = ask(&app, &caller, Task::Sandboxes).await?;
    page(all, limit, paging.cursor.as_deref()).map(Json)
}

/// Those after the one that the cursor names, in the order of their creation.
pub fn page(all: Value, limit: usize, cursor: Option<&str>) -> Result<Page> {
    let Value::Array(mut items) = all else { return Ok(Page { items: Vec::new(), next: None }) };
    let place = |item: &Value| {
        format!("{:020}.{}", item["created"].as_u64().unwrap_or_default(), item["id"].as_str().unwrap_or_default())
    };
    items.sort_by_cached_key(|item| std::cmp::Reverse(place(item)));
    if let Some(cursor) = cursor {
        if cursor.len() > 256 || !cursor.contains('.') {
            return Err(Problem::wrong("`cursor` is no `next` of a page"));
        }
        items.retain(|item| place(item).as_str() < cursor);
    }
    let more = items.len() > limit;
    items.truncate(limit);
    let next = items.last().filter(|_| more).map(place);
    Ok(Page { items, next })
}

/// Make a sandbox to be used again and again, over new files or (for `local`) a folder of the host; or from a template, another
/// sandbox or a snapshot of one.
#[utoipa::path(post, path = "/v1/sandboxes", tag = "sandboxes", request_body = CreateRequest,
    responses((status = 201, description = "It is made", body = Object)))]
pub async fn create(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Sent(request): Sent<CreateRequest>,
) -> Result<Response> {
    caller.needs(Scope::Run)?;
    let CreateRequest { name, from, files: sent, open, expires, idle, options } = request;
    let stays = OpenRequest { expires, idle };
    if open == Some(false) && (expires.is_some() || idle.is_some()) {
        return Err(Problem::wrong("`expires` and `idle` are about a sandbox that is open"));
    }
    let task = match from {
        None => Task::Create { wish: options.wish(Vec::new())?, folder: runs::new_id()?, files: files(sent), name },
        Some(from) => templates::begins(&app, &caller, from, (name, sent, options)).await?,
    };
    let mut made = ask(&app, &caller, task).await?;
    if open != Some(false) {
        let id = made["id"].as_str().unwrap_or_default().to_owned();
        made = match live::opened(&app, &caller, id.clone(), &stays).await {
            Ok(opened) => opened,
            // Not every backend has sandboxes that stay; who did not ask for one has one that is set up for each command.
            Err(problem) if open.is_none() && problem.kind.ends_with(":not-set-up") => made,
            Err(problem) => {
                // Made to be open, and it is not: then it is not there either.
                drop(ask(&app, &caller, Task::Remove { id }).await);
                return Err(problem);
            }
        };
    }
    let place = format!("/v1/sandboxes/{}", made["id"].as_str().unwrap_or_default());
    Ok((StatusCode::CREATED, [(header::LOCATION, place)], Json(made)).into_response())
}

/// One of them, by its id or name.
#[utoipa::path(get, path = "/v1/sandboxes/{id}", tag = "sandboxes", params(("id" = String, Path, description = "Its id or name")),
    responses((status = 200, description = "It", body = Object)))]
pub async fn show(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Named(id): Named<String>,
) -> Result<Json<Value>> {
    caller.needs(Scope::Read)?;
    let mut shown = ask(&app, &caller, Task::Sandbox { id }).await?;
    live::show(&app, &caller, &mut shown);
    Ok(Json(shown))
}

/// Remove it with all its changes and snapshots.
#[utoipa::path(delete, path = "/v1/sandboxes/{id}", tag = "sandboxes", params(("id" = String, Path, description = "Its id or name")),
    responses((status = 200, description = "What it was", body = Object)))]
pub async fn remove(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Named(id): Named<String>,
) -> Result<Json<Value>> {
    caller.needs(Scope::Files)?;
    // Open, it is stopped first: whoever wants it gone wants that too.
    if app.opened.find(&caller.tenant, &id).is_some() {
        caller.needs(Scope::Run)?;
        live::stopped(&app, &caller, id.clone()).await?;
    }
    Ok(Json(ask(&app, &caller, Task::Remove { id }).await?))
}

/// Run a command in it. What it changes stays.
///
/// With `background` the answer comes at once, and the run goes on whoever listens: see `/v1/runs/{id}`, its `events`, `stdin` and
/// `signal`. `If-Match` as for `/v1/run`, with the `ETag` of `/v1/policies?sandbox=`.
#[utoipa::path(post, path = "/v1/sandboxes/{id}/exec", tag = "sandboxes", request_body = ExecRequest,
    params(("id" = String, Path, description = "Its id or name")),
    responses((status = 200, description = "It ran; with `stream`, events",
        content((super::types::RunShown = "application/json"), (Object = "text/event-stream"))),
        (status = 202, description = "It goes on in the background: its id, and where its events are", body = Object)))]
pub async fn exec(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    Named(id): Named<String>,
    Sent(request): Sent<ExecRequest>,
) -> Result<Response> {
    caller.needs(Scope::Run)?;
    let ExecRequest { command, stdin, timeout, stream, background, interactive, mut options } = request;
    if command.is_empty() {
        return Err(Problem::wrong("say `command`"));
    }
    if options.workspace.is_some() {
        return Err(Problem::wrong("a sandbox has its workspaces from when it was made"));
    }
    options.limits.timeout = timeout.or(options.limits.timeout);
    if background && (stream || headers.contains_key(idempotency::HEADER)) {
        return Err(Problem::wrong("`background` goes neither with `stream` nor with `Idempotency-Key`"));
    }
    if interactive && (!background || stdin.is_some()) {
        return Err(Problem::wrong("`interactive` goes with `background`, and without `stdin`"));
    }
    let using = app.opened.uses(&caller.tenant, &id)?;
    let wish = Wish { revisions: revision::expected(&headers)?, ..options.wish(command)? };
    let job = caller.job(&app, Task::RunIn { id, wish });
    if background {
        return run::begin_apart(&app, &caller, job, Piped { stdin, open: interactive, streamed: true }, using);
    }
    run::begin(&app, &caller, &headers, job, Piped { stdin, open: false, streamed: stream }, using).await
}

#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct Compared {
    /// Another sandbox: how that one differs from this.
    pub other: Option<String>,
    /// Only this path, and what is below it.
    pub path: Option<String>,
}

impl Compared {
    fn paths(&self) -> Vec<PathBuf> {
        self.path.iter().map(PathBuf::from).collect()
    }
}

/// What it changed.
#[utoipa::path(get, path = "/v1/sandboxes/{id}/diff", tag = "sandboxes",
    params(("id" = String, Path, description = "Its id or name"), Compared),
    responses((status = 200, description = "Its changes", body = Object)))]
pub async fn diff(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Named(id): Named<String>,
    Asked(compared): Asked<Compared>,
) -> Result<Json<Value>> {
    caller.needs(Scope::Read)?;
    let paths = compared.paths();
    Ok(Json(ask(&app, &caller, Task::Changes { id, other: compared.other, paths }).await?))
}

/// The same as a patch, without secrets.
#[utoipa::path(get, path = "/v1/sandboxes/{id}/patch", tag = "sandboxes",
    params(("id" = String, Path, description = "Its id or name"), Compared),
    responses((status = 200, description = "A unified patch", content_type = "text/plain", body = String)))]
pub async fn patch(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Named(id): Named<String>,
    Asked(compared): Asked<Compared>,
) -> Result<Response> {
    caller.needs(Scope::Read)?;
    let paths = compared.paths();
    let patch = ask(&app, &caller, Task::Patch { id, other: compared.other, paths }).await?;
    let text = patch["patch"].as_str().unwrap_or_default().to_owned();
    Ok(([(header::CONTENT_TYPE, "text/plain; charset=utf-8")], text).into_response())
}

/// Which changes to take.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ApplyRequest {
    /// Only these; what is shown apart is only taken when it is named.
    pub paths: Vec<String>,
    /// Where both changed the same: `ours` keeps the host's, `theirs` takes the sandbox's.
    #[schema(value_type = Option<String>)]
    pub favor: Option<Favored>,
    /// Only say what would happen.
    pub check: bool,
}

/// Take its changes onto the real files.
#[utoipa::path(post, path = "/v1/sandboxes/{id}/apply", tag = "sandboxes", request_body = ApplyRequest,
    params(("id" = String, Path, description = "Its id or name")),
    responses((status = 200, description = "What was taken, and what was not", body = Object)))]
pub async fn apply(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Named(id): Named<String>,
    Sent(request): Sent<ApplyRequest>,
) -> Result<Json<Value>> {
    caller.needs(Scope::Files)?;
    let paths = request.paths.into_iter().map(PathBuf::from).collect();
    Ok(Json(
        ask(&app, &caller, Task::Apply { id, paths, favor: request.favor, check: request.check, by_agent: false })
            .await?,
    ))
}

/// Throw its changes away.
#[utoipa::path(post, path = "/v1/sandboxes/{id}/discard", tag = "sandboxes",
    params(("id" = String, Path, description = "Its id or name")),
    responses((status = 200, description = "What it was", body = Object)))]
pub async fn discard(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Named(id): Named<String>,
) -> Result<Json<Value>> {
    caller.needs(Scope::Files)?;
    Ok(Json(ask(&app, &caller, Task::Discard { id }).await?))
}

/// A name for a state to come back to; the next free one if there is none.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SnapshotRequest {
    pub name: Option<String>,
}

/// Keep what it is now.
#[utoipa::path(post, path = "/v1/sandboxes/{id}/snapshots", tag = "sandboxes", request_body = SnapshotRequest,
    params(("id" = String, Path, description = "Its id or name")),
    responses((status = 201, description = "Its name", body = Object)))]
pub async fn snapshot(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Named(id): Named<String>,
    Sent(request): Sent<SnapshotRequest>,
) -> Result<Response> {
    caller.needs(Scope::Files)?;
    let made = ask(&app, &caller, Task::Snapshot { id, name: request.name }).await?;
    Ok((StatusCode::CREATED, Json(made)).into_response())
}

/// Go back to a snapshot, or to the newest; what was changed since is gone.
#[utoipa::path(post, path = "/v1/sandboxes/{id}/rollback", tag = "sandboxes", request_body = SnapshotRequest,
    params(("id" = String, Path, description = "Its id or name")),
    responses((status = 200, description = "Which one it was", body = Object)))]
pub async fn rollback(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Named(id): Named<String>,
    Sent(request): Sent<SnapshotRequest>,
) -> Result<Json<Value>> {
    caller.needs(Scope::Files)?;
    Ok(Json(ask(&app, &caller, Task::RollBack { id, snapshot: request.name }).await?))
}

#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ForkRequest {
    #[schema(minimum = 1, maximum = 64)]
    pub count: usize,
}

/// Make sandboxes that begin where this one is.
#[utoipa::path(post, path = "/v1/sandboxes/{id}/fork", tag = "sandboxes", request_body = ForkRequest,
    params(("id" = String, Path, description = "Its id or name")),
    responses((status = 201, description = "They", body = Object)))]
pub async fn fork(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Named(id): Named<String>,
    Sent(request): Sent<ForkRequest>,
) -> Result<Response> {
    caller.needs(Scope::Run)?;
    if !(1..=64).contains(&request.count) {
        return Err(Problem::wrong("`count` is between 1 and 64"));
    }
    let forks = ask(&app, &caller, Task::Fork { id, count: request.count }).await?;
    Ok((StatusCode::CREATED, Json(json!({"forks": forks}))).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_follow_each_other_without_gaps_or_repeats() {
        let all = json!(
            (0..25).map(|number| json!({"id": format!("{number:02}"), "created": number / 3})).collect::<Vec<_>>()
        );
        let (mut seen, mut cursor) = (Vec::new(), None::<String>);
        loop {
            let page = page(all.clone(), 4, cursor.as_deref()).expect("a page");
            seen.extend(page.items.iter().map(|item| item["id"].as_str().expect("an id").to_owned()));
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
        let mut sorted = seen.clone();
        sorted.sort();
        sorted.dedup();
        assert_eq!((seen.len(), sorted.len()), (25, 25));
        assert!(page(all, 4, Some("nonsense")).is_err());
    }
}
