//! One file, into a sandbox or out of it.

use std::ffi::OsString;
use std::fs;
use std::io::{self, IsTerminal, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use clap::ArgMatches;
use model::{FileFailure, FileOperation, FilesNot, MOST_FILE_BYTES, OnlyIf, Sandboxes, Trouble};

use crate::new_file::NewFile;
use crate::{NOT_SET_UP, kept, run, words};

/// One end of a copy.
enum End {
    Sandbox { which: String, path: String },
    Standard,
    Here(PathBuf),
}

pub fn copy(matches: &ArgMatches, sandboxes: &dyn Sandboxes) -> u8 {
    let end = |name: &str| matches.get_one::<OsString>(name).map_or(End::Standard, end);
    match (end("from"), end("to")) {
        (End::Sandbox { which, path }, to) if !matches!(to, End::Sandbox { .. }) => out(sandboxes, &which, path, &to),
        (from, End::Sandbox { which, path }) if !matches!(from, End::Sandbox { .. }) => {
            into(sandboxes, &from, &which, path)
        }
        _ => kept::complain(&Trouble {
            message: "one of the two must be in a sandbox, and the other must not".to_owned(),
            fix: "write that one as ID:PATH".to_owned(),
        }),
    }
}

/// What has a `:` before any `/` is in a sandbox: `./a:b` is here.
fn end(word: &OsString) -> End {
    match word.to_str() {
        Some("-") => End::Standard,
        Some(text) => match text.split_once(':') {
            Some((which, path)) if !which.is_empty() && !which.contains('/') => {
                End::Sandbox { which: which.to_owned(), path: path.to_owned() }
            }
            _ => End::Here(word.into()),
        },
        None => End::Here(word.into()),
    }
}

fn out(sandboxes: &dyn Sandboxes, which: &str, path: String, to: &End) -> u8 {
    let name = Path::new(&path).file_name().map(OsString::from);
    let answer = match sandboxes.files(which, &FileOperation::Read { path, from: 0, length: None }, Vec::new()) {
        Ok(answer) => answer,
        Err(not) => return complain(&not),
    };
    if answer.redacted > 0 {
        words::say(&format!("belljar: {} secrets were left out", answer.redacted));
    }
    let executable = answer.entries.first().is_some_and(|entry| entry.mode & 0o100 != 0);
    let written = match to {
        End::Here(path) => {
            let path = match name.filter(|_| path.is_dir()) {
                Some(name) => path.join(name),
                None => path.clone(),
            };
            NewFile::beside(&path, executable).and_then(|mut file| {
                file.write_all(&answer.content)?;
                file.name_it(true)
            })
        }
        // What commands a terminal is for no terminal of ours.
        _ if io::stdout().is_terminal() && !is_plain(&answer.content) => {
            return kept::complain(&Trouble {
                message: "it is no plain text, which a terminal should not be shown".to_owned(),
                fix: "name a file, or pipe it somewhere".to_owned(),
            });
        }
        _ => io::stdout().write_all(&answer.content).and_then(|()| io::stdout().flush()),
    };
    written.map_or_else(|error| cannot("write it", &error), |()| 0)
}

fn is_plain(content: &[u8]) -> bool {
    let text = std::str::from_utf8(content).ok();
    text.is_some_and(|text| text.chars().all(|letter| matches!(letter, '\n' | '\t') || !letter.is_control()))
}

fn into(sandboxes: &dyn Sandboxes, from: &End, which: &str, mut path: String) -> u8 {
    let mut content = Vec::new();
    let read = match from {
        End::Here(here) => {
            if path.is_empty() || path.ends_with('/') {
                path += &here.file_name().unwrap_or_default().to_string_lossy();
            }
            fs::File::open(here).and_then(|file| {
                let mode = file.metadata()?.permissions().mode() & 0o777;
                file.take(MOST_FILE_BYTES + 1).read_to_end(&mut content).map(|_| Some(mode))
            })
        }
        _ => io::stdin().lock().take(MOST_FILE_BYTES + 1).read_to_end(&mut content).map(|_| None),
    };
    let mode = match read {
        Ok(mode) => mode,
        Err(error) => return cannot("read it", &error),
    };
    let operation = FileOperation::Write { path, mode, only: OnlyIf::Always, parents: true };
    match sandboxes.files(which, &operation, content) {
        Ok(_) => 0,
        Err(not) => complain(&not),
    }
}

fn cannot(what: &str, error: &io::Error) -> u8 {
    words::say(&format!("belljar: cannot {what}: {error}"));
    NOT_SET_UP
}

fn complain(not: &FilesNot) -> u8 {
    match not {
        FilesNot::Done(FileFailure { message, fix, .. }) => {
            kept::complain(&Trouble { message: message.clone(), fix: fix.clone() });
            1
        }
        FilesNot::Entered(outcome) => {
            words::say(&run::summary(outcome));
            wire::code(outcome)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_a_colon_before_any_slash_is_in_a_sandbox() {
        let is_sandbox = |word: &str| matches!(end(&word.into()), End::Sandbox { .. });
        assert!(is_sandbox("work:a/b") && is_sandbox("work:/etc/passwd") && is_sandbox("work:"));
        for here in ["./a:b", "a/b:c", ":a", "a", "-", "/a:b"] {
            assert!(!is_sandbox(here), "{here}");
        }
    }
}
