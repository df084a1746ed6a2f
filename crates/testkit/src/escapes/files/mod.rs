//! Attacks on what can be read and written, on names, descriptors, links and what is inherited.

use crate::Attack;

mod boot_command;
mod boot_identity;
mod control_group_path;
mod core_file;
mod create_outside;
mod devices_by_name;
mod devices_made;
mod dot_dot;
mod execute_outside;
mod file_capabilities;
mod file_handle;
mod foreign_owner;
mod hard_link_in;
mod hidden_and_replaced;
mod hidden_before_it_exists;
mod hidden_below_a_moved_folder;
mod hidden_by_a_link;
mod hidden_by_mounts;
mod hidden_file;
mod hidden_folder;
mod home_secrets;
mod host_mounts;
mod host_name;
mod immutable;
mod inherited_descriptors;
mod inherited_environment;
mod kernel_knobs;
mod kernel_memory;
mod launcher_binary;
mod left_in_scratch;
mod machine_identity;
mod password_records;
mod pipe_in_a_read_grant;
mod planted_grant;
mod planted_program;
mod planted_write_grant;
mod proc_aliases;
mod read_grant;
mod read_grant_lease;
mod read_grant_lock;
mod read_only_part;
mod read_only_part_below_a_moved_folder;
mod read_only_part_replaced;
mod read_outside;
mod remove_outside;
mod rename_in;
mod run_set_user_id;
mod set_group_id;
mod set_user_id;
mod set_user_id_of_another_abi;
mod shared_scratch;
mod sockets_in_a_read_grant;
mod sockets_in_the_workspace;
mod sockets_of_services;
mod sockets_outside;
mod stores_behind_links;
mod stores_in_a_granted_home;
mod stores_made_later;
mod support;
mod symlink_out;
mod symlink_swap;
mod symlink_write;
mod system_buses;
mod system_folders;
mod through_bystanders;
mod watch_the_host;
mod whiteout;
mod workspace_root;
mod write_outside;
mod write_proc_aliases;

pub const ATTACKS: &[&Attack] = &[
    &control_group_path::ATTACK,
    &core_file::ATTACK,
    &create_outside::ATTACK,
    &devices_by_name::ATTACK,
    &devices_made::ATTACK,
    &dot_dot::ATTACK,
    &execute_outside::ATTACK,
    &file_capabilities::ATTACK,
    &file_handle::ATTACK,
    &foreign_owner::ATTACK,
    &hard_link_in::ATTACK,
    &hidden_by_a_link::ATTACK,
    &hidden_by_mounts::ATTACK,
    &hidden_file::ATTACK,
    &hidden_folder::ATTACK,
    &home_secrets::ATTACK,
    &host_mounts::ATTACK,
    &host_name::ATTACK,
    &immutable::ATTACK,
    &inherited_descriptors::ATTACK,
    &inherited_environment::ATTACK,
    &kernel_knobs::ATTACK,
    &kernel_memory::ATTACK,
    &launcher_binary::ATTACK,
    &left_in_scratch::ATTACK,
    &machine_identity::ATTACK,
    &password_records::ATTACK,
    &pipe_in_a_read_grant::ATTACK,
    &proc_aliases::ATTACK,
    &read_grant::ATTACK,
    &read_only_part::ATTACK,
    &read_outside::ATTACK,
    &remove_outside::ATTACK,
    &rename_in::ATTACK,
    &run_set_user_id::ATTACK,
    &set_group_id::ATTACK,
    &set_user_id::ATTACK,
    &set_user_id_of_another_abi::ATTACK,
    &shared_scratch::ATTACK,
    &sockets_of_services::ATTACK,
    &sockets_outside::ATTACK,
    &stores_in_a_granted_home::ATTACK,
    &symlink_out::ATTACK,
    &symlink_swap::ATTACK,
    &symlink_write::ATTACK,
    &system_buses::ATTACK,
    &system_folders::ATTACK,
    &through_bystanders::ATTACK,
    &workspace_root::ATTACK,
    &write_outside::ATTACK,
    &write_proc_aliases::ATTACK,
    &planted_program::ATTACK,
    &planted_grant::ATTACK,
    &planted_write_grant::ATTACK,
    &stores_behind_links::ATTACK,
    &stores_made_later::ATTACK,
    &whiteout::ATTACK,
    &hidden_before_it_exists::ATTACK,
    &boot_identity::ATTACK,
    &boot_command::ATTACK,
    &read_grant_lease::ATTACK,
    &hidden_below_a_moved_folder::ATTACK,
    &read_only_part_below_a_moved_folder::ATTACK,
];

/// Attacks that succeed, each with the reason. Not part of the suite until they are mended; then they move up.
pub const KNOWN_OPEN: &[&Attack] = &[
    // The kernel drops a mount when what it lies on is replaced from another mount namespace.
    &hidden_and_replaced::ATTACK,
    // The same.
    &read_only_part_replaced::ATTACK,
    // Connecting needs no write access to the mount, and no Landlock right that this kernel knows.
    &sockets_in_a_read_grant::ATTACK,
    // The same.
    &sockets_in_the_workspace::ATTACK,
    // The call `flock` needs no more than a descriptor for reading.
    &read_grant_lock::ATTACK,
    // Inotify sees through mounts: it watches the file, not the name.
    &watch_the_host::ATTACK,
];
