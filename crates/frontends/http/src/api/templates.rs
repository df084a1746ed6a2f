//! `/v1/templates`: what sandboxes of a tenant can be made from, by name.

use std::collections::BTreeMap;

use axum::extract::State;
use axum::{Extension, Json};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use service::Task;
use utoipa::ToSchema;

use super::types::{FileContents, From, Options, files};
use super::{Named, ask};
use crate::App;
use crate::body::Sent;
use crate::caller::Caller;
use crate::problem::{Problem, Result};
use crate::runs;
use crate::tokens::Scope;

/// What a policy is called that is in a workspace.
const POLICY: &str = "belljar.toml";

/// Something that sandboxes can be made from.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Template {
    pub description: String,
    /// Files of the workspace, by their paths in it.
    pub files: BTreeMap<String, FileContents>,
    /// Limits, network and so on: as for a sandbox that is made without a template.
    pub options: Options,
    /// A policy file. It has a say beside the one that is in force, as that of a project that nobody trusts: it can forbid and ask, and
    /// allows nothing.
    pub policy: Option<String>,
}

/// Names of templates.
#[utoipa::path(get, path = "/v1/templates", tag = "templates", responses((status = 200, description = "They", body = Object)))]
pub async fn list(State(app): State<App>, Extension(caller): Extension<Caller>) -> Result<Json<Value>> {
    caller.needs(Scope::Read)?;
    Ok(Json(json!({"items": ask(&app, &caller, Task::Templates).await?})))
}

/// One of them.
#[utoipa::path(get, path = "/v1/templates/{name}", tag = "templates", params(("name" = String, Path, description = "Its name")),
    responses((status = 200, description = "It", body = Object)))]
pub async fn show(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Named(name): Named<String>,
) -> Result<Json<Value>> {
    caller.needs(Scope::Read)?;
    Ok(Json(ask(&app, &caller, Task::Template { name }).await?))
}

/// Keep a template, or replace the one of that name. Sandboxes that were made from it stay as they are.
#[utoipa::path(put, path = "/v1/templates/{name}", tag = "templates", request_body = Template,
    params(("name" = String, Path, description = "Letters, digits, `-` and `_`")),
    responses((status = 200, description = "It is kept", body = Object)))]
pub async fn set(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Named(name): Named<String>,
    Sent(template): Sent<Template>,
) -> Result<Json<Value>> {
    caller.needs(Scope::Admin)?;
    if template.policy.is_some() && template.files.contains_key(POLICY) {
        return Err(Problem::wrong(format!("`files` has `{POLICY}`, which is where `policy` goes")));
    }
    // What can't be asked for is found out now, not when somebody makes a sandbox from it.
    template.options.clone().wish(Vec::new())?;
    let whole = serde_json::to_value(&template).map_err(|error| Problem::wrong(error.to_string()))?;
    let Template { files: sent, policy, .. } = template;
    Ok(Json(ask(&app, &caller, Task::SetTemplate { name, template: whole, files: files(sent), policy }).await?))
}

/// Forget a template. Sandboxes that were made from it stay.
#[utoipa::path(delete, path = "/v1/templates/{name}", tag = "templates", params(("name" = String, Path, description = "Its name")),
    responses((status = 200, description = "Its name", body = Object)))]
pub async fn remove(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Named(name): Named<String>,
) -> Result<Json<Value>> {
    caller.needs(Scope::Admin)?;
    Ok(Json(ask(&app, &caller, Task::RemoveTemplate { name }).await?))
}

/// The task that makes a sandbox from something. What that was made with holds, so nothing else can be said of it; files can be
/// added to a template's.
pub async fn begins(
    app: &App,
    caller: &Caller,
    from: From,
    (name, sent, options): (Option<String>, BTreeMap<String, FileContents>, Options),
) -> Result<Task> {
    if serde_json::to_value(&options).ok() != serde_json::to_value(Options::default()).ok() {
        return Err(Problem::wrong("`options` come with what it is made `from`"));
    }
    match from {
        From { template: Some(template), sandbox: None, snapshot: None } => {
            let kept = ask(app, caller, Task::Template { name: template }).await?;
            let Template { description: _, files: mut all, options, policy } =
                serde_json::from_value(kept).map_err(|error| {
                    Problem::wrong(format!("the template can't be understood: {error}")).hint("write it anew")
                })?;
            all.extend(sent);
            if let Some(policy) = policy {
                // Last: no file that comes with the request takes its place.
                all.insert(POLICY.to_owned(), FileContents::Text(policy));
            }
            let wish = options.wish(Vec::new())?;
            Ok(Task::Create { wish, folder: runs::new_id()?, files: files(all), name })
        }
        From { template: None, sandbox: Some(id), snapshot } => {
            if !sent.is_empty() {
                return Err(Problem::wrong("`files` go with a template, or with nothing; a sandbox has its own"));
            }
            Ok(Task::Branch { id, snapshot, name })
        }
        _ => Err(Problem::wrong("`from` has either a `template`, or a `sandbox` and perhaps a `snapshot` of it")),
    }
}
