//! The record of everything that happened: hash-chained, signed, and without a function that removes an entry.
//!
//! A ledger is a folder of **segments**: files of lines, an **entry** a line. Each entry names the hash of the one before
//! it (`line`), so none can be changed, removed or moved unseen. A **checkpoint** is an entry that signs the chain up to
//! there (`checkpoint`, `key`), so the chain can't be made anew by whoever has no key; an **anchor** outside keeps
//! checkpoints (`anchor`), so that not even the end can be cut off unseen. `writer` appends, for many processes at once;
//! `index` says where to look, and is never trusted by `verify`; `query` reads; `archive` moves whole segments away.

pub mod anchor;
mod archive;
mod checkpoint;
mod envelope;
mod error;
mod follow;
mod head;
mod index;
mod key;
mod line;
mod place;
mod query;
mod recover;
mod segments;
mod verify;
mod writer;

pub use checkpoint::Checkpoint;
pub use envelope::{Envelope, rehearse};
pub use error::{Error, Result};
pub use key::{Key, PublicKey};
pub use line::{Draft, Hash, NO_HASH, hex, micros_now, time_text};
pub use verify::{Outside, verify};
pub use writer::{Appended, Durable, Ledger};

/// What reads bytes that others may have written. Not for use: for those who try it with all kinds of bytes.
#[doc(hidden)]
pub mod hostile {
    pub use crate::head::Head;
    pub use crate::line::{Line, write as write_line};
    pub use crate::query::entry;
}

/// Entries of one kind that the ledger makes itself.
pub mod kinds {
    /// The first of all: who keeps this record.
    pub const BEGUN: &str = "ledger.begun";
    /// The first of a segment.
    pub const SEGMENT: &str = "ledger.segment";
    pub const CHECKPOINT: &str = "ledger.checkpoint";
    /// What was found at the end after a crash.
    pub const RECOVERED: &str = "ledger.recovered";
    pub const ARCHIVED: &str = "ledger.archived";
}
