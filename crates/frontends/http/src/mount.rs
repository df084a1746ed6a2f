//! `/mcp`: the same for MCP clients, behind the same door, tokens, scopes and places as everything else.

use std::pin::Pin;

use axum::extract::{Request, State};
use axum::response::Response;
use axum::routing::any;
use axum::{Extension, Router, middleware};
use http_body_util::Full;
use mcp::{Failure, NotServed, Place};

use crate::App;
use crate::admission::Admission;
use crate::body;
use crate::caller::{self, Caller};
use crate::line::Who;
use crate::problem::{Problem, Result};

pub fn router(app: App) -> Router<App> {
    Router::new().route("/mcp", any(answer)).route_layer(middleware::from_fn_with_state(app, caller::known))
}

async fn answer(State(app): State<App>, Extension(caller): Extension<Caller>, request: Request) -> Result<Response> {
    let (mut parts, body) = request.into_parts();
    let body = body::read(&app, body).await?;
    // What follows need not know the token, and can't tell it to anybody.
    parts.headers.remove(axum::http::header::AUTHORIZATION);
    let request = Request::from_parts(parts, Full::new(body));
    let answered = app.mcp.answer(caller.of_mcp(&app), request).await.map_err(not_served)?;
    Ok(answered.map(axum::body::Body::new))
}

fn not_served(why: NotServed) -> Problem {
    match why {
        NotServed::NoSession => {
            Problem::new(why.status(), "not-found", "there is no such session here").hint("begin a new one")
        }
        NotServed::TooManySessions => {
            Problem::new(why.status(), "full", "this token has as many sessions as it may have")
                .hint("end some with DELETE, or use the revision 2026-07-28, which has none")
                .after(60)
        }
    }
}

impl mcp::Admission for Admission {
    fn enter<'a>(
        &'a self,
        caller: &'a mcp::Caller,
    ) -> Pin<Box<dyn Future<Output = std::result::Result<Place, Failure>> + Send + 'a>> {
        Box::pin(async move {
            let who = Who { tenant: caller.tenant.clone(), agent: caller.setting.agent.clone() };
            match Admission::enter(self, &who).await {
                Ok(admitted) => Ok(Box::new(admitted) as Place),
                Err(problem) => {
                    let failure = Failure::new("full", problem.detail);
                    Err(failure
                        .rule("service.admission")
                        .fix(problem.hint.unwrap_or_else(|| "wait a little".to_owned())))
                }
            }
        })
    }
}
