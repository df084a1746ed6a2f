//! What is measured, in nanoseconds, as one line of JSON; and connections that are held while somebody else looks.

use std::io::Write;
use std::rc::Rc;
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;
use tokio::task::{JoinSet, LocalSet};

use crate::Result;
use crate::way::{Connection, Way, look_up};

/// What a small request gets.
const SMALL: u64 = 100;
/// Some take more connections than they ever serve.
const PATIENCE: Duration = Duration::from_secs(20);
/// For everything else that is measured: nobody waits for somebody who has hung.
const ALL_PATIENCE: Duration = Duration::from_secs(120);

pub fn measure(way: Way, what: &[&str]) -> Result<()> {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let tasks = LocalSet::new();
    let measured = async {
        match what {
            ["latency", connections, requests] => latency(&way, connections.parse()?, requests.parse()?).await,
            ["bulk", bytes, rounds] => bulk(&way, bytes.parse()?, rounds.parse()?).await,
            ["crowd", connections, bytes] => crowd(Rc::new(way), connections.parse()?, bytes.parse()?).await,
            ["hold", connections] => hold(&way, connections.parse()?).await,
            _ => Err(crate::USAGE.into()),
        }
    };
    let done = tasks.block_on(&runtime, async { tokio::time::timeout(ALL_PATIENCE, measured).await });
    done.map_err(|_| "it takes too long")?
}

/// How long a name takes that may be reached.
pub fn names(host: &str, count: usize) -> Result<()> {
    let mut names = Vec::new();
    for _ in 0..count {
        let began = Instant::now();
        look_up(&format!("{host}:1"))?;
        names.push(nanoseconds(began));
    }
    say(&json!({ "names": names }))
}

/// New connections, each with one small request; then small requests over one that stays.
async fn latency(way: &Way, connections: usize, requests: usize) -> Result<()> {
    let (mut new, mut kept) = (Vec::new(), Vec::new());
    for _ in 0..connections {
        let began = Instant::now();
        let mut connection = way.open().await?;
        connection.ask(SMALL).await?;
        new.push(nanoseconds(began));
    }
    let mut connection = way.open().await?;
    for _ in 0..requests {
        let began = Instant::now();
        connection.ask(SMALL).await?;
        kept.push(nanoseconds(began));
    }
    say(&json!({ "new": new, "kept": kept }))
}

async fn bulk(way: &Way, bytes: u64, rounds: usize) -> Result<()> {
    let mut connection = way.open().await?;
    // Windows grow with use.
    connection.ask(bytes / 4).await?;
    let mut times = Vec::new();
    for _ in 0..rounds {
        let began = Instant::now();
        connection.ask(bytes).await?;
        times.push(nanoseconds(began));
    }
    say(&json!({ "bulk": times }))
}

/// All at once: each is opened, gets its bytes, and stays until all have theirs.
async fn crowd(way: Rc<Way>, connections: usize, bytes: u64) -> Result<()> {
    let began = Instant::now();
    let mut all = JoinSet::new();
    for _ in 0..connections {
        let way = way.clone();
        all.spawn_local(async move {
            let opened = async {
                let mut connection = way.open().await?;
                connection.ask(bytes).await?;
                Ok::<Connection, Box<dyn std::error::Error>>(connection)
            };
            let opened = tokio::time::timeout(PATIENCE, opened).await;
            opened.map_err(|_| "it takes too long".to_owned())?.map_err(|error| error.to_string())
        });
    }
    let (mut held, mut failed) = (Vec::new(), Vec::new());
    while let Some(ended) = all.join_next().await {
        match ended? {
            Ok(connection) => held.push(connection),
            Err(error) => failed.push(error),
        }
    }
    say(&json!({ "crowd": nanoseconds(began), "held": held.len(), "failed": failed.len(), "why": failed.first() }))?;
    wait()
}

/// One, and then so many more that do nothing.
async fn hold(way: &Way, connections: usize) -> Result<()> {
    let mut held = vec![way.open().await?];
    held[0].ask(SMALL).await?;
    say(&json!({ "held": 1 }))?;
    wait()?;
    for _ in 0..connections {
        let mut connection = way.open().await?;
        connection.ask(SMALL).await?;
        held.push(connection);
    }
    say(&json!({ "held": held.len() }))?;
    wait()
}

fn say(samples: &serde_json::Value) -> Result<()> {
    println!("{samples}");
    Ok(std::io::stdout().flush()?)
}

/// Until somebody says a line, or nothing any more.
fn wait() -> Result<()> {
    Ok(std::io::stdin().read_line(&mut String::new()).map(drop)?)
}

fn nanoseconds(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX)
}
