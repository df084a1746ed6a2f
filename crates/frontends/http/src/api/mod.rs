//! What can be asked under `/v1`, and how it describes itself.

mod approvals;
mod branches;
mod code;
mod files;
mod languages;
mod live;
mod more;
mod ports;
mod ranges;
mod records;
mod revision;
mod run;
mod sandboxes;
mod templates;
mod terminals;
mod types;

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{FromRequestParts, Path, Query, State};
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use axum::response::sse::{self, KeepAlive, Sse};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router, middleware};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use service::Task;
use tokio::sync::mpsc;
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::caller::{self, Caller};
use crate::problem::{Problem, Result};
use crate::runs::Event;
use crate::{App, door, idempotency, mount, reference};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "belljar",
        description = "Run what coding agents want to run, under a bell jar. Every request is judged by the policy; a refusal is a problem (RFC 9457) with its rule, its reason and a hint."
    ),
    components(schemas(Problem, types::RunShown, types::Page))
)]
struct Described;

pub fn router(app: App) -> Router {
    let (known, document) = known().split_for_parts();
    let document = Arc::new(complete(document, app.version));
    let page = Arc::new(reference::page(&document));
    let known = known
        .route_layer(middleware::from_fn_with_state(app.clone(), idempotency::once))
        .route_layer(middleware::from_fn_with_state(app.clone(), caller::known));
    Router::new()
        .merge(known)
        .merge(mount::router(app.clone()))
        .route("/v1/health", get(health))
        .route("/v1/openapi.json", get(move || async move { Json((*document).clone()) }))
        .route("/v1/reference", get(move || async move { Html((*page).clone()) }))
        .fallback(|| async { Problem::not_found() })
        .method_not_allowed_fallback(|| async {
            let detail = "this can't be done to it";
            Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method", detail).hint("see `/v1/reference`")
        })
        .layer(middleware::from_fn_with_state(app.clone(), door::around))
        // Before everything: what is a guest's is under another name, and nothing of ours is said there.
        .layer(middleware::from_fn_with_state(app.clone(), crate::ports::or_the_api))
        .with_state(app)
}

fn known() -> OpenApiRouter<App> {
    OpenApiRouter::with_openapi(Described::openapi())
        .routes(routes!(run::run))
        .routes(routes!(run::explain))
        .routes(routes!(run::show, run::cancel))
        .routes(routes!(run::events))
        .routes(routes!(sandboxes::list, sandboxes::create))
        .routes(routes!(sandboxes::show, sandboxes::remove))
        .routes(routes!(sandboxes::exec))
        .routes(routes!(sandboxes::diff))
        .routes(routes!(sandboxes::patch))
        .routes(routes!(sandboxes::apply))
        .routes(routes!(sandboxes::discard))
        .routes(routes!(sandboxes::snapshot))
        .routes(routes!(sandboxes::rollback))
        .routes(routes!(sandboxes::fork))
        .routes(routes!(templates::list))
        .routes(routes!(templates::show, templates::set, templates::remove))
        .routes(routes!(live::open))
        .routes(routes!(live::stop))
        .routes(routes!(live::pause))
        .routes(routes!(live::resume))
        .routes(routes!(live::stdin))
        .routes(routes!(live::signal))
        .routes(routes!(code::run))
        .routes(routes!(code::list, code::create))
        .routes(routes!(code::remove))
        .routes(routes!(code::interrupt))
        .routes(routes!(code::restart))
        .routes(routes!(branches::fork))
        .routes(routes!(terminals::list, terminals::begin))
        .routes(routes!(terminals::show, terminals::end))
        .routes(routes!(terminals::resize))
        .routes(routes!(terminals::attach))
        .routes(routes!(ports::list, ports::open))
        .routes(routes!(ports::close))
        .routes(routes!(records::network))
        .routes(routes!(files::read, files::write, files::remove))
        .routes(routes!(files::list))
        .routes(routes!(files::stat))
        .routes(routes!(files::make_folder))
        .routes(routes!(files::rename))
        .routes(routes!(files::search))
        .routes(routes!(files::pack, files::unpack))
        .routes(routes!(files::watch))
        .routes(routes!(approvals::list))
        .routes(routes!(approvals::stream))
        .routes(routes!(approvals::show, approvals::reply))
        .routes(routes!(records::entries))
        .routes(routes!(records::verify))
        .routes(routes!(records::receipt))
        .routes(routes!(more::artifacts))
        .routes(routes!(more::artifact))
        .routes(routes!(more::contents))
        .routes(routes!(more::policy))
        .routes(routes!(more::validate))
        .routes(routes!(more::test))
        .routes(routes!(more::secrets))
        .routes(routes!(more::set_secret, more::remove_secret))
        .routes(routes!(more::agents))
        .routes(routes!(more::scan))
        .routes(routes!(more::doctor))
        .routes(routes!(more::metrics))
}

/// What holds for all of it: the token, and that anything may be answered with a problem.
fn complete(document: utoipa::openapi::OpenApi, version: &str) -> Value {
    let mut document = serde_json::to_value(document).unwrap_or_default();
    document["info"]["version"] = version.into();
    document["info"]["license"] = json!({"name": "Apache-2.0", "identifier": "Apache-2.0"});
    document["components"]["securitySchemes"] = json!({"token": {"type": "http", "scheme": "bearer"}});
    document["security"] = json!([{"token": []}]);
    let problem = json!({
        "description": "A problem (RFC 9457)",
        "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
    });
    for operations in document["paths"].as_object_mut().into_iter().flat_map(|paths| paths.values_mut()) {
        for operation in operations.as_object_mut().into_iter().flat_map(|operations| operations.values_mut()) {
            operation["responses"]["default"] = problem.clone();
        }
    }
    document["paths"]["/v1/health"] = json!({"get": {
        "tags": ["service"], "summary": "Whether it serves.", "operationId": "health", "security": [],
        "responses": {"200": {"description": "It does", "content": {"application/json": {"schema": {"type": "object"}}}}},
    }});
    document
}

async fn health(State(app): State<App>) -> Json<Value> {
    Json(json!({"status": "ok", "version": app.version}))
}

/// A job whose answer is the body. Whoever goes away does not stop it half-way: what it changes, it changes whole.
async fn ask(app: &App, caller: &Caller, task: Task) -> Result<Value> {
    let admitted = app.admission.enter(&caller.who).await?;
    let (job, pool) = (caller.job(app, task), app.pool.clone());
    let task = tokio::spawn(async move {
        let answer = pool.answer(&job).await;
        drop(admitted);
        answer
    });
    let answer = task.await.map_err(|_| Problem::from(service::Lost::Ended))?;
    Problem::or_value(answer?)
}

/// What a path names.
struct Named<T>(T);

impl<T: DeserializeOwned + Send> FromRequestParts<App> for Named<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Named<T>> {
        // What can't be read as a name is no name of anything.
        let Path(named) =
            Path::from_request_parts(parts, app).await.map_err(|_: PathRejection| Problem::not_found())?;
        Ok(Named(named))
    }
}

/// What follows the `?`.
struct Asked<T>(T);

impl<T: DeserializeOwned> FromRequestParts<App> for Asked<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Asked<T>> {
        let Query(asked) = Query::from_request_parts(parts, app)
            .await
            .map_err(|rejection: QueryRejection| Problem::wrong(rejection.body_text()))?;
        Ok(Asked(asked))
    }
}

/// Events as they come, until there are no more.
struct Events(mpsc::Receiver<Event>);

impl futures_core::Stream for Events {
    type Item = std::result::Result<sse::Event, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(context).map(|event| {
            let Event { number, kind, data } = event?;
            let data = String::from_utf8_lossy(&data);
            Some(Ok(sse::Event::default().id(number.to_string()).event(kind).data(data)))
        })
    }
}

fn streamed(events: mpsc::Receiver<Event>) -> Response {
    let mut response = Sse::new(Events(events)).keep_alive(KeepAlive::default()).into_response();
    // Proxies that gather an answer before they pass it on would make it none.
    response.headers_mut().insert("x-accel-buffering", header::HeaderValue::from_static("no"));
    response
}
