//! The only way out to the network: the gate of sandboxes, what belljar itself has to say to others, the page of its metrics.
//!
//! Blocking at its surface. Sending starts no thread, and leaves none behind: sandboxes are forked from processes that may
//! have told an anchor before. Whoever answers is not trusted: time and memory are bounded whatever they do.

mod cache;
mod client;
mod deadline;
mod error;
mod gate;
mod headers;
mod page;
mod place;
mod read;
mod streams;
mod trust;

pub use cache::{Cache, Collected as CollectedDownloads, collect as collect_downloads};
pub use client::{Answer, Client, Settings};
pub use error::{Error, Result};
pub use gate::{GateLimits, GateSettings, listen, on_a_thread, serve as serve_gate};
pub use page::serve;
pub use place::{Encryption, Url};
pub use read::{Authority, Fence, Fetches, Fetching, ReadLimits, Reader, SecretValue, Violation};
pub use streams::{Stream, Wire};
pub use trust::{Trust, bundle, roots, roots_in};

/// What reads bytes that the guest chose. Not for use: for those who try it with all kinds of bytes.
#[doc(hidden)]
pub mod hostile {
    pub use crate::cache::hostile::{Entry, Told, fit};
    pub use crate::gate::hostile::*;
}
