//! The HTTP API: words and bodies to jobs, answers to bodies. No logic: whatever is decided is decided by carriers, each of which
//! is what `belljar` is at the command line.

mod admission;
mod api;
mod body;
mod caller;
mod config;
mod crowd;
mod door;
mod idempotency;
mod line;
mod listen;
mod mount;
mod opened;
mod ports;
mod problem;
mod reference;
mod runs;
mod serve;
mod terminals;
mod token;
mod tokens;
mod warm;
mod words;

use std::ffi::OsString;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::http::StatusCode;
use service::{Maker, Pool, Warms};

use admission::Admission;
use opened::Opened;
use ports::Ports;
use runs::Runs;
use terminals::Terminals;
use tokens::Tokens;
use warm::Warm;
use words::Options;

/// Could not be set up, or wrong usage: as of `belljar`.
const NOT_SET_UP: u8 = 125;

/// Does what the words say and returns the exit code. Called before the first thread: sandboxes are forked from here.
pub fn answer(words: impl IntoIterator<Item = OsString>, version: &'static str, make: Maker, warms: Warms) -> u8 {
    let words: Vec<OsString> = words.into_iter().collect();
    let matches = match words::command(version).try_get_matches_from(&words) {
        Ok(matches) => matches,
        Err(error) => {
            let asked = !error.use_stderr();
            return match error.print() {
                Ok(()) if asked => 0,
                _ => NOT_SET_UP,
            };
        }
    };
    let done = match matches.subcommand() {
        Some(("serve", matches)) => {
            config::joined(&words, matches, version).and_then(|matches| serve::serve(&matches, version, make, warms))
        }
        Some(("token", matches)) => token::token(matches),
        _ => Err("there is no such command; see `belljar --help`".to_owned()),
    };
    match done {
        Ok(()) => 0,
        Err(why) => {
            say(&format!("belljar: {why}"));
            NOT_SET_UP
        }
    }
}

/// On standard error, where logs are.
fn say(text: &str) {
    let mut line: String = text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    line.push('\n');
    // There may be nobody who reads it.
    drop(std::io::stderr().write_all(line.as_bytes()));
}

/// What every handler knows.
#[derive(Clone)]
struct App(Arc<Known>);

struct Known {
    options: Options,
    pool: Pool,
    tokens: Tokens,
    admission: Arc<Admission>,
    mcp: mcp::Mcp,
    runs: Runs,
    warm: Arc<Warm>,
    opened: Arc<Opened>,
    terminals: Terminals,
    ports: Ports,
    ports_at: ports::At,
    keys: idempotency::Shared,
    on_loopback: bool,
    version: &'static str,
    /// Answers by the first digit of their status.
    answers: [AtomicU64; 6],
}

impl std::ops::Deref for App {
    type Target = Known;

    fn deref(&self) -> &Known {
        &self.0
    }
}

impl Known {
    fn log(&self, text: &str) {
        say(&format!("belljar: {text}"));
    }

    fn count(&self, status: StatusCode) {
        if let Some(count) = self.answers.get(usize::from(status.as_u16() / 100)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }
}
