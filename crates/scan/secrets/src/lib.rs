//! Secrets in text: known formats, exact values, a stream without them.

mod find;
pub mod formats;
mod needles;
mod redactor;
mod stream;
mod values;

pub use find::{find, find_in};
pub use formats::{BadFormats, Format, Formats};
pub use redactor::{Redacted, Redactor};
pub use values::{Added, Values};
