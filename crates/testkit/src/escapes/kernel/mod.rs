//! Attacks on the kernel's surface: system calls, namespaces, processes, signals, sockets, terminals.

use crate::Attack;

mod abstract_socket;
mod bpf;
mod capabilities;
mod capable_program;
mod clock;
mod core_file;
#[cfg(target_arch = "x86_64")]
mod device_nodes;
mod end_first_process;
mod enter_namespace;
mod first_process;
#[cfg(target_arch = "x86_64")]
mod foreign_abi;
mod handle_of_secret;
mod handles;
mod hang_up;
mod host_datagram;
mod host_interfaces;
mod host_loopback;
mod host_name;
mod host_power;
mod host_storage;
mod io_uring;
mod io_uring_use;
mod join_namespaces;
mod kernel_log;
mod key_names;
mod keyrings;
mod line_discipline;
mod listen_inside;
#[cfg(target_arch = "x86_64")]
mod make_set_uid;
mod message_queues;
mod mounts_new;
mod mounts_old;
mod multipath;
mod nested_namespaces;
mod newest;
#[cfg(target_arch = "x86_64")]
mod obsolete;
mod own_filter;
mod perf_events;
mod personality;
mod placement;
#[cfg(target_arch = "x86_64")]
mod ports;
mod priorities;
mod process_options;
mod push_input;
mod raise_limits;
mod read_environment;
mod read_memory;
mod read_only_socket;
mod session_key;
mod set_uid_program;
mod shared_memory;
mod signal_by_file;
mod signal_host;
mod socket_families;
pub(crate) mod support;
mod suspend_filter;
mod take_descriptor;
mod thread_race;
mod trace_host;
#[cfg(target_arch = "x86_64")]
mod traced_call;
mod tune_host;
mod upper_protocol;
mod userfaultfd;
#[cfg(target_arch = "x86_64")]
mod walk;
mod watch_all;

pub const ATTACKS: &[&Attack] = &[
    &abstract_socket::ATTACK,
    &bpf::ATTACK,
    &capabilities::ATTACK,
    &capable_program::ATTACK,
    &clock::ATTACK,
    &core_file::ATTACK,
    #[cfg(target_arch = "x86_64")]
    &device_nodes::ATTACK,
    &end_first_process::ATTACK,
    &enter_namespace::ATTACK,
    &first_process::ATTACK,
    #[cfg(target_arch = "x86_64")]
    &foreign_abi::ATTACK,
    &handle_of_secret::ATTACK,
    &handles::ATTACK,
    &hang_up::ATTACK,
    &host_datagram::ATTACK,
    &host_interfaces::ATTACK,
    &host_loopback::ATTACK,
    &host_name::ATTACK,
    &host_power::ATTACK,
    &host_storage::ATTACK,
    &io_uring::ATTACK,
    &io_uring_use::ATTACK,
    &join_namespaces::ATTACK,
    &kernel_log::ATTACK,
    &keyrings::ATTACK,
    &line_discipline::ATTACK,
    &listen_inside::ATTACK,
    #[cfg(target_arch = "x86_64")]
    &make_set_uid::ATTACK,
    &message_queues::ATTACK,
    &mounts_new::ATTACK,
    &mounts_old::ATTACK,
    &multipath::ATTACK,
    &nested_namespaces::ATTACK,
    &newest::ATTACK,
    #[cfg(target_arch = "x86_64")]
    &obsolete::ATTACK,
    &own_filter::ATTACK,
    &perf_events::ATTACK,
    &personality::ATTACK,
    &placement::ATTACK,
    #[cfg(target_arch = "x86_64")]
    &ports::ATTACK,
    &priorities::ATTACK,
    &process_options::ATTACK,
    &push_input::ATTACK,
    &raise_limits::ATTACK,
    &read_environment::ATTACK,
    &read_memory::ATTACK,
    &session_key::ATTACK,
    &set_uid_program::ATTACK,
    &shared_memory::ATTACK,
    &signal_by_file::ATTACK,
    &signal_host::ATTACK,
    &socket_families::ATTACK,
    &suspend_filter::ATTACK,
    &take_descriptor::ATTACK,
    &thread_race::ATTACK,
    &trace_host::ATTACK,
    #[cfg(target_arch = "x86_64")]
    &traced_call::ATTACK,
    &tune_host::ATTACK,
    &upper_protocol::ATTACK,
    &userfaultfd::ATTACK,
    #[cfg(target_arch = "x86_64")]
    &walk::ATTACK,
    &watch_all::ATTACK,
    &key_names::ATTACK,
];

/// Attacks that succeed today. Each moves to the list above when its hole is mended.
pub const KNOWN_OPEN: &[&Attack] = &[
    // A read-only mount does not keep anyone from connecting to a socket in it.
    &read_only_socket::ATTACK,
];
