//! What can go wrong with a secret. Each error names the secret or the file, and what to do; none has anything of a value.

use std::io;
use std::path::{Path, PathBuf};

use model::{BadValue, Trouble};

pub type Result<T> = std::result::Result<T, Error>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot {doing} `{}`: {source}", path.display())]
    File { doing: &'static str, path: PathBuf, source: io::Error },
    #[error("`{}` can't be used: {why}", path.display())]
    Unsafe { path: PathBuf, why: String, fix: String },
    #[error("another process has held the secrets at `{}` for {seconds} seconds", path.display())]
    Busy { path: PathBuf, seconds: u64 },
    #[error("the secret `{name}` can't be read: {why}")]
    Bad { name: String, why: &'static str },
    #[error("the key `{}`, which secrets are sealed with, can't be used: {why}", path.display())]
    Key { path: PathBuf, why: &'static str },
    #[error("the secret `{name}` was not sealed with the key that is here, or was changed since")]
    Sealed { name: String },
    #[error("there is no secret `{name}`{near}")]
    None { name: String, near: String },
    #[error("`{}` is no name of a secret", name.escape_debug())]
    Name { name: String },
    #[error("`{}` is no host", host.escape_debug())]
    Host { host: String },
    #[error("`{}` is no name of a variable", name.escape_debug())]
    Variable { name: String },
    #[error("`{}` can't begin a stand-in", prefix.escape_debug())]
    Prefix { prefix: String },
    #[error("the secret `{name}` {}", if *.wanted { "needs a value" } else { "takes no value: its source has it" })]
    Value { name: String, wanted: bool },
    #[error("only what a command says has a time to live, and `{name}` comes from elsewhere")]
    Ttl { name: String },
    #[error("the value of the secret `{name}` can't be used: {why}")]
    BadValue { name: String, why: BadValue },
    #[error("the secret `{name}` comes from the variable `{variable}`, which is not set")]
    NoVariable { name: String, variable: String },
    #[error("the command for the secret `{name}` {why}{complaint}")]
    Command {
        name: String,
        why: String,
        /// What it said about it itself: for whoever wrote the command, and nobody else.
        complaint: String,
    },
    #[error("the secret `{name}` is kept in the desktop's keyring, and `secret-tool` is not installed")]
    NoKeyring { name: String },
    #[error("the desktop's keyring did not {doing} the secret `{name}`: {why}")]
    Keyring { name: String, doing: &'static str, why: String },
    #[error("there is no random number to be had from the kernel: {0}")]
    Random(io::Error),
}

impl Error {
    /// In words that may be said to anybody: without anything that a program said.
    pub fn for_others(&self) -> String {
        match self {
            Error::Command { why, .. } => format!("its command {why}"),
            Error::Keyring { doing, .. } => format!("the desktop's keyring did not {doing} it"),
            other => other.to_string(),
        }
    }

    /// What somebody can do about it.
    pub fn fix(&self) -> String {
        let plain = match self {
            Error::File { .. } => "see that the folder is yours, writable and has room",
            Error::Unsafe { fix, .. } => return fix.clone(),
            Error::Busy { .. } => "see `ps` for a belljar that is stopped, and let it go on or end it",
            Error::Bad { name, .. } | Error::Sealed { name } => {
                return format!(
                    "set it anew with `belljar secret set {name}`, or remove it with `belljar secret rm {name}`"
                );
            }
            Error::Key { path, .. } => {
                return format!(
                    "put `{}` back from a backup; or move it away, remove each secret with `belljar secret rm` and set it anew",
                    path.display()
                );
            }
            Error::None { .. } => "see `belljar secret ls`, or keep one with `belljar secret set`",
            Error::Name { .. } => {
                "use letters, digits, `_`, `-` and `.`, at most 64, the first of them no `-` and no `.`"
            }
            Error::Host { .. } => "write it like `api.example.org`, `*.example.org` or `10.0.0.1:8080`",
            Error::Variable { .. } => {
                "use letters, digits and `_`, not beginning with a digit; say one with `--variable VAR`"
            }
            Error::Prefix { .. } => "use at most 32 letters, digits, `_`, `-` and `.`",
            Error::Value { wanted: true, .. } => "type it at a terminal, or give it on standard input",
            Error::Value { .. } => "leave the value away, or use `--source store`",
            Error::Ttl { .. } => "leave `--ttl` away, or use `--source cmd:COMMAND`",
            Error::BadValue { .. } => "give it as one line, without anything around it",
            Error::NoVariable { .. } => "set it for belljar itself; what is inside does not get it",
            Error::Command { .. } => {
                "try the command in a shell; it must print the value, and nothing else, within 30 seconds"
            }
            Error::NoKeyring { .. } => {
                "install the package libsecret-tools (Fedora, Arch: libsecret), or use `--source store`"
            }
            Error::Keyring { .. } => "unlock it, or set the secret anew; without a desktop, use `--source store`",
            Error::Random(_) => "see that /dev/urandom works",
        };
        plain.to_owned()
    }
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Trouble {
        Trouble { message: error.to_string(), fix: error.fix() }
    }
}

/// For `map_err`: what we were doing, to what.
pub(crate) fn cannot<E: Into<io::Error>>(doing: &'static str, path: impl AsRef<Path>) -> impl FnOnce(E) -> Error {
    move |source| Error::File { doing, path: path.as_ref().to_owned(), source: source.into() }
}
