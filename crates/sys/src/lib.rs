//! Linux, safely wrapped: every `unsafe` block of the product lives here.
//!
//! Each function is safe to call with any arguments. Nothing here decides anything: what to mount, refuse
//! or limit is the caller's business.
#![allow(unsafe_code)]

#[cfg(any(target_env = "musl", test))]
pub mod allocator;
mod assistant;
pub mod capabilities;
pub mod carried;
pub mod clock;
pub mod confined;
#[cfg(target_arch = "x86_64")]
pub mod copying;
pub mod descriptors;
pub mod dialer;
pub mod doors;
pub mod filter;
pub mod handles;
pub mod identity;
pub mod keeper;
pub mod landlock;
pub mod leases;
pub mod limits;
pub mod memory;
pub mod mounts;
mod netlink;
pub mod network;
pub mod notes;
pub mod parcel;
pub mod paths;
pub mod places;
pub mod process;
pub mod residents;
pub mod seccomp;
pub mod signals;
mod stack;
pub mod trees;

use std::io;

/// The result of a raw system call, as Rust says it.
fn checked(result: libc::c_long) -> io::Result<libc::c_long> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}
