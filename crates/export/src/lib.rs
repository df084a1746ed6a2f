//! Entries of the record in other people's formats: OCSF, CloudEvents, syslog, OpenTelemetry traces, Prometheus metrics.
//!
//! Pure: an entry and whose record it is go in, text or JSON comes out. Whatever an entry says, it has a form in each.

pub mod cloud_events;
mod entry;
pub mod metrics;
pub mod ocsf;
pub mod syslog;
pub mod traces;

pub use entry::{json_line, summary};

/// Whose record it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    pub installation: String,
    /// The name of the machine; may be empty.
    pub host: String,
    /// Of belljar.
    pub version: String,
}

impl Origin {
    /// No two entries of anybody have the same.
    fn name_of(&self, entry: &model::Entry) -> String {
        format!("{}/{}", self.installation, entry.number)
    }
}
