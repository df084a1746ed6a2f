//! Forks of a live context: its variables, each time in a sandbox of its own that begins where this one is.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use model::{Cell, CellLanguage, Language, Makes};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use service::{Said, Streams, Task, Wish};
use sys::{descriptors, parcel};
use tokio::task::JoinHandle;
use utoipa::ToSchema;

use super::live::{self, OpenRequest};
use super::types::{Limits, Options};
use super::{Named, ask, code};
use crate::App;
use crate::admission::Stay;
use crate::body::Sent;
use crate::caller::Caller;
use crate::opened::Until;
use crate::problem::{Problem, Result};
use crate::tokens::Scope;

const MOST: usize = 64;

#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ForkContextRequest {
    #[schema(minimum = 1, maximum = 64)]
    pub count: usize,
    /// Seconds after which writing the variables, or taking them up, is interrupted. The context that is forked stays what it was.
    #[schema(minimum = 0.001)]
    pub timeout: Option<f64>,
    /// Seconds from now on that the forks stay open.
    #[schema(minimum = 1)]
    pub expires: Option<f64>,
    /// Seconds in which nothing is done in one of them; 300 if neither is said, 0 for as long as it takes.
    #[schema(minimum = 0)]
    pub idle: Option<f64>,
    /// Which agent it is for; a token for an agent says so itself.
    pub agent: Option<String>,
}

/// What became of it.
#[derive(Serialize, ToSchema)]
pub struct ContextForked {
    /// The sandbox whose context it is; it goes on.
    pub sandbox: String,
    pub context: String,
    /// Variables that did not go along, and why.
    pub left: Vec<Left>,
    pub forks: Vec<ForkOfContext>,
}

#[derive(Serialize, Deserialize, ToSchema)]
pub struct Left {
    pub name: String,
    pub why: String,
}

/// A sandbox that is open, with a context of the same name in it.
#[derive(Serialize, ToSchema)]
pub struct ForkOfContext {
    pub id: String,
    pub name: Option<String>,
    pub context: String,
    /// What could not be taken up here, besides.
    pub left: Vec<Left>,
}

/// Fork a live context of python: each fork is an open sandbox that begins where this one is, with the files and with the variables,
/// functions and classes of the context.
///
/// What can't go along, such as open files, threads and generators, stays behind and is named in `left`. Either all forks are there
/// afterwards, or none is.
#[utoipa::path(post, path = "/v1/sandboxes/{id}/contexts/{context}/fork", tag = "code", request_body = ForkContextRequest,
    params(("id" = String, Path, description = "The sandbox's id or name"), ("context" = String, Path, description = "Its name")),
    responses((status = 201, description = "They are open", body = ContextForked)))]
pub async fn fork(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Named((id, context)): Named<(String, String)>,
    Sent(request): Sent<ForkContextRequest>,
) -> Result<Response> {
    caller.needs(Scope::Run)?;
    if !(1..=MOST).contains(&request.count) {
        return Err(Problem::wrong(format!("`count` is between 1 and {MOST}")));
    }
    // Whoever goes away does not stop it half-way.
    let forking = tokio::spawn(async move { forked(&app, &caller, id, context, request).await });
    let forked = forking.await.map_err(|_| Problem::from(service::Lost::Ended))??;
    Ok((StatusCode::CREATED, Json(forked)).into_response())
}

/// What each fork is begun with.
struct Plan {
    until: Until,
    wish: Wish,
    cell: Cell,
}

async fn forked(
    app: &App,
    caller: &Caller,
    id: String,
    context: String,
    request: ForkContextRequest,
) -> Result<ContextForked> {
    let ForkContextRequest { count, timeout, expires, idle, agent } = request;
    let until = OpenRequest { expires, idle }.until()?;
    let limits = Limits { timeout, ..Limits::default() };
    let wish = Options { limits, agent, ..Options::default() }.wish(Vec::new())?;
    let program = code::program(Language::Python)?;
    let cell = Cell {
        language: CellLanguage::Python,
        program,
        code: String::new(),
        context: Some(context.clone()),
        makes: Makes::Never,
    };
    let plan = Plan { until, wish, cell };
    let _using = app.opened.uses(&caller.tenant, &id)?;
    // Places for all of them, before anything is made.
    let permits = (0..count).map(|_| app.admission.stay(&caller.who)).collect::<Result<Vec<Stay>>>()?;
    let bytes = parcel::make().map_err(lost)?;
    let mut branches = Vec::new();
    let written = written(app, caller, (id, count), &plan, (&bytes, permits), &mut branches).await;
    let mut forks = Vec::new();
    let mut failed = written.as_ref().err().cloned();
    for branch in &mut branches {
        // Whoever hears nothing more ends by itself.
        let comes = branch.comes.take().filter(|_| failed.is_none());
        if let Some(Err(error)) = comes.map(|comes| descriptors::send(comes.as_fd(), b"parcel", &[bytes.as_fd()])) {
            failed = Some(lost(error));
        }
    }
    for branch in &mut branches {
        match (&mut branch.taken_up).await.map_err(|_| Problem::from(service::Lost::Ended)).and_then(|taken| taken) {
            Ok(taken) => forks.push(ForkOfContext {
                id: branch.id.clone(),
                name: branch.name.clone(),
                context: context.clone(),
                left: left(&taken),
            }),
            Err(problem) => failed = failed.or(Some(problem)),
        }
    }
    match (failed, written) {
        (None, Ok((sandbox, left))) => Ok(ContextForked { sandbox, context, left, forks }),
        (failed, written) => {
            for branch in branches {
                undone(app, caller, branch.id).await;
            }
            Err(failed.or(written.err()).unwrap_or_else(|| service::Lost::Ended.into()))
        }
    }
}

/// Has the variables written, and opens the forks meanwhile.
async fn written(
    app: &App,
    caller: &Caller,
    (id, count): (String, usize),
    plan: &Plan,
    (bytes, permits): (&OwnedFd, Vec<Stay>),
    branches: &mut Vec<Branch>,
) -> Result<(String, Vec<Left>)> {
    let _admitted = app.admission.enter(&caller.who).await?;
    let task = Task::ForkContext { id, wish: plan.wish.clone(), cell: plan.cell.clone(), count };
    let streams = streams(bytes.try_clone().map_err(lost)?).map_err(lost)?;
    let mut running = app.pool.begin(&caller.job(app, task), Some(streams)).await?;
    let mut permits = permits.into_iter();
    loop {
        match running.next().await? {
            Said::Ready(forks) => {
                for (fork, permit) in forks.as_array().into_iter().flatten().zip(permits.by_ref()) {
                    branches.push(Branch::begin(app, caller, fork, plan, permit)?);
                }
            }
            Said::Answer(answer) => {
                let told = Problem::or_value(answer)?;
                let sandbox = told["sandbox"].as_str().unwrap_or_default().to_owned();
                return Ok((sandbox, left(&told)));
            }
            Said::Notice(_) | Said::Asks { .. } | Said::Asked { .. } => {}
        }
    }
}

fn left(told: &Value) -> Vec<Left> {
    serde_json::from_value(told["left"].clone()).unwrap_or_default()
}

struct Branch {
    id: String,
    name: Option<String>,
    /// Where the variables are handed over.
    comes: Option<OwnedFd>,
    taken_up: JoinHandle<Result<Value>>,
}

impl Branch {
    /// It is opened, and its interpreter started; then it waits for the variables.
    fn begin(app: &App, caller: &Caller, fork: &Value, plan: &Plan, permit: Stay) -> Result<Branch> {
        let text = |name: &str| fork[name].as_str().map(str::to_owned);
        let (id, name) = (text("id").unwrap_or_default(), text("name"));
        let (ours, theirs) = descriptors::wire().map_err(lost)?;
        let open = caller.job(app, Task::Open { id: id.clone() });
        let cell = Cell { makes: Makes::Always, ..plan.cell.clone() };
        let take_up = caller.job(app, Task::TakeUpContext { id: id.clone(), wish: plan.wish.clone(), cell });
        let (app, caller, until) = (app.clone(), caller.clone(), plan.until);
        let (key, own_name) = ((caller.tenant.clone(), id.clone()), name.clone());
        let taken_up = tokio::spawn(async move {
            app.opened.clone().open(app.pool.clone(), key.clone(), own_name, open, until, permit).await?;
            let _using = app.opened.uses(&key.0, &key.1)?;
            let _admitted = app.admission.enter(&caller.who).await?;
            let mut running = app.pool.begin(&take_up, Some(streams(theirs).map_err(lost)?)).await?;
            loop {
                if let Said::Answer(answer) = running.next().await? {
                    return Problem::or_value(answer);
                }
            }
        });
        Ok(Branch { id, name, comes: Some(ours), taken_up })
    }
}

/// A fork of which not all was there is not there at all.
async fn undone(app: &App, caller: &Caller, id: String) {
    if app.opened.find(&caller.tenant, &id).is_some() {
        // One that has ended meanwhile need not be stopped.
        drop(live::stopped(app, caller, id.clone()).await);
    }
    // Whoever wrote the variables has removed it, unless it was open.
    drop(ask(app, caller, Task::Remove { id }).await);
}

/// What a context says while it deals with variables is said to nobody.
fn streams(input: OwnedFd) -> io::Result<Streams> {
    use rustix::fs::{Mode, OFlags, open};
    let nothing = || open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty());
    Ok(Streams { input, output: nothing()?, error: nothing()? })
}

fn lost(error: io::Error) -> Problem {
    service::Lost::Io(error).into()
}
