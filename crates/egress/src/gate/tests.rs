//! The gate with real sockets: what comes through its doors arrives where it should, or nowhere.

mod connections;
mod inside;
mod names;
mod speed;
pub(super) mod stage;
