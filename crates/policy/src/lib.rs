//! Reads policy files, judges requests, mints grants. Pure: what must be looked up is in [`Facts`].

mod credentials;
mod facts;
mod judge;
mod reader;
mod system;

pub use credentials::{LOOSE, OFTEN_LINKED, STORES, below as store_below};
pub use facts::{Facts, Located};
pub use judge::judge;
pub use reader::{BadPolicy, Policy};
pub use system::{ETC, PRIVATE, ROOTS, SYS, TOOLCHAIN_VARIABLES};
