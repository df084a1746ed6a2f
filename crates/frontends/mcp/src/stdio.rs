//! `belljar mcp`: one client, over standard input and output, until it goes away.

use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use clap::ArgMatches;
use model::agents;
use rmcp::ServiceExt;
use rmcp::service::ServerInitializeError;
use service::{Answer, Job, Launched, Maker, Means, Pool, Setting, Task, Warms};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{OnceCell, Semaphore};

use crate::caller::{Admission, Caller, May, Place};
use crate::house::{Home, House};
use crate::said::Failure;
use crate::say;
use crate::server::Server;

/// Carriers that wait for the next job.
const READY: usize = 2;
/// When the client is gone, what goes on has so long to end its sandboxes.
const LAST_WORDS: Duration = Duration::from_secs(12);

pub fn serve(matches: &ArgMatches, version: &'static str, make: Maker, warms: Warms) -> Result<(), String> {
    let folder = folder(matches)?;
    let environment: Vec<_> = std::env::vars_os().collect();
    // Whoever speaks MCP is an agent, whether it says so or not.
    let said = matches.get_one::<String>("agent").map(|name| plain(name));
    let agent = said.or_else(|| agents::detected(environment)).unwrap_or_else(|| "mcp".to_owned());
    let jobs = matches.get_one::<u32>("jobs").copied().unwrap_or(8);
    let sandbox = matches.get_one::<String>("sandbox").cloned();
    let alone = sys::process::Alone::prove().map_err(|error| error.to_string())?;
    let launched = service::launch(alone, Means { make, warms, warm: Vec::new(), ready: READY }, &[]);
    let launched = launched.map_err(|error| format!("cannot start what carries jobs: {error}"))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("cannot serve: {error}"))?;
    let setting = Setting { work: work(), agent: Some(agent), ..Setting::default() };
    let may = May { run: true, files: true, read: true };
    let caller = Caller { key: "local/stdio".to_owned(), tenant: "local".to_owned(), setting, may, presence: None };
    let home = Home { folder, sandbox: sandbox.clone().map_or_else(OnceCell::new, OnceCell::from) };
    let places = Places(Arc::new(Semaphore::new(usize::try_from(jobs).unwrap_or(8))));
    let served = runtime.block_on(until_gone(launched, caller, home, sandbox.is_none(), places, version));
    // What still reads from standard input need not.
    runtime.shutdown_timeout(Duration::from_millis(100));
    served
}

fn folder(matches: &ArgMatches) -> Result<PathBuf, String> {
    let said = matches.get_one::<PathBuf>("workspace").cloned();
    let folder = said.map_or_else(std::env::current_dir, std::fs::canonicalize);
    folder.map_err(|error| format!("cannot find the folder to work on: {error}; fix: name one with `--workspace`"))
}

/// Where files of jobs would be put: beside the user's state, never in the project. What is found there is ours to remove.
fn work() -> PathBuf {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = variable("XDG_STATE_HOME").or_else(|| variable("HOME").map(|home| home.join(".local/state")));
    state.unwrap_or_else(|| "/nonexistent".into()).join("belljar-mcp-workspaces")
}

/// A name as policies can speak of it.
fn plain(name: &str) -> String {
    let known = |letter: char| letter.is_ascii_alphanumeric() || "-_.@".contains(letter);
    let name: String = name.chars().take(64).map(|letter| if known(letter) { letter } else { '-' }).collect();
    if name.is_empty() { "mcp".to_owned() } else { name.to_ascii_lowercase() }
}

async fn until_gone(
    launched: Launched,
    caller: Caller,
    home: Home,
    made_here: bool,
    places: Places,
    version: &'static str,
) -> Result<(), String> {
    let cannot = |error: std::io::Error| format!("cannot serve: {error}");
    let pool = Pool::new(launched).map_err(cannot)?;
    let all = places.0.clone();
    let room = u32::try_from(all.available_permits()).unwrap_or(u32::MAX);
    let house = House::new(version, pool.clone(), Arc::new(places), Some(home))?;
    let mut terminated = signal(SignalKind::terminate()).map_err(cannot)?;
    let mut interrupted = signal(SignalKind::interrupt()).map_err(cannot)?;
    let server = Server::new(house.clone(), Some(caller.clone()));
    let serving = async {
        match server.serve(rmcp::transport::io::stdio_pipes()).await {
            Ok(running) => running.waiting().await.map(drop).map_err(|error| format!("cannot serve: {error}")),
            // It went away before it said anything.
            Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
            Err(error) => Err(format!("the client does not speak MCP: {error}")),
        }
    };
    let served = tokio::select! {
        served = serving => served,
        _ = terminated.recv() => Ok(()),
        _ = interrupted.recv() => Ok(()),
        _ = pool.ended() => Err("what carries jobs has ended; fix: start it again".to_owned()),
    };
    house.calls.end_all();
    // Whoever still has a place has a sandbox to end.
    drop(tokio::time::timeout(LAST_WORDS, all.acquire_many(room)).await);
    if made_here && let Some(id) = house.home.as_ref().and_then(|home| home.sandbox.get()) {
        tidy_up(&pool, &caller, id).await;
    }
    served
}

/// A sandbox of ours in which nothing is different need not be kept.
async fn tidy_up(pool: &Pool, caller: &Caller, id: &str) {
    let ask = async |task| pool.answer(&Job { setting: caller.setting.clone(), task }).await;
    let id = id.to_owned();
    let empty = |answer: &Answer, list: &str| match answer {
        Answer::Done(value) => value[list].as_array().is_some_and(Vec::is_empty),
        _ => false,
    };
    let unchanged = match ask(Task::Changes { id: id.clone(), other: None, paths: Vec::new() }).await {
        Ok(answer) => empty(&answer, "changes"),
        Err(_) => false,
    };
    let plain = match ask(Task::Sandbox { id: id.clone() }).await {
        Ok(answer) => empty(&answer, "snapshots"),
        Err(_) => false,
    };
    if !(unchanged && plain) {
        say(&format!("what was changed is in the sandbox {id}: `belljar diff {id}`, `belljar apply {id}`"));
        return;
    }
    if let Err(lost) = ask(Task::Remove { id: id.clone() }).await {
        say(&format!("the sandbox {id} is not needed, and could not be removed: {lost}"));
    }
}

/// So many at once; the others wait.
struct Places(Arc<Semaphore>);

impl Admission for Places {
    fn enter<'a>(&'a self, _: &'a Caller) -> Pin<Box<dyn Future<Output = Result<Place, Failure>> + Send + 'a>> {
        Box::pin(async {
            let place = self.0.clone().acquire_owned().await;
            let place = place.map_err(|_| Failure::new("stopping", "the server is about to end"))?;
            Ok(Box::new(place) as Place)
        })
    }
}
