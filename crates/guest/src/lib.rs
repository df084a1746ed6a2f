//! The first process inside a sandbox, and the wire it speaks.
//!
//! Everything here runs between a fork and the payload's exec, or next to hostile code. It decides nothing and
//! allocates next to nothing: the parent made the steps, with every string and number in them. Only `files` is a worker of
//! its own, in a process that has one thread and nothing else to do.

pub mod files;
pub mod first;
pub mod live;
mod orders;
mod restrict;
pub mod step;
mod trial;
pub mod usher;
pub mod wire;

pub use orders::{Orders, Payload};
pub use step::Step;
pub use trial::Trial;
