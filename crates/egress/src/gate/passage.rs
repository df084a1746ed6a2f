//! A connection that was decided on and dialled.

use std::net::IpAddr;

use model::{Caller, Endpoint};

/// A connection on its way out: who wanted to go where, and where that was found to be.
#[derive(Clone, Debug)]
pub(crate) struct Passage {
    /// In the record.
    pub number: u64,
    pub endpoint: Endpoint,
    /// Where it was really dialled; nothing, if nobody could be reached.
    pub address: Option<IpAddr>,
    pub caller: Option<Caller>,
}
