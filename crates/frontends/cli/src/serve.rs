//! `belljar serve`, `belljar token`, `belljar mcp`: words for another program of ours, which this one becomes. What serves HTTP has no place in
//! the start of a one-shot run.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process;

use clap::{Arg, Command, value_parser};

use crate::{NOT_SET_UP, words};

const PROGRAM: &str = "belljar-service";
/// From the folder of belljar itself.
const INSTALLED: &str = "libexec/belljar";

pub fn knows(word: &OsStr) -> bool {
    word == "serve" || word == "token" || word == "mcp"
}

/// For the list of commands; what they take is known to the other program.
pub fn commands() -> [Command; 3] {
    let rest = || {
        Arg::new("words")
            .num_args(0..)
            .trailing_var_arg(true)
            .allow_hyphen_values(true)
            .value_parser(value_parser!(OsString))
    };
    [
        Command::new("serve")
            .about("Serve all of this as an HTTP API: tenants, tokens, streams")
            .arg(rest().hide(true)),
        Command::new("token").about("Make, list and revoke tokens for the HTTP API").arg(rest().hide(true)),
        Command::new("mcp").about("Give an agent tools that run in a sandbox, over MCP").arg(rest().hide(true)),
    ]
}

/// Becomes the other program; comes back only if that is not possible.
pub fn hand_over(words: &[OsString]) -> u8 {
    let folders = folders();
    let Some(program) = folders.iter().map(|folder| folder.join(PROGRAM)).find(|program| program.is_file()) else {
        let looked: Vec<String> = folders.iter().map(|folder| format!("`{}`", folder.display())).collect();
        words::say(&format!(
            "belljar: the program that serves, `{PROGRAM}`, is not in {}; fix: build it with `cargo xtask release`, or \
             `cargo build --release`, and put it beside belljar",
            looked.join(" or ")
        ));
        return NOT_SET_UP;
    };
    let error = process::Command::new(&program).args(words.iter().skip(1)).exec();
    words::say(&format!(
        "belljar: cannot start `{}`: {error}; fix: make it executable for this user",
        program.display()
    ));
    NOT_SET_UP
}

/// Beside belljar, or where such programs are installed. Not by a variable: whoever set it could have another program take
/// tokens.
fn folders() -> Vec<PathBuf> {
    let Ok(own) = std::env::current_exe() else { return Vec::new() };
    let Some(folder) = own.parent() else { return Vec::new() };
    vec![folder.to_owned(), folder.parent().unwrap_or(folder).join(INSTALLED)]
}
