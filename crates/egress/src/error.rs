//! What can go wrong on the way out: each error names the place and what to do. None shows a header or a query.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

pub type Result<T> = std::result::Result<T, Error>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("`{place}` is no place that can be told: {why}")]
    Place { place: String, why: &'static str },
    #[error("`{place}` is on another machine, and what is sent there would not be encrypted")]
    NotEncrypted { place: String },
    #[error("cannot find the machine of `{place}`: {source}")]
    Name { place: String, source: io::Error },
    #[error("cannot connect to `{place}`: {source}")]
    Connect { place: String, source: io::Error },
    #[error("`{place}` did not prove who it is: {why}")]
    Stranger { place: String, why: String },
    #[error("`{place}` took more than {seconds} seconds")]
    Late { place: String, seconds: u64 },
    #[error("`{place}` answered {status}")]
    Refused { place: String, status: u16 },
    #[error("`{place}` answered {status}, which leads elsewhere")]
    Redirect { place: String, status: u16 },
    #[error("`{place}` did not answer as it should: {why}")]
    Broken { place: String, why: String },
    #[error("cannot read `{}`: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("`{}` is no {what}: {why}", path.display())]
    Bad { path: PathBuf, what: &'static str, why: String },
    #[error("cannot listen at {address}: {source}")]
    Listen { address: SocketAddr, source: io::Error },
    #[error("this machine has no certificates of authorities that could vouch for anybody: {0}")]
    NoAuthorities(String),
    #[error("cannot begin to talk to anybody: {0}")]
    Setup(String),
}

impl Error {
    pub fn fix(&self) -> &'static str {
        match self {
            Error::Place { .. } => "write it like https://collector.example.org/path",
            Error::NotEncrypted { .. } => "use https:// or tls://, or say --unencrypted",
            Error::Name { .. } => "see that the name is right, and that names can be looked up here",
            Error::Connect { .. } | Error::Late { .. } => "see that it runs there and can be reached from here",
            Error::Stranger { .. } => "name the certificate of its authority with --ca FILE",
            Error::Refused { status: 401 | 403, .. } => "put the header that it wants into a file: --header-file FILE",
            Error::Refused { status: 400..=499, .. } => "see that this path there takes this format",
            Error::Refused { .. } => "see what it says of it on its side",
            Error::Redirect { .. } => "name the place itself; nobody is followed elsewhere",
            Error::Broken { .. } => "see that it speaks HTTP, and TLS where that is meant",
            Error::File { .. } => "see that it is there and that you may read it",
            Error::Bad { .. } => "see docs/export.md for its form",
            Error::Listen { .. } => "choose another port, or see who has it",
            Error::NoAuthorities(_) => "install ca-certificates, set SSL_CERT_FILE, or name one with --ca FILE",
            Error::Setup(_) => "please report this",
        }
    }

    /// Whether it may be better soon: the others stay as they are until somebody does something.
    pub fn may_pass(&self) -> bool {
        match self {
            Error::Name { .. } | Error::Connect { .. } | Error::Late { .. } | Error::Broken { .. } => true,
            Error::Refused { status, .. } => matches!(status, 408 | 425 | 429 | 500..=599),
            _ => false,
        }
    }
}
