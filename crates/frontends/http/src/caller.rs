//! Who asks: by the token, and by nothing else.

use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use service::{Setting, Task, job::Job};

use crate::App;
use crate::line::Who;
use crate::problem::{Problem, Result};
use crate::tokens::{LOCAL, Scope, Token};

#[derive(Clone, Debug)]
pub struct Caller {
    pub tenant: String,
    /// Whom what it does is counted for.
    pub who: Who,
    /// Its id, which is no secret.
    pub token: String,
    token_itself: Token,
}

impl Caller {
    /// What every handler begins with.
    pub fn needs(&self, scope: Scope) -> Result<()> {
        if self.token_itself.has(scope) {
            return Ok(());
        }
        let name = scope.name();
        let agent = scope == Scope::Approve && self.token_itself.agent.is_some();
        let hint = match agent {
            true => "an agent's token never has it: a person answers, with a token of their own".to_owned(),
            false => format!("use a token with it: `belljar token create --scopes {name}`"),
        };
        let detail = format!("this token does not have the scope `{name}`");
        Err(Problem::new(StatusCode::FORBIDDEN, "scope", detail).rule(&format!("token.{name}")).hint(hint))
    }

    /// Whether its token holds to this moment: for what goes on longer than a request.
    pub fn still_holds(&self, app: &App) -> bool {
        app.tokens.holds(&self.token_itself).unwrap_or(false)
    }

    /// A job of this tenant, in its own places.
    pub fn job(&self, app: &App, task: Task) -> Job {
        Job { setting: self.setting(app), task }
    }

    /// The same as MCP knows them. What comes that way is an agent's, whether the token says whose or not.
    pub fn of_mcp(&self, app: &App) -> mcp::Caller {
        let mut setting = self.setting(app);
        setting.agent.get_or_insert_with(|| "mcp".to_owned());
        let has = |scope| self.token_itself.has(scope);
        mcp::Caller {
            key: format!("{}/{}", self.tenant, self.token),
            tenant: self.tenant.clone(),
            setting,
            may: mcp::May { run: has(Scope::Run), files: has(Scope::Files), read: has(Scope::Read) },
            presence: None,
        }
    }

    fn setting(&self, app: &App) -> Setting {
        let confined = self.tenant != LOCAL;
        Setting {
            state: confined.then(|| app.options.state.join("tenants").join(&self.tenant)),
            work: app.options.work().join(&self.tenant),
            confined,
            templates: app.options.state.join("templates").join(&self.tenant),
            agent: self.token_itself.agent.clone(),
        }
    }
}

pub async fn known(State(app): State<App>, mut request: Request, next: Next) -> Response {
    match found(&app, request.headers()) {
        Ok(caller) => {
            request.extensions_mut().insert(caller);
            next.run(request).await
        }
        Err(problem) => problem.into_response(),
    }
}

/// Scripts of a page can send no header with a WebSocket, but names of protocols: one of them is this and the token. It is never the
/// one that is answered with, and no token is ever part of an address, which logs and histories keep.
const IN_A_PROTOCOL: &str = "belljar.bearer.";

fn said(headers: &HeaderMap) -> Option<&str> {
    if let Some(value) = headers.get(header::AUTHORIZATION) {
        let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
        return scheme.eq_ignore_ascii_case("bearer").then(|| token.trim());
    }
    let upgrades = headers.get(header::UPGRADE).is_some_and(|to| to.as_bytes().eq_ignore_ascii_case(b"websocket"));
    let offered = headers.get_all(header::SEC_WEBSOCKET_PROTOCOL).iter().filter_map(|value| value.to_str().ok());
    let mut tokens =
        offered.flat_map(|value| value.split(',')).filter_map(|one| one.trim().strip_prefix(IN_A_PROTOCOL));
    tokens.next().filter(|_| upgrades)
}

/// The same answer for both what is missing and what is wrong.
fn found(app: &App, headers: &HeaderMap) -> Result<Caller> {
    let token = match said(headers) {
        None => None,
        Some(said) => app.tokens.find(said).map_err(|error| {
            app.log(&format!("no token can be looked up: {error}"));
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, "tokens", "tokens can't be looked up").after(5)
        })?,
    };
    let token = token.ok_or_else(|| {
        Problem::new(StatusCode::UNAUTHORIZED, "unauthorized", "there is no token, or none that holds")
            .hint("send `Authorization: Bearer bj_…`; `belljar token create` makes one")
    })?;
    let who = Who { tenant: token.tenant.clone(), agent: token.agent.clone() };
    app.admission.knock(&who)?;
    Ok(Caller { tenant: token.tenant.clone(), who, token: token.id.clone(), token_itself: token })
}
