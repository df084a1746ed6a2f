//! Sandboxes that are open, and runs that go on in the background.

use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::http::StatusCode;
use axum::{Extension, Json};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use service::Task;
use utoipa::{IntoParams, ToSchema};

use super::{Asked, Named, ask};
use crate::App;
use crate::body::{self, Sent};
use crate::caller::Caller;
use crate::opened::Until;
use crate::problem::{Problem, Result};
use crate::tokens::Scope;

/// As with other services of this kind: what nobody uses does not stay for ever.
const IDLE: f64 = 300.0;
const LONGEST: f64 = 30.0 * 24.0 * 3600.0;

/// How long it stays open. Its files stay in any case.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct OpenRequest {
    /// Seconds from now.
    #[schema(minimum = 1)]
    pub expires: Option<f64>,
    /// Seconds in which nothing is done in it over this API; 300 if neither is said, 0 for as long as it takes.
    #[schema(minimum = 0)]
    pub idle: Option<f64>,
}

impl OpenRequest {
    pub fn until(&self) -> Result<Until> {
        let seconds = |name: &str, value: f64| match (1.0..=LONGEST).contains(&value) {
            true => Ok(Duration::from_secs_f64(value)),
            false => Err(Problem::wrong(format!("`{name}` is between 1 and {LONGEST} seconds"))),
        };
        let idle = match (self.idle, self.expires) {
            (Some(0.0), _) | (None, Some(_)) => None,
            (idle, _) => Some(seconds("idle", idle.unwrap_or(IDLE))?),
        };
        Ok(Until { expires: self.expires.map(|value| seconds("expires", value)).transpose()?, idle })
    }
}

/// Opens it for whoever asked; says what it is then.
pub async fn opened(app: &App, caller: &Caller, id: String, request: &OpenRequest) -> Result<Value> {
    let until = request.until()?;
    let known = ask(app, caller, Task::Sandbox { id }).await?;
    let id = known["id"].as_str().unwrap_or_default().to_owned();
    let permit = app.admission.stay(&caller.who)?;
    let job = caller.job(app, Task::Open { id: id.clone() });
    let key = (caller.tenant.clone(), id.clone());
    let name = known["name"].as_str().map(str::to_owned);
    let mut shown = app.opened.clone().open(app.pool.clone(), key, name, job, until, permit).await?;
    show(app, caller, &mut shown);
    Ok(shown)
}

/// With what is known here of one that is open.
pub fn show(app: &App, caller: &Caller, shown: &mut Value) {
    let place = shown["id"].as_str().and_then(|id| app.opened.find(&caller.tenant, id));
    if let (Some(place), Some(map)) = (place, shown.as_object_mut()) {
        map.insert("stays".to_owned(), place.shown());
    }
}

/// Open a kept sandbox: it stands until it is stopped, what is run in it finds what was left running, and nothing has to be set up
/// for each command. Counts apart from jobs.
#[utoipa::path(post, path = "/v1/sandboxes/{id}/open", tag = "sandboxes", request_body = OpenRequest,
    params(("id" = String, Path, description = "Its id or name")),
    responses((status = 200, description = "It is open", body = Object)))]
pub async fn open(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Named(id): Named<String>,
    Sent(request): Sent<OpenRequest>,
) -> Result<Json<Value>> {
    caller.needs(Scope::Run)?;
    Ok(Json(opened(&app, &caller, id, &request).await?))
}

/// End everything that runs in an open sandbox. Its files stay; the next command finds them.
#[utoipa::path(post, path = "/v1/sandboxes/{id}/stop", tag = "sandboxes",
    params(("id" = String, Path, description = "Its id or name")),
    responses((status = 200, description = "What it is now", body = Object)))]
pub async fn stop(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Named(id): Named<String>,
) -> Result<Json<Value>> {
    caller.needs(Scope::Run)?;
    Ok(Json(stopped(&app, &caller, id).await?))
}

pub async fn stopped(app: &App, caller: &Caller, id: String) -> Result<Value> {
    let shown = ask(app, caller, Task::Stop { id, why: None }).await?;
    if let Some(id) = shown["id"].as_str() {
        // Its place is free when it is gone from here, too.
        drop(tokio::time::timeout(Duration::from_secs(10), app.opened.gone(&caller.tenant, id)).await);
    }
    Ok(shown)
}

/// Have everything in an open sandbox stand still. No time limit runs meanwhile, and nothing can be started in it. Needs control
/// groups; where there are none, it says so.
#[utoipa::path(post, path = "/v1/sandboxes/{id}/pause", tag = "sandboxes",
    params(("id" = String, Path, description = "Its id or name")),
    responses((status = 200, description = "It stands still", body = Object)))]
pub async fn pause(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Named(id): Named<String>,
) -> Result<Json<Value>> {
    caller.needs(Scope::Run)?;
    paused(&app, &caller, id, true).await
}

/// Have it go on.
#[utoipa::path(post, path = "/v1/sandboxes/{id}/resume", tag = "sandboxes",
    params(("id" = String, Path, description = "Its id or name")),
    responses((status = 200, description = "It goes on", body = Object)))]
pub async fn resume(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Named(id): Named<String>,
) -> Result<Json<Value>> {
    caller.needs(Scope::Run)?;
    paused(&app, &caller, id, false).await
}

async fn paused(app: &App, caller: &Caller, id: String, pause: bool) -> Result<Json<Value>> {
    let mut shown = ask(app, caller, Task::Pause { id, pause }).await?;
    if let Some(place) = shown["id"].as_str().and_then(|id| app.opened.find(&caller.tenant, id)) {
        place.is_now(pause);
    }
    show(app, caller, &mut shown);
    Ok(Json(shown))
}

#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct Ended {
    /// There is no more after this.
    pub end: bool,
}

/// More input for a run that was begun with `background` and `interactive`.
#[utoipa::path(post, path = "/v1/runs/{id}/stdin", tag = "runs",
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    params(("id" = String, Path, description = "As it began with"), Ended),
    responses((status = 202, description = "It was handed over")))]
pub async fn stdin(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Named(id): Named<String>,
    Asked(Ended { end }): Asked<Ended>,
    body: Body,
) -> Result<StatusCode> {
    caller.needs(Scope::Run)?;
    let run = app.runs.find(&caller.tenant, &id)?;
    let bytes = body::read(&app, body).await?;
    run.put_in(&bytes, end).await?;
    Ok(StatusCode::ACCEPTED)
}

/// Signals that a run can be sent. To end one, with everything that it started: `DELETE /v1/runs/{id}`.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum Signal {
    Hup,
    Int,
    Quit,
    Term,
    Usr1,
    Usr2,
}

impl Signal {
    pub fn number(self) -> i32 {
        match self {
            Signal::Hup => 1,
            Signal::Int => 2,
            Signal::Quit => 3,
            Signal::Usr1 => 10,
            Signal::Usr2 => 12,
            Signal::Term => 15,
        }
    }
}

#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SignalRequest {
    pub signal: Signal,
}

/// Send a signal to a run. After `HUP`, `INT`, `QUIT` and `TERM` it has five seconds to end.
#[utoipa::path(post, path = "/v1/runs/{id}/signal", tag = "runs", request_body = SignalRequest,
    params(("id" = String, Path, description = "As it began with")),
    responses((status = 202, description = "It was handed over")))]
pub async fn signal(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Named(id): Named<String>,
    Sent(SignalRequest { signal }): Sent<SignalRequest>,
) -> Result<StatusCode> {
    caller.needs(Scope::Run)?;
    app.runs.find(&caller.tenant, &id)?.signal(signal.number())?;
    Ok(StatusCode::ACCEPTED)
}

/// What a client of a background run is told at once.
pub fn begun(id: &str) -> Value {
    json!({"id": id, "status": "running", "events": format!("/v1/runs/{id}/events")})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_uses_does_not_stay_unless_somebody_says_so() {
        let until = |expires, idle| OpenRequest { expires, idle }.until().map_err(|problem| problem.status);
        let seconds = |number| Some(Duration::from_secs(number));
        assert_eq!(until(None, None), Ok(Until { expires: None, idle: seconds(300) }));
        assert_eq!(until(Some(5.0), None), Ok(Until { expires: seconds(5), idle: None }));
        assert_eq!(until(Some(5.0), Some(2.0)), Ok(Until { expires: seconds(5), idle: seconds(2) }));
        assert_eq!(until(None, Some(0.0)), Ok(Until::default()));
        for wrong in [f64::NAN, f64::INFINITY, -1.0, 0.5, 1e12] {
            assert_eq!(until(Some(wrong), None), Err(422), "{wrong}");
            assert_eq!(until(None, Some(wrong)), Err(422), "{wrong}");
        }
    }
}
