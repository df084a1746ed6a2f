//! `belljar serve`: from a process with one thread to one that serves, and in order to its end.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixDatagram;
use std::sync::Arc;
use std::time::Duration;

use clap::ArgMatches;
use model::agents;
use rustix::fs::{FlockOperation, flock};
use service::{Job, Launched, Maker, Means, Pool, Setting, Task, Warms};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::admission::Admission;
use crate::listen::{self, Bound};
use crate::ports::{self, Ports};
use crate::runs::Runs;
use crate::terminals::Terminals;
use crate::tokens::{self, ALL, LOCAL, Scope, Tokens, Wanted};
use crate::warm::{self, Warm};
use crate::words::{self, Options};
use crate::{App, Known, api, config, say};

/// Who waits for its answer when all jobs have ended has so long to take it.
const FAREWELL: Duration = Duration::from_secs(2);
/// After being told to end, jobs have so long to end their sandboxes.
const LAST_WORDS: Duration = Duration::from_secs(12);

pub fn serve(matches: &ArgMatches, version: &'static str, make: Maker, warms: Warms) -> Result<(), String> {
    let options = words::options(matches).ok_or("there is no folder for state; fix: set HOME, or `--state DIR`")?;
    if matches.get_flag("print-config") {
        let text = config::printed(matches, &options.state);
        return std::io::stdout().write_all(text.as_bytes()).map_err(|error| format!("cannot print: {error}"));
    }
    let alone = sys::process::Alone::prove().map_err(|error| error.to_string())?;
    // Before anything secret is read: whoever carries jobs has never known it.
    let warm = if options.warm > 0 { warm::interpreters() } else { Vec::new() };
    let kept = if warm.is_empty() { 0 } else { options.warm };
    let means = Means { make, warms, warm, ready: options.ready };
    let launched = service::launch(alone, means, &listen::handed_numbers());
    let launched = launched.map_err(|error| format!("cannot start what carries jobs: {error}"))?;
    let text = |error: &dyn std::fmt::Display| error.to_string();
    tokens::make_private(&options.state).map_err(|error| text(&error))?;
    let lock = only_one(&options)?;
    let tls = listen::tls(&options).map_err(|error| text(&error))?;
    let bound = listen::bind(&options).map_err(|error| text(&error))?;
    let tokens = Tokens::at(options.state.clone());
    first_token(&tokens, &options)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("cannot serve: {error}"))?;
    let served = runtime.block_on(until_told(Options { warm: kept, ..options }, launched, bound, tls, tokens, version));
    // What still waits for something need not.
    runtime.shutdown_timeout(Duration::from_millis(100));
    drop(lock);
    served
}

/// Two servers over one state would each clean up after the other.
fn only_one(options: &Options) -> Result<File, String> {
    let path = options.state.join("lock");
    let file = File::options().create(true).truncate(false).write(true).mode(0o600).open(&path);
    let file = file.map_err(|error| format!("cannot open `{}`: {error}", path.display()))?;
    flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|_| {
        format!(
            "another `belljar serve` uses `{}`; fix: end that one, or choose another with `--state`",
            options.state.display()
        )
    })?;
    Ok(file)
}

/// Somebody must be able to begin.
fn first_token(tokens: &Tokens, options: &Options) -> Result<(), String> {
    if !tokens.list().map_err(|error| error.to_string())?.is_empty() {
        return Ok(());
    }
    let environment: Vec<_> = std::env::vars_os().collect();
    // Whoever is no person does not get to approve by starting a service.
    let person = agents::no_person(&environment).is_none();
    let scopes = ALL.into_iter().filter(|scope| person || *scope != Scope::Approve).collect();
    let agent = agents::detected(environment);
    let wanted = Wanted { name: "first".to_owned(), tenant: LOCAL.to_owned(), scopes, agent, lasts: None };
    let (_, token) = tokens.create(wanted).map_err(|error| error.to_string())?;
    let path = options.state.join("token");
    tokens::write_private(&path, &format!("{token}\n")).map_err(|error| error.to_string())?;
    // Shown once, to a person; what a log keeps is only where it is.
    if rustix::termios::isatty(std::io::stdout()) {
        drop(std::io::stdout().write_all(format!("token: {token}\n").as_bytes()));
    }
    say(&format!("belljar: the first token is in `{}`", path.display()));
    Ok(())
}

async fn until_told(
    options: Options,
    launched: Launched,
    bound: Bound,
    tls: Option<tokio_rustls::TlsAcceptor>,
    tokens: Tokens,
    version: &'static str,
) -> Result<(), String> {
    let cannot = |error: std::io::Error| format!("cannot serve: {error}");
    let pool = Pool::new(launched).map_err(cannot)?;
    tidy_up(&pool, &options, &tokens).await?;
    let (place, on_loopback) = (bound.place(), bound.on_loopback());
    let ports_at = called(&options, &place, tls.is_some());
    let shown = match &place {
        listen::Place::Tcp(address) if tls.is_some() => format!("https://{address}"),
        place => place.to_string(),
    };
    let (connections, drain) = (listen::most_connections(options.connections), options.drain);
    let admission = Arc::new(Admission::new(options.terms));
    let mcp = mcp::Mcp::new(version, pool.clone(), admission.clone(), options.largest_body)?;
    let app = App(Arc::new(Known {
        admission,
        mcp,
        warm: Arc::new(Warm::new(options.warm)),
        options,
        pool: pool.clone(),
        tokens,
        runs: Runs::default(),
        opened: Arc::default(),
        terminals: Terminals::default(),
        ports: Ports::default(),
        ports_at,
        keys: Arc::default(),
        on_loopback,
        version,
        answers: Default::default(),
    }));
    let (stop, stopped) = watch::channel(false);
    let mut terminated = signal(SignalKind::terminate()).map_err(cannot)?;
    let mut interrupted = signal(SignalKind::interrupt()).map_err(cannot)?;
    let mut serving = tokio::spawn(listen::serve(bound, tls, api::router(app.clone()), connections, stopped));
    say(&format!("belljar: listening at {shown}"));
    tell_systemd("READY=1");
    let lost = tokio::select! {
        _ = terminated.recv() => false,
        _ = interrupted.recv() => false,
        _ = pool.ended() => true,
    };
    tell_systemd("STOPPING=1");
    stop.send_replace(true);
    if lost {
        return Err("what carries jobs has ended; fix: start the service again".to_owned());
    }
    say("belljar: ending when all jobs have");
    tokio::select! {
        () = idle(&app) => {}
        () = tokio::time::sleep(drain) => {}
        _ = terminated.recv() => {}
        _ = interrupted.recv() => {}
    }
    app.warm.end();
    app.runs.going().iter().for_each(|run| run.cancel());
    app.terminals.end_all();
    app.mcp.stop();
    app.opened.stop_all();
    drop(tokio::time::timeout(LAST_WORDS, idle(&app)).await);
    // Whoever waits for an answer gets it before the connection goes; who only listens for news is not waited for.
    drop(tokio::time::timeout(FAREWELL, &mut serving).await);
    serving.abort();
    if let listen::Place::Unix(path) = &place
        && listen::handed_over() == 0
    {
        drop(std::fs::remove_file(path));
    }
    Ok(())
}

/// Below which name ports of sandboxes are, each as a host of its own.
fn called(options: &Options, place: &listen::Place, tls: bool) -> ports::At {
    let (scheme, usual) = if tls { ("https", 443) } else { ("http", 80) };
    let port = match place {
        listen::Place::Tcp(address) => Some(address.port()).filter(|port| *port != usual),
        listen::Place::Unix(_) => None,
    };
    ports::At { scheme, below: options.ports_host.clone(), port }
}

async fn idle(app: &App) {
    // What stays by itself is not waited for: it is stopped.
    while app.admission.busy() > 0
        || app.runs.going().iter().any(|run| !run.background)
        || app.opened.is_stopping()
        || app.terminals.are_ending()
    {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// What a killed server left: folders of runs that nobody will come back to. Sandboxes are in a true state as soon as somebody
/// looks at them.
async fn tidy_up(pool: &Pool, options: &Options, tokens: &Tokens) -> Result<(), String> {
    let mut tenants: Vec<String> =
        tokens.list().map_err(|error| error.to_string())?.into_iter().map(|token| token.tenant).collect();
    tenants.sort();
    tenants.dedup();
    for tenant in tenants {
        let work = options.work().join(&tenant);
        if !work.exists() {
            continue;
        }
        let confined = tenant != LOCAL;
        let state = confined.then(|| options.state.join("tenants").join(&tenant));
        let setting = Setting { state, work, confined, ..Setting::default() };
        match pool.answer(&Job { setting, task: Task::Sweep { layers: true } }).await {
            Ok(service::Answer::Done(_)) => {}
            Ok(other) => say(&format!("belljar: cannot tidy up after `{tenant}`: {other:?}")),
            Err(error) => return Err(format!("cannot carry out a job: {error}")),
        }
    }
    Ok(())
}

fn tell_systemd(state: &str) {
    let Some(path) = std::env::var_os("NOTIFY_SOCKET") else { return };
    // Nobody's safety rests on it, and there may be nobody.
    if let Ok(socket) = UnixDatagram::unbound() {
        drop(socket.send_to(state.as_bytes(), path));
    }
}
