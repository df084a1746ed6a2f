//! Artifacts, policies, secrets, agents, and how the service does.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde::Deserialize;
use serde_json::{Value, json};
use service::job::Hidden;
use service::{Said, Streams, Task};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use utoipa::{IntoParams, ToSchema};

use super::types::{FileContents, Page, Paging, files};
use super::{Asked, Named, ask};
use crate::App;
use crate::body::Sent;
use crate::caller::Caller;
use crate::problem::{Problem, Result};
use crate::runs;
use crate::tokens::Scope;

/// Of an artifact, in bytes, in one answer.
const LARGEST: u64 = 64 << 20;

/// Files that earlier runs handed over, or would have.
#[utoipa::path(get, path = "/v1/artifacts", tag = "artifacts", params(Paging),
    responses((status = 200, description = "Some of them", body = Page)))]
pub async fn artifacts(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Asked(paging): Asked<Paging>,
) -> Result<Json<Page>> {
    caller.needs(Scope::Read)?;
    let limit = paging.limit()?;
    let all = ask(&app, &caller, Task::Artifacts { of: None }).await?;
    super::sandboxes::page(all, limit, paging.cursor.as_deref()).map(Json)
}

/// One of them.
#[utoipa::path(get, path = "/v1/artifacts/{id}", tag = "artifacts", params(("id" = String, Path, description = "Its id")),
    responses((status = 200, description = "What is known of it", body = Object)))]
pub async fn artifact(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Named(id): Named<String>,
) -> Result<Json<Value>> {
    caller.needs(Scope::Read)?;
    Ok(Json(ask(&app, &caller, Task::Artifact { id }).await?))
}

/// Its contents.
#[utoipa::path(get, path = "/v1/artifacts/{id}/content", tag = "artifacts", params(("id" = String, Path, description = "Its id")),
    responses((status = 200, description = "Its bytes", content_type = "application/octet-stream", body = Vec<u8>)))]
pub async fn contents(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Named(id): Named<String>,
) -> Result<Response> {
    caller.needs(Scope::Read)?;
    let admitted = app.admission.enter(&caller.who).await?;
    let lost = |error: std::io::Error| Problem::from(service::Lost::Io(error));
    let (bytes, streams) = piped().map_err(lost)?;
    let mut running = app.pool.begin(&caller.job(&app, Task::ArtifactContents { id }), Some(streams)).await?;
    let reading = tokio::spawn(async move {
        let mut read = Vec::new();
        bytes.take(LARGEST + 1).read_to_end(&mut read).await.map(|_| read)
    });
    let answer = loop {
        if let Said::Answer(answer) = running.next().await? {
            break answer;
        }
    };
    Problem::or_value(answer)?;
    let bytes = reading.await.map_err(|_| Problem::from(service::Lost::Ended))?.map_err(lost)?;
    drop(admitted);
    if bytes.len() as u64 > LARGEST {
        return Err(Problem::wrong(format!("it has more than {} MiB", LARGEST >> 20)).hint("`belljar artifacts get`"));
    }
    // Hostile bytes: never shown as a page of ours, whatever they look like.
    let headers = [(header::CONTENT_TYPE, "application/octet-stream"), (header::CONTENT_DISPOSITION, "attachment")];
    Ok((headers, bytes).into_response())
}

fn piped() -> std::io::Result<(pipe::Receiver, Streams)> {
    use rustix::fs::{Mode, OFlags, open};
    let nothing = || open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty());
    let (ours, output) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    Ok((pipe::Receiver::from_owned_fd(ours)?, Streams { input: nothing()?, output, error: nothing()? }))
}

#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct Around {
    /// In this sandbox, over whose workspace there may be a policy of its own.
    pub sandbox: Option<String>,
}

/// The policy that is in force, and from where.
///
/// Its `ETag` is a digest of everything that has a say. Sent as `If-Match` with `/v1/run` or `exec`, that is judged under just this
/// policy, or answered with 412 and the revision that is in force by now.
#[utoipa::path(get, path = "/v1/policies", tag = "policies", params(Around),
    responses((status = 200, description = "It", body = Object)))]
pub async fn policy(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Asked(Around { sandbox }): Asked<Around>,
) -> Result<Response> {
    caller.needs(Scope::Read)?;
    let shown = ask(&app, &caller, Task::Policy { id: sandbox }).await?;
    let tag = format!("\"{}\"", shown["revision"].as_str().unwrap_or_default());
    Ok(([(header::ETAG, tag)], Json(shown)).into_response())
}

/// A policy file's text.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PolicyText {
    pub text: String,
}

/// What is wrong with a policy file.
#[utoipa::path(post, path = "/v1/policies/validate", tag = "policies", request_body = PolicyText,
    responses((status = 200, description = "Remarks, none if it is in order", body = Object)))]
pub async fn validate(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Sent(sent): Sent<PolicyText>,
) -> Result<Json<Value>> {
    caller.needs(Scope::Read)?;
    let remarks = ask(&app, &caller, Task::Lint { text: sent.text }).await?;
    Ok(Json(json!({"remarks": remarks})))
}

/// A command to be judged.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Judged {
    pub command: Vec<String>,
    pub agent: Option<String>,
}

/// What the policy would answer to a command, and why.
#[utoipa::path(post, path = "/v1/policies/test", tag = "policies", request_body = Judged,
    responses((status = 200, description = "The verdict", body = Object)))]
pub async fn test(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Sent(sent): Sent<Judged>,
) -> Result<Json<Value>> {
    caller.needs(Scope::Read)?;
    if sent.command.is_empty() {
        return Err(Problem::wrong("say `command`"));
    }
    Ok(Json(ask(&app, &caller, Task::Check { command: sent.command, agent: sent.agent, id: None }).await?))
}

/// Names of secrets, and where each may go. Values never come out.
#[utoipa::path(get, path = "/v1/secrets", tag = "secrets", responses((status = 200, description = "They", body = Object)))]
pub async fn secrets(State(app): State<App>, Extension(caller): Extension<Caller>) -> Result<Json<Value>> {
    caller.needs(Scope::Read)?;
    Ok(Json(json!({"items": ask(&app, &caller, Task::Secrets).await?})))
}

/// A secret to be kept, sealed.
#[derive(Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SecretValue {
    pub value: String,
    /// Where it may go if nobody says otherwise.
    pub hosts: Option<Vec<String>>,
}

/// Keep a secret, or replace the one of that name.
#[utoipa::path(put, path = "/v1/secrets/{name}", tag = "secrets", request_body = SecretValue,
    params(("name" = String, Path, description = "Its name")),
    responses((status = 200, description = "What may be shown of it", body = Object)))]
pub async fn set_secret(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Named(name): Named<String>,
    Sent(sent): Sent<SecretValue>,
) -> Result<Json<Value>> {
    caller.needs(Scope::Admin)?;
    Ok(Json(ask(&app, &caller, Task::SetSecret { name, value: Hidden(sent.value), hosts: sent.hosts }).await?))
}

/// Forget a secret.
#[utoipa::path(delete, path = "/v1/secrets/{name}", tag = "secrets", params(("name" = String, Path, description = "Its name")),
    responses((status = 200, description = "What it was", body = Object)))]
pub async fn remove_secret(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Named(name): Named<String>,
) -> Result<Json<Value>> {
    caller.needs(Scope::Admin)?;
    Ok(Json(ask(&app, &caller, Task::RemoveSecret { name }).await?))
}

/// Who runs what, and what the monitor says of them.
#[utoipa::path(get, path = "/v1/agents", tag = "agents", responses((status = 200, description = "They", body = Object)))]
pub async fn agents(State(app): State<App>, Extension(caller): Extension<Caller>) -> Result<Json<Value>> {
    caller.needs(Scope::Read)?;
    Ok(Json(json!({"items": ask(&app, &caller, Task::Agents).await?})))
}

/// Files to look into.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ScanRequest {
    pub files: BTreeMap<String, FileContents>,
}

/// Look for dangerous code and secrets in files.
#[utoipa::path(post, path = "/v1/scan", tag = "runs", request_body = ScanRequest,
    responses((status = 200, description = "What was found", body = Object)))]
pub async fn scan(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Sent(sent): Sent<ScanRequest>,
) -> Result<Json<Value>> {
    caller.needs(Scope::Run)?;
    let task = Task::Scan { folder: runs::new_id()?, files: files(sent.files) };
    Ok(Json(ask(&app, &caller, task).await?))
}

/// What this host can hold, wall by wall.
#[utoipa::path(get, path = "/v1/doctor", tag = "service", responses((status = 200, description = "The report", body = Object)))]
pub async fn doctor(State(app): State<App>, Extension(caller): Extension<Caller>) -> Result<Json<Value>> {
    caller.needs(Scope::Read)?;
    Ok(Json(ask(&app, &caller, Task::Doctor).await?))
}

/// Numbers for Prometheus. Of the service as a whole: no tenant is named.
#[utoipa::path(get, path = "/v1/metrics", tag = "service",
    responses((status = 200, description = "Metrics", content_type = "text/plain", body = String)))]
pub async fn metrics(State(app): State<App>, Extension(caller): Extension<Caller>) -> Result<Response> {
    caller.needs(Scope::Admin)?;
    let mut text = String::from(
        "# HELP belljar_service_answers_total Answers, by the class of their status.\n# TYPE belljar_service_answers_total counter\n",
    );
    for (class, count) in app.answers.iter().enumerate().skip(1) {
        text += &format!("belljar_service_answers_total{{class=\"{class}xx\"}} {}\n", count.load(Ordering::Relaxed));
    }
    text += &format!(
        "# HELP belljar_service_jobs Jobs that are being carried out.\n# TYPE belljar_service_jobs gauge\nbelljar_service_jobs {}\n",
        app.admission.busy()
    );
    text += &format!(
        "# HELP belljar_service_runs Runs that go on.\n# TYPE belljar_service_runs gauge\nbelljar_service_runs {}\n",
        app.runs.going().len()
    );
    text += &format!(
        "# HELP belljar_service_warm_total Runs that a warm interpreter could have, by whether one stood ready.\n# TYPE belljar_service_warm_total counter\nbelljar_service_warm_total{{ready=\"yes\"}} {}\nbelljar_service_warm_total{{ready=\"soon\"}} {}\nbelljar_service_warm_total{{ready=\"no\"}} {}\n",
        app.warm.taken.load(Ordering::Relaxed),
        app.warm.awaited.load(Ordering::Relaxed),
        app.warm.missed.load(Ordering::Relaxed)
    );
    text += &format!(
        "# HELP belljar_service_warm_ready Sandboxes that stand ready.\n# TYPE belljar_service_warm_ready gauge\nbelljar_service_warm_ready {}\n",
        app.warm.ready()
    );
    Ok(([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response())
}
