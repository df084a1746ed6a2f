//! `/v1/sandboxes/{id}/terminals`: commands on a terminal of their own, looked at over WebSocket.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use service::{Size, Task};
use tokio::time::{Instant, timeout};
use utoipa::{IntoParams, ToSchema};

use super::live::Signal;
use super::types::{Options, Page};
use super::{Asked, Named, ask};
use crate::App;
use crate::body::Sent;
use crate::caller::Caller;
use crate::crowd::Connection;
use crate::opened::Using;
use crate::problem::{Problem, Result};
use crate::terminals::{Next, Terminal, Wanted};
use crate::tokens::Scope;

/// Of what is sent to a viewer at once; between two, what the viewer says is heard.
const AT_ONCE: usize = 16 << 10;
/// Of what a viewer sends at once, and of what was typed and is not taken yet.
const LARGEST: usize = 64 << 10;
/// How long a viewer may take to take something.
const TAKES: Duration = Duration::from_secs(60);
/// So often a viewer is asked whether it is there, and whether its token still holds.
const PING: Duration = Duration::from_secs(15);
/// A viewer that says nothing, not even that it is there, is not.
const SILENCE: Duration = Duration::from_secs(60);
/// For an answer to our good-bye.
const FAREWELL: Duration = Duration::from_secs(5);
/// What is answered to those who name protocols.
const PROTOCOL: &str = "belljar.terminal";

/// A command on a terminal of its own.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TerminalRequest {
    /// A shell if nothing is said.
    pub command: Vec<String>,
    /// In letters; 80.
    #[schema(minimum = 1, maximum = 1000)]
    pub columns: Option<u16>,
    /// In lines; 24.
    #[schema(minimum = 1, maximum = 1000)]
    pub rows: Option<u16>,
    /// Seconds after which it is ended.
    #[schema(minimum = 0.001)]
    pub timeout: Option<f64>,
    pub options: Options,
}

#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SizeRequest {
    #[schema(minimum = 1, maximum = 1000)]
    pub columns: u16,
    #[schema(minimum = 1, maximum = 1000)]
    pub rows: u16,
}

impl SizeRequest {
    fn size(self) -> Result<Size> {
        let SizeRequest { columns, rows } = self;
        match [columns, rows].iter().all(|side| (1..=1000).contains(side)) {
            true => Ok(Size { columns, rows }),
            false => Err(Problem::wrong("`columns` and `rows` are between 1 and 1000")),
        }
    }
}

/// Start a command on a terminal of its own in a sandbox; without one, a shell. It goes on whoever looks at it, and counts as what runs
/// in the background does.
#[utoipa::path(post, path = "/v1/sandboxes/{id}/terminals", tag = "terminals", request_body = TerminalRequest,
    params(("id" = String, Path, description = "The sandbox's id or name")),
    responses((status = 201, description = "It, and where to attach to it", body = Object)))]
pub async fn begin(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Named(id): Named<String>,
    Sent(request): Sent<TerminalRequest>,
) -> Result<Response> {
    caller.needs(Scope::Run)?;
    let TerminalRequest { command, columns, rows, timeout, mut options } = request;
    let size = SizeRequest { columns: columns.unwrap_or(80), rows: rows.unwrap_or(24) }.size()?;
    if options.workspace.is_some() {
        return Err(Problem::wrong("a sandbox has its workspaces from when it was made"));
    }
    options.limits.timeout = timeout.or(options.limits.timeout);
    options.environment.entry("TERM".to_owned()).or_insert_with(|| "xterm-256color".to_owned());
    let mut wish = options.wish(command.clone())?;
    // What it shows is kept here, and more of it.
    (wish.terminal, wish.capture) = (true, None);
    let known = ask(&app, &caller, Task::Sandbox { id }).await?;
    let id = known["id"].as_str().unwrap_or_default().to_owned();
    let using = app.opened.uses(&caller.tenant, &id)?;
    let permit = app.admission.stay(&caller.who)?;
    let wanted = Wanted {
        tenant: caller.tenant.clone(),
        sandbox: (id.clone(), known["name"].as_str().map(str::to_owned)),
        command,
        size,
        job: caller.job(&app, Task::RunIn { id, wish }),
    };
    let shown = app.terminals.begin(&app, wanted, using, permit).await?.shown();
    let place = format!(
        "/v1/sandboxes/{}/terminals/{}",
        shown["sandbox"].as_str().unwrap_or_default(),
        shown["id"].as_str().unwrap_or_default()
    );
    Ok((StatusCode::CREATED, [(header::LOCATION, place)], Json(shown)).into_response())
}

/// Terminals of a sandbox, the newest first: those that go on, and those that ended in the last minutes.
#[utoipa::path(get, path = "/v1/sandboxes/{id}/terminals", tag = "terminals",
    params(("id" = String, Path, description = "The sandbox's id or name")),
    responses((status = 200, description = "They", body = Page)))]
pub async fn list(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Named(id): Named<String>,
) -> Result<Json<Page>> {
    caller.needs(Scope::Read)?;
    let items = app.terminals.list(&caller.tenant, &id);
    if items.is_empty() {
        // Of a sandbox that is there; of none there is no list.
        ask(&app, &caller, Task::Sandbox { id }).await?;
    }
    Ok(Json(Page { items, next: None }))
}

/// One of them, as it is now.
#[utoipa::path(get, path = "/v1/sandboxes/{id}/terminals/{terminal}", tag = "terminals",
    params(("id" = String, Path, description = "The sandbox's id or name"), ("terminal" = String, Path, description = "Its id")),
    responses((status = 200, description = "It", body = Object)))]
pub async fn show(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Named((id, terminal)): Named<(String, String)>,
) -> Result<Json<Value>> {
    caller.needs(Scope::Read)?;
    Ok(Json(app.terminals.find(&caller.tenant, &id, &terminal)?.shown()))
}

/// End it as if its window was closed, and forget it. What hears that has five seconds.
#[utoipa::path(delete, path = "/v1/sandboxes/{id}/terminals/{terminal}", tag = "terminals",
    params(("id" = String, Path, description = "The sandbox's id or name"), ("terminal" = String, Path, description = "Its id")),
    responses((status = 200, description = "How it ended", body = Object)))]
pub async fn end(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Named((id, terminal)): Named<(String, String)>,
) -> Result<Json<Value>> {
    caller.needs(Scope::Run)?;
    let terminal = app.terminals.find(&caller.tenant, &id, &terminal)?;
    terminal.hang_up();
    terminal.end().await;
    app.terminals.remove(&terminal);
    Ok(Json(terminal.shown()))
}

/// Make it another size.
#[utoipa::path(post, path = "/v1/sandboxes/{id}/terminals/{terminal}/resize", tag = "terminals", request_body = SizeRequest,
    params(("id" = String, Path, description = "The sandbox's id or name"), ("terminal" = String, Path, description = "Its id")),
    responses((status = 200, description = "It", body = Object)))]
pub async fn resize(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Named((id, terminal)): Named<(String, String)>,
    Sent(request): Sent<SizeRequest>,
) -> Result<Json<Value>> {
    caller.needs(Scope::Run)?;
    let terminal = app.terminals.find(&caller.tenant, &id, &terminal)?;
    terminal.resize(request.size()?)?;
    Ok(Json(terminal.shown()))
}

#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct Attached {
    /// Only look: for this the scope `read` is enough, and nothing that is sent is taken.
    pub view: bool,
}

/// Look at it and type, over WebSocket. Binary messages are bytes, both ways, beginning with the last of what it showed; text messages are
/// JSON.
///
/// From you: `{"resize": {"columns": 80, "rows": 24}}`, `{"signal": "INT"}`. To you: `{"attached": …}` first, `{"missed": BYTES}` if you are too
/// slow, and last `{"exit": {"code": 0, "signal": null}}`. The token comes in `Authorization`; from a page, as one of two protocols:
/// `belljar.terminal` and `belljar.bearer.TOKEN`.
#[utoipa::path(get, path = "/v1/sandboxes/{id}/terminals/{terminal}/attach", tag = "terminals",
    params(("id" = String, Path, description = "The sandbox's id or name"), ("terminal" = String, Path, description = "Its id"), Attached),
    responses((status = 101, description = "A WebSocket from here on")))]
pub async fn attach(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Extension(connection): Extension<Connection>,
    Named((id, terminal)): Named<(String, String)>,
    Asked(Attached { view }): Asked<Attached>,
    upgrade: std::result::Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response> {
    caller.needs(if view { Scope::Read } else { Scope::Run })?;
    let terminal = app.terminals.find(&caller.tenant, &id, &terminal)?;
    let upgrade = upgrade.map_err(|rejection| {
        Problem::new(StatusCode::UPGRADE_REQUIRED, "websocket", rejection.body_text())
            .hint("open it as a WebSocket; see `/v1/reference`")
    })?;
    // One that has ended is looked at for what it showed; its sandbox may be gone.
    let using = if terminal.is_over() { None } else { app.opened.uses(&caller.tenant, &id)? };
    let upgrade = upgrade.protocols([PROTOCOL]).max_message_size(LARGEST).max_frame_size(LARGEST);
    Ok(upgrade.on_upgrade(move |socket| {
        let viewer = Viewer { app, caller, terminal, types: !view, typed: Vec::new(), heard: Instant::now() };
        viewer.looks(socket, (using, connection))
    }))
}

/// What a viewer says in text.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
enum Said {
    Resize(SizeRequest),
    Signal(Signal),
}

struct Viewer {
    app: App,
    caller: Caller,
    terminal: Arc<Terminal>,
    /// Not only looks.
    types: bool,
    /// And not taken yet.
    typed: Vec<u8>,
    heard: Instant,
}

/// Why somebody does not look any more.
enum Left {
    Gone,
    Sent(u16, &'static str),
}

impl Viewer {
    async fn looks(mut self, mut socket: WebSocket, held: (Option<Using>, Connection)) {
        let viewing = self.terminal.view();
        let left = self.until_it_ends(&mut socket).await;
        drop(viewing);
        if let Left::Sent(code, reason) = left {
            let close = Message::Close(Some(CloseFrame { code, reason: reason.into() }));
            // How that is taken is the other's business. But it is waited for, a little: whoever finds the connection gone when it
            // says good-bye may forget what it was told last.
            drop(timeout(TAKES, socket.send(close)).await);
            drop(timeout(FAREWELL, async { while let Some(Ok(_)) = socket.recv().await {} }).await);
        }
        drop(held);
    }

    async fn until_it_ends(&mut self, socket: &mut WebSocket) -> Left {
        let terminal = self.terminal.clone();
        let mut news = terminal.news();
        let mut at = terminal.beginning();
        let mut pings = tokio::time::interval(PING);
        if let Err(left) = tell(socket, &json!({"attached": terminal.shown()})).await {
            return left;
        }
        loop {
            news.mark_unchanged();
            let next = terminal.after(at, AT_ONCE);
            let waits = matches!(next, Next::Nothing);
            // Whoever types is heard before more is shown: it may be what ends that.
            tokio::select! {
                biased;
                said = socket.recv(), if self.typed.len() < LARGEST => {
                    if let Err(left) = self.hears(said) {
                        return left;
                    }
                }
                written = terminal.types(&self.typed), if !self.typed.is_empty() => match written {
                    Ok(count) => drop(self.typed.drain(..count)),
                    // There is nobody to type to; its end is told soon.
                    Err(_) => self.typed.clear(),
                },
                _ = pings.tick() => {
                    if let Err(left) = self.is_there(socket).await {
                        return left;
                    }
                }
                _ = news.changed(), if waits => {}
                () = std::future::ready(()), if !waits => {
                    let shown = match next {
                        Next::Nothing => Ok(()),
                        Next::Bytes { bytes, missed } => {
                            at += missed + bytes.len() as u64;
                            let told = if missed > 0 { tell(socket, &json!({"missed": missed})).await } else { Ok(()) };
                            match told {
                                Ok(()) => send(socket, Message::Binary(bytes)).await,
                                left => left,
                            }
                        }
                        Next::End(word) => match tell(socket, &word).await {
                            Ok(()) => Err(Left::Sent(close_code::NORMAL, "it has ended")),
                            left => left,
                        },
                    };
                    if let Err(left) = shown {
                        return left;
                    }
                }
            }
        }
    }

    fn hears(&mut self, said: Option<std::result::Result<Message, axum::Error>>) -> std::result::Result<(), Left> {
        let Some(Ok(said)) = said else { return Err(Left::Gone) };
        self.heard = Instant::now();
        let wrong = Err(Left::Sent(close_code::POLICY, "that is nothing that can be said here"));
        match said {
            Message::Ping(_) | Message::Pong(_) => Ok(()),
            Message::Close(_) => Err(Left::Gone),
            Message::Binary(_) | Message::Text(_) if !self.types => {
                Err(Left::Sent(close_code::POLICY, "you only look at this terminal"))
            }
            Message::Binary(bytes) => {
                self.typed.extend_from_slice(&bytes);
                Ok(())
            }
            Message::Text(text) => match serde_json::from_str(&text) {
                Ok(Said::Signal(signal)) => {
                    self.terminal.signal(signal.number());
                    Ok(())
                }
                Ok(Said::Resize(size)) => match size.size().map(|size| self.terminal.resize(size)) {
                    // One that has ended this moment has no size.
                    Ok(_) => Ok(()),
                    Err(_) => wrong,
                },
                Err(_) => wrong,
            },
        }
    }

    async fn is_there(&self, socket: &mut WebSocket) -> std::result::Result<(), Left> {
        if self.heard.elapsed() > SILENCE {
            return Err(Left::Gone);
        }
        if !self.caller.still_holds(&self.app) {
            return Err(Left::Sent(close_code::POLICY, "the token does not hold any more"));
        }
        send(socket, Message::Ping(axum::body::Bytes::new())).await
    }
}

async fn tell(socket: &mut WebSocket, what: &Value) -> std::result::Result<(), Left> {
    send(socket, Message::Text(what.to_string().into())).await
}

/// Whoever takes nothing for too long is not there.
async fn send(socket: &mut WebSocket, message: Message) -> std::result::Result<(), Left> {
    match timeout(TAKES, socket.send(message)).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(_)) | Err(_) => Err(Left::Gone),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_said_is_a_size_or_a_signal_and_nothing_else() {
        let said = |text: &str| serde_json::from_str::<Said>(text);
        assert!(
            matches!(said(r#"{"resize":{"columns":80,"rows":24}}"#), Ok(Said::Resize(size)) if size.size().is_ok())
        );
        assert!(
            matches!(said(r#"{"resize":{"columns":0,"rows":24}}"#), Ok(Said::Resize(size)) if size.size().is_err())
        );
        assert!(matches!(said(r#"{"signal":"INT"}"#), Ok(Said::Signal(_))));
        for wrong in [
            "", "{}", r#"{"signal":"KILL"}"#, r#"{"resize":{}}"#,
            r#"{"resize":{"columns":1,"rows":1},"signal":"INT"}"#, "[]",
        ] {
            assert!(said(wrong).is_err(), "{wrong}");
        }
    }
}
