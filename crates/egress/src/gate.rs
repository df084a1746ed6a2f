//! The gate: takes what comes out of a sandbox's network, asks the porter, and dials.

pub(crate) mod passage;
pub(crate) mod session;
