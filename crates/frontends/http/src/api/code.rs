//! Code in an open sandbox: where its language keeps variables, in a context that finds what code before it left.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use model::{Cell, CellLanguage, Code, ContextDeed, Language, Makes};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use service::{OfTheHost, Task};
use utoipa::ToSchema;

use super::types::{Limits, Options, RunShown};
use super::{Named, ask, languages, run};
use crate::App;
use crate::body::Sent;
use crate::caller::Caller;
use crate::problem::{Problem, Result};
use crate::runs::Piped;
use crate::tokens::{self, Scope};

/// Code to run in a sandbox that is open.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CodeRequest {
    #[schema(schema_with = languages::names)]
    pub language: Language,
    #[schema(example = "x = 41\nx + 1")]
    pub code: String,
    /// A context that was made before: its variables are there. If none is named, `python`, `javascript` and `bash` have one of
    /// their own, which is made when it is first needed. Other languages have none, and begin anew each time.
    pub context: Option<String>,
    /// Seconds after which it is interrupted. The context stays, unless that does not help.
    #[schema(minimum = 0.001)]
    pub timeout: Option<f64>,
    /// Answer with `text/event-stream`: what it says while it says it, then its result.
    #[serde(default)]
    pub stream: bool,
    /// Bytes of each stream in the result.
    pub capture: Option<u64>,
    /// Which agent it is for; a token for an agent says so itself.
    pub agent: Option<String>,
}

/// Run code in a sandbox that is open.
///
/// As of every run, the answer is its result; `result.cell` has what the code came to: `results`, each in all ways that it can be
/// shown (`text`, `html`, `markdown`, `latex`, `svg`, `json`, `png`, `jpeg`, `plotly`), `error` with its traceback, and whether
/// the context is still there.
#[utoipa::path(post, path = "/v1/sandboxes/{id}/code", tag = "code", request_body = CodeRequest,
    params(("id" = String, Path, description = "Its id or name")),
    responses((status = 200, description = "It ran; with `stream`, events",
        content((RunShown = "application/json"), (Object = "text/event-stream")))))]
pub async fn run(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    Named(id): Named<String>,
    Sent(request): Sent<CodeRequest>,
) -> Result<Response> {
    caller.needs(Scope::Run)?;
    let CodeRequest { language, code, context, timeout, stream, capture, agent } = request;
    let limits = Limits { timeout, ..Limits::default() };
    let options = Options { limits, capture, agent, ..Options::default() };
    let task = match (language.keeps(), context) {
        (Some(keeps), context) => {
            let makes = if context.is_some() { Makes::Never } else { Makes::IfMissing };
            let cell = Cell { language: keeps, program: program(language)?, code, context, makes };
            Task::Cell { id: id.clone(), wish: options.wish(Vec::new())?, cell }
        }
        (None, Some(_)) => {
            return Err(Problem::wrong(format!("{} has no contexts: leave `context` out", language.name())));
        }
        (None, None) => {
            let command = language.command(Code::Word(&code), &OfTheHost).map_err(languages::missing)?;
            Task::RunIn { id: id.clone(), wish: options.wish(command)? }
        }
    };
    let using = app.opened.uses(&caller.tenant, &id)?;
    let piped = Piped { stdin: None, open: false, streamed: stream };
    run::begin(&app, &caller, &headers, caller.job(&app, task), piped, using).await
}

pub fn program(language: Language) -> Result<String> {
    language.program(&OfTheHost).map(str::to_owned).map_err(languages::missing)
}

/// A language that keeps its variables.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Keeping {
    Python,
    Javascript,
    Bash,
}

impl Keeping {
    fn language(self) -> (CellLanguage, Language) {
        match self {
            Keeping::Python => (CellLanguage::Python, Language::Python),
            Keeping::Javascript => (CellLanguage::Javascript, Language::Javascript),
            Keeping::Bash => (CellLanguage::Bash, Language::Bash),
        }
    }
}

#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ContextRequest {
    pub language: Keeping,
    /// Letters, digits, `-`, `_` and `.`; one is chosen if none is said.
    pub name: Option<String>,
}

/// A context.
#[derive(Serialize, ToSchema)]
pub struct ContextTold {
    pub name: String,
    pub language: String,
    /// Code runs in it at this moment.
    pub busy: bool,
    /// How often code was run in it.
    pub cells: u64,
    /// Seconds since 1970.
    pub created: u64,
}

/// The contexts of a sandbox that is open.
#[utoipa::path(get, path = "/v1/sandboxes/{id}/contexts", tag = "code",
    params(("id" = String, Path, description = "Its id or name")),
    responses((status = 200, description = "They", body = Vec<ContextTold>)))]
pub async fn list(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Named(id): Named<String>,
) -> Result<Json<Value>> {
    caller.needs(Scope::Read)?;
    Ok(Json(ask(&app, &caller, Task::Contexts { id }).await?))
}

/// Make a context: an interpreter that waits for code. At most 16 are in a sandbox.
#[utoipa::path(post, path = "/v1/sandboxes/{id}/contexts", tag = "code", request_body = ContextRequest,
    params(("id" = String, Path, description = "Its id or name")),
    responses((status = 201, description = "It is there", body = ContextTold)))]
pub async fn create(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Named(id): Named<String>,
    Sent(ContextRequest { language, name }): Sent<ContextRequest>,
) -> Result<Response> {
    caller.needs(Scope::Run)?;
    let name = match name {
        Some(name) => name,
        None => tokens::random(16).map_err(|error| {
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, "no-random-bytes", error.to_string()).after(1)
        })?,
    };
    let made = make(&app, &caller, id, name, language).await?;
    Ok((StatusCode::CREATED, Json(made)).into_response())
}

/// Code that does nothing, in a new one: so what may not be run there is found out now.
async fn make(app: &App, caller: &Caller, id: String, name: String, language: Keeping) -> Result<Value> {
    let (keeps, language) = language.language();
    let code = if keeps == CellLanguage::Python { "pass" } else { "" };
    let using = app.opened.uses(&caller.tenant, &id)?;
    let cell = Cell {
        language: keeps,
        program: program(language)?,
        code: code.to_owned(),
        context: Some(name.clone()),
        makes: Makes::Always,
    };
    let task = Task::Cell { id: id.clone(), wish: Options::default().wish(Vec::new())?, cell };
    let made = ask(app, caller, task).await?;
    if let Some(lost) = made["cell"]["lost"].as_str() {
        return Err(Problem::new(StatusCode::CONFLICT, "conflict", format!("the context did not stay: {lost}")));
    }
    let all = ask(app, caller, Task::Contexts { id }).await?;
    drop(using);
    let shown = all.as_array().into_iter().flatten().find(|context| context["name"] == name.as_str());
    shown.cloned().ok_or_else(Problem::not_found)
}

/// End a context, with all that runs in it.
#[utoipa::path(delete, path = "/v1/sandboxes/{id}/contexts/{context}", tag = "code",
    params(("id" = String, Path, description = "The sandbox's id or name"), ("context" = String, Path, description = "Its name")),
    responses((status = 200, description = "It is gone", body = Object)))]
pub async fn remove(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Named((id, context)): Named<(String, String)>,
) -> Result<Json<Value>> {
    caller.needs(Scope::Run)?;
    Ok(Json(ask(&app, &caller, Task::Context { id, context, deed: ContextDeed::End }).await?))
}

/// Have what runs in a context stop. Its variables stay.
#[utoipa::path(post, path = "/v1/sandboxes/{id}/contexts/{context}/interrupt", tag = "code",
    params(("id" = String, Path, description = "The sandbox's id or name"), ("context" = String, Path, description = "Its name")),
    responses((status = 202, description = "It was told, if something runs in it", body = Object)))]
pub async fn interrupt(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Named((id, context)): Named<(String, String)>,
) -> Result<Response> {
    caller.needs(Scope::Run)?;
    let told = ask(&app, &caller, Task::Context { id, context, deed: ContextDeed::Interrupt }).await?;
    Ok((StatusCode::ACCEPTED, Json(told)).into_response())
}

/// End a context and make it anew, with nothing in it.
#[utoipa::path(post, path = "/v1/sandboxes/{id}/contexts/{context}/restart", tag = "code",
    params(("id" = String, Path, description = "The sandbox's id or name"), ("context" = String, Path, description = "Its name")),
    responses((status = 200, description = "It is there", body = ContextTold)))]
pub async fn restart(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Named((id, context)): Named<(String, String)>,
) -> Result<Json<Value>> {
    caller.needs(Scope::Run)?;
    let all = ask(&app, &caller, Task::Contexts { id: id.clone() }).await?;
    let known = all.as_array().into_iter().flatten().find(|known| known["name"] == context.as_str());
    let language = known.and_then(|known| serde_json::from_value::<Keeping>(known["language"].clone()).ok());
    let language = language.ok_or_else(|| {
        Problem::new(StatusCode::NOT_FOUND, "no-such-context", "there is no such context in it")
            .hint("list those that there are")
    })?;
    ask(&app, &caller, Task::Context { id: id.clone(), context: context.clone(), deed: ContextDeed::End }).await?;
    Ok(Json(make(&app, &caller, id, context, language).await?))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn code_without_a_language_is_none() {
        assert!(serde_json::from_value::<CodeRequest>(json!({"code": "1"})).is_err());
        let request = serde_json::from_value::<CodeRequest>(json!({"language": "c++", "code": "1"}));
        assert_eq!(request.expect("it is known").language, Language::Cpp);
    }
}
