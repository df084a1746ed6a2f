//! The same for MCP clients: tool calls to jobs, answers to structured content. No logic: whatever is decided is decided by
//! carriers, each of which is what `belljar` is at the command line. There is no tool that answers a question.

mod arguments;
mod caller;
mod calls;
mod config;
mod deeds;
mod files;
mod house;
mod http;
mod languages;
mod output;
mod resources;
mod said;
mod server;
mod state;
mod stdio;
mod tools;
mod words;

use std::ffi::OsString;
use std::io::Write;

use service::{Maker, Warms};

pub use caller::{Admission, Caller, May, Place};
pub use http::{Answered, Mcp, NotServed};
pub use said::Failure;

/// Could not be set up, or wrong usage: as of `belljar`.
const NOT_SET_UP: u8 = 125;

/// Whether these words are for us.
pub fn is_meant(words: &[OsString]) -> bool {
    words.get(1).is_some_and(|word| word == "mcp")
}

/// Does what the words say and returns the exit code. Called before the first thread: sandboxes are forked from here.
pub fn answer(words: impl IntoIterator<Item = OsString>, version: &'static str, make: Maker, warms: Warms) -> u8 {
    let matches = match words::command(version).try_get_matches_from(words) {
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
        Some(("mcp", matches)) => match words::client(matches) {
            Some(client) => print(&config::text(client, matches)),
            None => stdio::serve(matches, version, make, warms),
        },
        _ => Err("there is no such command; see `belljar --help`".to_owned()),
    };
    match done {
        Ok(()) => 0,
        Err(why) => {
            say(&why);
            NOT_SET_UP
        }
    }
}

/// On standard error, where logs are: standard output is the client's.
fn say(text: &str) {
    let mut line: String = text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    line.push('\n');
    // There may be nobody who reads it.
    drop(std::io::stderr().write_all(format!("belljar: {line}").as_bytes()));
}

fn print(text: &str) -> Result<(), String> {
    std::io::stdout().write_all(text.as_bytes()).map_err(|error| format!("cannot print: {error}"))
}
