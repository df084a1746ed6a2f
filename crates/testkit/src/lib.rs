//! The escape suite. An attack is a file in `escapes/`: what it prepares on the host, what it does inside, and how
//! the host tells whether it succeeded. Each is tried without a sandbox too, where it must succeed: an attack that
//! succeeds nowhere proves nothing.

pub mod attack;
#[cfg(target_arch = "x86_64")]
pub mod calls;
pub mod contestant;
pub mod deeds;
pub mod dice;
pub mod engine;
pub mod escapes;
pub mod field;
pub mod guest;
pub mod home;
pub mod inside;
pub mod module_attacks;
pub mod modules;
pub mod podman;
pub mod project;
pub mod rootless;
pub mod soak;
pub mod stops;
pub mod tree;
pub mod trial;
pub mod twice;

pub use attack::{Attack, Control, Verdict};
pub use contestant::{Contestant, Who};
pub use field::Field;
pub use inside::Inside;
pub use project::Project;
