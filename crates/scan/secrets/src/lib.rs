//! Secrets in text: known formats, exact values, a stream without them. And what else output needs on its way to a person
//! or an agent: a terminal that is not acted upon, a bound for its size, bytes that survive JSON.

mod find;
pub mod formats;
pub mod kept;
mod needles;
mod readings;
mod redactor;
mod search;
mod stream;
pub mod terminal;
pub mod text;
mod values;

pub use find::{find, find_in};
pub use formats::{BadFormats, Format, Formats};
pub use redactor::{Redacted, Redactor};
pub use values::{Added, LONGEST, SHORTEST, SHORTEST_ANYWAY, Values};
