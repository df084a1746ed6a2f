//! The first stage: is the request well-formed, and does the policy allow it?

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use model::{Grant, Outcome, Request, SetupFailure, Verdict};
use policy::Policy;

use crate::{refused, survey};

pub fn judge(request: &Request) -> Result<Grant, Outcome> {
    if request.command.first().is_none_or(|program| program.is_empty()) {
        return Err(usage("there is no command to run".to_owned(), "put it after `--`: `belljar run -- ls`"));
    }
    validate(request)?;
    let policy = read_policy()?;
    let facts = survey::look(request)?;
    match policy::judge(request, &policy, &facts) {
        Verdict::Allowed(grant) => Ok(*grant),
        Verdict::Ask(pending) => Err(refused(
            &pending.question().reasons[0].rule,
            "a person would have to be asked".to_owned(),
            "nobody can be asked yet",
        )),
        Verdict::Refused(refusal) => Err(Outcome::Refused(refusal)),
    }
}

/// Most paths, variables and the like that one request may name.
const MOST: usize = 1000;
const LONGEST_PATH: usize = 4096;

fn validate(request: &Request) -> Result<(), Outcome> {
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
    for argument in &request.command {
        check_zero("an argument of the command", argument)?;
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
            check_zero("the value of a variable", value)?;
        }
    }
    Ok(())
}

fn check_zero(what: &str, text: &OsStr) -> Result<(), Outcome> {
    match text.as_bytes().contains(&0) {
        true => Err(usage(format!("{what} has a zero byte in it"), "pass it in a file or on standard input")),
        false => Ok(()),
    }
}

/// The user's policy, or what holds without one. A file that can't be read is no reason to go without it.
fn read_policy() -> Result<Policy, Outcome> {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let folder = variable("XDG_CONFIG_HOME").or_else(|| variable("HOME").map(|home| home.join(".config")));
    let Some(file) = folder.map(|folder| folder.join("belljar/policy.toml")) else {
        return Ok(Policy::default());
    };
    let name = file.display().to_string();
    let text = match std::fs::read_to_string(&file) {
        Ok(text) => text,
        Err(error) if matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) => {
            return Ok(Policy::default());
        }
        Err(error) => {
            return Err(usage(format!("cannot read the policy `{name}`: {error}"), "make it readable, or remove it"));
        }
    };
    Policy::read(&name, &text).map_err(|bad| {
        usage(bad.to_string(), "mend the policy file; nothing runs with a policy that can't be understood")
    })
}

pub(crate) fn usage(message: String, fix: &str) -> Outcome {
    Outcome::NotSetUp(SetupFailure { wall: None, message, fix: fix.to_owned(), layers: false })
}
