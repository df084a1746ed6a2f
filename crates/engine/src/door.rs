//! Whether a request is well-formed: sizes, counts, names, bytes. What is refused is named with its limit.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use model::{Outcome, Request};

use crate::judge::usage;

/// Most paths, variables and the like that one request may name.
const MOST: usize = 1000;
const LONGEST_PATH: usize = 4096;
/// The kernel takes no longer argument or variable.
const LONGEST_WORD: usize = 128 * 1024 - 1;
/// Most words of a command, and all of them together: a quarter of what the kernel takes.
const MOST_WORDS: usize = 65_536;
const LONGEST_COMMAND: usize = 2 << 20;
const LONGEST_NAME: usize = 64;
const LONGEST_HOST: usize = 253;

pub fn validate(request: &Request) -> Result<(), Outcome> {
    let paths = || {
        let granted = request.read.iter().chain(&request.write).chain(&request.hide).chain(&request.workspaces);
        granted.chain(&request.directory)
    };
    for path in paths() {
        let bytes = path.as_os_str().as_bytes();
        let shown = path.display().to_string().escape_debug().to_string();
        if bytes.is_empty() {
            return Err(usage("a path is empty".to_owned(), "name a folder or a file"));
        }
        if bytes.len() > LONGEST_PATH {
            return Err(usage(
                format!("a path is {} bytes long; {LONGEST_PATH} is the most", bytes.len()),
                "use a shorter one",
            ));
        }
        if bytes.iter().any(u8::is_ascii_control) {
            return Err(usage(format!("the path `{shown}` has a control character in it"), "rename it"));
        }
    }
    if paths().count() > MOST || request.environment.len() > MOST {
        return Err(usage(format!("more than {MOST} paths or variables are named"), "name folders rather than files"));
    }
    if request.command.len() > MOST_WORDS {
        return Err(usage(
            format!("the command has {} words; {MOST_WORDS} is the most", request.command.len()),
            "pass them in a file or on standard input",
        ));
    }
    let total: usize = request.command.iter().map(|word| word.len() + 1).sum();
    if total > LONGEST_COMMAND {
        return Err(usage(
            format!("the command has {total} bytes; {LONGEST_COMMAND} is the most"),
            "pass them in a file or on standard input",
        ));
    }
    for argument in &request.command {
        check_word("an argument of the command", argument)?;
    }
    for (name, value) in &request.environment {
        let bytes = name.as_bytes();
        let known = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        if bytes.is_empty() || !bytes.iter().all(known) || bytes[0].is_ascii_digit() {
            let shown = name.to_string_lossy().escape_debug().to_string();
            return Err(usage(
                format!("`{shown}` is no name for a variable"),
                "use letters, digits and `_`: `--env NAME=VALUE`",
            ));
        }
        if let Some(value) = value {
            check_word("the value of a variable", value)?;
        }
    }
    request.agent.as_deref().map_or(Ok(()), agent)
}

pub fn agent(name: &str) -> Result<(), Outcome> {
    let known = |letter: char| letter.is_ascii_alphanumeric() || "-_.@".contains(letter);
    if name.is_empty() || name.len() > LONGEST_NAME || !name.chars().all(known) {
        return Err(usage(
            format!("`{}` is no name for an agent", name.escape_debug()),
            &format!("use up to {LONGEST_NAME} letters, digits, `-`, `_`, `.` and `@`"),
        ));
    }
    Ok(())
}

/// A name as DNS has it, or an address.
pub fn host(name: &str) -> Result<(), Outcome> {
    let known = |letter: char| letter.is_alphanumeric() || "-_.:[]".contains(letter);
    if name.is_empty() || name.len() > LONGEST_HOST || !name.chars().all(known) {
        return Err(usage(
            format!("`{}` is no host", name.escape_debug()),
            &format!("use a name of up to {LONGEST_HOST} letters, or an address"),
        ));
    }
    Ok(())
}

fn check_word(what: &str, text: &OsStr) -> Result<(), Outcome> {
    if text.as_bytes().contains(&0) {
        return Err(usage(format!("{what} has a zero byte in it"), "pass it in a file or on standard input"));
    }
    if text.len() > LONGEST_WORD {
        return Err(usage(
            format!("{what} is {} bytes long; {LONGEST_WORD} is the most", text.len()),
            "pass it in a file or on standard input",
        ));
    }
    Ok(())
}
