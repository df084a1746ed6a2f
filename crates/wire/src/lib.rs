//! How nouns look as JSON: one shape for `--json`, the HTTP API and MCP. What programs read is decided here; changes to the
//! model do not change it by themselves.

mod result;

pub use result::{ResultObject, code, object};
