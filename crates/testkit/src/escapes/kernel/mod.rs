//! Attacks on the kernel's surface: system calls, namespaces, processes, signals, sockets, terminals.

use crate::Attack;

mod io_uring;

pub const ATTACKS: &[&Attack] = &[&io_uring::ATTACK];
