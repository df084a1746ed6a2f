//! Layers over real files: what a sandbox changed, looked at, taken or thrown away.

pub mod patch;
pub mod protected;
pub mod text;
