//! The record in other people's formats, sent where they look: what is wanted, and the seam to it.

use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;

use crate::{EntryQuery, Trouble};

/// What front-ends ask of exports.
pub trait Exports {
    /// Sends entries until there are no more, or for ever; returns how many were taken. `output` is the front-end's own,
    /// `tell` is for people who look on.
    fn export(&self, wish: &Export, output: &mut dyn Write, tell: &dyn Fn(&str)) -> Result<u64, Trouble>;
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    pub format: ExportFormat,
    pub query: EntryQuery,
    /// Goes on with what is to come.
    pub follow: bool,
    pub to: Destination,
    /// Goes on where the last one of this name ended.
    pub cursor: Option<String>,
    /// Lines of headers that a place wants to see.
    pub header_file: Option<PathBuf>,
    /// Certificates of the only authorities that are believed; else those of the machine.
    pub authorities: Option<PathBuf>,
    /// Other machines may be told without encryption.
    pub unencrypted: bool,
    /// A post for each event, where several could go together.
    pub one_each: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportFormat {
    Ndjson,
    Ocsf,
    CloudEvents,
    Syslog,
    Otlp,
    Prometheus,
}

impl ExportFormat {
    pub const ALL: [ExportFormat; 6] = [
        ExportFormat::Ndjson,
        ExportFormat::Ocsf,
        ExportFormat::CloudEvents,
        ExportFormat::Syslog,
        ExportFormat::Otlp,
        ExportFormat::Prometheus,
    ];

    pub fn name(self) -> &'static str {
        match self {
            ExportFormat::Ndjson => "ndjson",
            ExportFormat::Ocsf => "ocsf",
            ExportFormat::CloudEvents => "cloudevents",
            ExportFormat::Syslog => "syslog",
            ExportFormat::Otlp => "otlp",
            ExportFormat::Prometheus => "prometheus",
        }
    }
}

/// Where it is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// The front-end's own output.
    Output,
    /// To its end; metrics in its place.
    File(PathBuf),
    /// Posted to this address.
    Http(String),
    /// A socket for datagrams.
    Unix(PathBuf),
    Udp {
        host: String,
        port: u16,
    },
    Tcp {
        host: String,
        port: u16,
    },
    Tls {
        host: String,
        port: u16,
    },
    /// Served as a page to whoever asks here.
    Page(SocketAddr),
}
