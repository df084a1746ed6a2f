//! Whether a request says that it is for the place that was decided on and dialled.

use std::net::IpAddr;

use model::{Endpoint, Host};

/// The name, or the address in its one form, in any case; and the port, if it says one.
/// Whatever else somebody might take for the same (users, percents, a last dot, other ways to write an address) is not.
pub fn is_host(said: &str, endpoint: &Endpoint) -> bool {
    let name = match &endpoint.host {
        Host::Name(name) => name.as_str().to_owned(),
        Host::Address(IpAddr::V4(address)) => address.to_string(),
        Host::Address(IpAddr::V6(address)) => format!("[{address}]"),
    };
    // The one name that every machine has for itself, and that no resolver is asked about.
    let is_own = matches!(&endpoint.host, Host::Address(address) if address.is_loopback());
    is_called(said, &name, endpoint.port) || is_own && is_called(said, "localhost", endpoint.port)
}

fn is_called(said: &str, name: &str, number: u16) -> bool {
    let Some((start, rest)) = said.split_at_checked(name.len()) else { return false };
    let port = match rest.strip_prefix(':') {
        // An empty port means the usual one; nobody writes it who means well.
        Some(port) => port.bytes().all(|byte| byte.is_ascii_digit()) && port == number.to_string(),
        None => rest.is_empty(),
    };
    start.eq_ignore_ascii_case(name) && port
}
