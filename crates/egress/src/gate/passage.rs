//! A connection that was let through, as whoever reads it gets to know it.

use std::net::IpAddr;

use model::{Caller, Endpoint};

pub(crate) struct Passage {
    pub number: u64,
    pub endpoint: Endpoint,
    pub address: IpAddr,
    pub caller: Option<Caller>,
}
