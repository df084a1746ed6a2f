//! `/v1/run`, `/v1/runs`: something to run, in a sandbox of its own.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use model::Code;
use serde_json::Value;
use service::{Job, OfTheHost, Task, Wish};

use super::languages;
use super::types::{FileContents, RunRequest, files};
use super::{Named, ask, revision, streamed};
use crate::App;
use crate::body::Sent;
use crate::caller::Caller;
use crate::idempotency;
use crate::opened::Using;
use crate::problem::{Problem, Result};
use crate::runs::{self, Piped, Run};
use crate::tokens::Scope;

/// Run a command or code in a fresh sandbox.
///
/// The answer is its result; with `stream`, events: `started`, `stdout`, `stderr`, `notice`, and last `result` or `problem`.
/// Whoever goes away before the end ends it, unless there is an `Idempotency-Key`. With `If-Match` and the `ETag` of `/v1/policies`, it is
/// judged under that policy or not at all (412).
#[utoipa::path(post, path = "/v1/run", tag = "runs", request_body = RunRequest,
    responses((status = 200, description = "It ran; with `stream`, events",
        content((super::types::RunShown = "application/json"), (Object = "text/event-stream")))))]
pub async fn run(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    Sent(request): Sent<RunRequest>,
) -> Result<Response> {
    caller.needs(Scope::Run)?;
    let RunRequest { command, language, code, files: sent, stdin, timeout, stream, mut options } = request;
    let mut sent = sent;
    options.limits.timeout = timeout.or(options.limits.timeout);
    let command = match (command, language, code) {
        (Some(command), None, None) if !command.is_empty() => command,
        (None, Some(language), Some(code)) => {
            let file = language.file();
            let command = language.command(Code::File(file), &OfTheHost).map_err(languages::missing)?;
            if sent.insert(file.to_owned(), FileContents::Text(code)).is_some() {
                return Err(Problem::wrong(format!("`files` has `{file}`, which is where `code` goes")));
            }
            command
        }
        _ => return Err(Problem::wrong("say either `command`, or `language` and `code`")),
    };
    let wish = Wish { revisions: revision::expected(&headers)?, ..options.wish(command)? };
    let task = Task::Run { wish, folder: runs::new_id()?, files: files(sent) };
    let piped = Piped { stdin, open: false, streamed: stream };
    begin(&app, &caller, &headers, caller.job(&app, task), piped, None).await
}

/// Carries a run out, and answers as was asked for.
pub async fn begin(
    app: &App,
    caller: &Caller,
    headers: &HeaderMap,
    mut job: Job,
    piped: Piped,
    using: Option<Using>,
) -> Result<Response> {
    let (streams, keyed) = (piped.streamed, headers.contains_key(idempotency::HEADER));
    if streams && keyed {
        return Err(Problem::wrong("`stream` and `Idempotency-Key` don't go together")
            .hint("a stream has a way back of its own: `GET /v1/runs/{id}/events` with `Last-Event-ID`"));
    }
    let admitted = app.admission.enter(&caller.who).await?;
    let run = app.runs.begin(&caller.tenant)?;
    job.task.is_called(&run.id);
    let listens = streams.then(|| run.clone().listen(0));
    runs::carry(app, run.clone(), job, piped, (admitted, using));
    if let Some(listens) = listens {
        return Ok(streamed(listens));
    }
    let mut waiting = Waiting { run, over: false };
    let end = waiting.run.end().await;
    waiting.over = true;
    Ok(Json(end?).into_response())
}

/// Begins a run that goes on by itself, and says which it is. It is no job: it may go on for as long as it likes.
pub fn begin_apart(app: &App, caller: &Caller, mut job: Job, piped: Piped, using: Option<Using>) -> Result<Response> {
    let permit = app.admission.stay(&caller.who)?;
    let run = app.runs.begin_as(&caller.tenant, true)?;
    job.task.is_called(&run.id);
    let begun = super::live::begun(&run.id);
    let place = format!("/v1/runs/{}", run.id);
    runs::carry(app, run, job, piped, (permit, using));
    Ok((StatusCode::ACCEPTED, [(axum::http::header::LOCATION, place)], Json(begun)).into_response())
}

/// Whoever waits; if they go away before the end, there is nobody to run it for.
struct Waiting {
    run: Arc<Run>,
    over: bool,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if !self.over {
            self.run.cancel();
        }
    }
}

/// What a run would do, step by step, without doing it.
#[utoipa::path(post, path = "/v1/explain", tag = "runs", request_body = RunRequest,
    responses((status = 200, description = "The plan", body = Object)))]
pub async fn explain(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Sent(request): Sent<RunRequest>,
) -> Result<Json<Value>> {
    caller.needs(Scope::Run)?;
    let command = match (request.command, request.language) {
        (Some(command), None) if !command.is_empty() => command,
        (None, Some(language)) => {
            language.command(Code::File(language.file()), &OfTheHost).map_err(languages::missing)?
        }
        _ => return Err(Problem::wrong("say either `command` or `language`")),
    };
    Ok(Json(ask(&app, &caller, Task::Explain { wish: request.options.wish(command)? }).await?))
}

/// A run.
///
/// What it said is there for some minutes. After that, and after a restart of the service, the record tells that it ran and how it
/// ended (`recorded`).
#[utoipa::path(get, path = "/v1/runs/{id}", tag = "runs", params(("id" = String, Path, description = "As it began with")),
    responses((status = 200, description = "As it is now", body = super::types::RunShown)))]
pub async fn show(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Named(id): Named<String>,
) -> Result<Response> {
    caller.needs(Scope::Read)?;
    match app.runs.find(&caller.tenant, &id) {
        Ok(run) => Ok(Json(run.shown()).into_response()),
        Err(_) => Ok(Json(ask(&app, &caller, Task::Recorded { run: id }).await?).into_response()),
    }
}

/// End a run. Its result still comes, and says so.
#[utoipa::path(delete, path = "/v1/runs/{id}", tag = "runs", params(("id" = String, Path, description = "As it began with")),
    responses((status = 202, description = "It was told to end")))]
pub async fn cancel(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Named(id): Named<String>,
) -> Result<StatusCode> {
    caller.needs(Scope::Run)?;
    app.runs.find(&caller.tenant, &id)?.cancel();
    Ok(StatusCode::ACCEPTED)
}

/// What a run says, from its beginning or after `Last-Event-ID`.
#[utoipa::path(get, path = "/v1/runs/{id}/events", tag = "runs", params(("id" = String, Path, description = "As it began with")),
    responses((status = 200, description = "Events", content_type = "text/event-stream", body = String)))]
pub async fn events(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    Named(id): Named<String>,
) -> Result<Response> {
    caller.needs(Scope::Read)?;
    let run = app.runs.find(&caller.tenant, &id)?;
    let after = headers.get("last-event-id").and_then(|id| id.to_str().ok()?.parse().ok()).unwrap_or(0);
    Ok(streamed(run.listen(after)))
}
