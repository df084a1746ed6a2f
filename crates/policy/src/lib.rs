//! Reads policy files, judges requests, mints grants. Pure: what must be looked up is in [`Facts`] and [`Found`].

mod argument;
mod calling_off;
mod carried;
mod compile;
mod credentials;
mod examples;
mod facts;
mod file;
mod findings;
mod gate;
mod grants;
mod host;
mod immutable;
mod judge;
mod links;
mod monitor;
mod network;
mod options;
mod paths;
mod pattern;
mod policy;
mod presets;
mod printed;
mod reader;
mod ready;
mod rule;
#[cfg(test)]
mod schema;
mod sheet;
mod show;
mod stand_in;
mod subcommand;
mod system;
mod url;
mod wanted;
mod weigh;

pub use compile::{LANGUAGES, Owner};
pub use credentials::{LOOSE, OFTEN_LINKED, STORES, below as store_below};
pub use facts::{Facts, Located};
pub use gate::GateRules;
pub use judge::{context, envelopes, judge};
pub use monitor::Monitored;
pub use pattern::{Care, PathPattern};
pub use policy::{Approving, Found, Policy, Project, Voice};
pub use presets::names as preset_names;
pub use reader::{BadPolicy, LARGEST, Source};
pub use sheet::{AgentTerms, Rate};
pub use show::lint;
pub use system::{ETC, PRIVATE, ROOTS, SYS, TOOLCHAIN_VARIABLES};
pub use wanted::is_kept_for;

/// The form of policy files, as JSON Schema. Made by a test of this crate, which also sees that it is fresh.
pub const SCHEMA: &str = include_str!("../policy.schema.json");
