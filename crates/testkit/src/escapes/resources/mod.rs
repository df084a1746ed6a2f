//! Attacks on limits, on what is left behind, and on the supervisor.

use crate::Attack;

mod core_file;
mod cpu_time_children;
mod cpu_time_no_text_name;
mod cpu_time_unwaited;
mod deadline_deaf;
mod deadline_slow_looks;
mod deadline_stopped;
mod denial_flood;
mod disk_at_once;
mod disk_closed_folder;
mod disk_deep;
mod disk_given_back;
mod disk_grown_at_once;
mod disk_tmp;
mod disk_unlinked;
mod disk_workspace;
mod forge_result;
mod fork_flood;
mod fork_race;
mod hold_output;
mod inodes_tmp;
mod inodes_workspace;
mod kill_everyone;
mod memory_anonymous;
mod memory_closed_file;
mod memory_hidden_files;
mod memory_many;
mod memory_no_text_name;
mod memory_segment;
mod memory_shared;
mod memory_socket_buffers;
mod memory_tmpfs;
mod memory_unnamed_file;
mod memory_without_leader;
mod more_processors;
mod name_on_terminal;
mod name_turns_the_line;
mod open_files;
mod outlive;
mod output_flood;
mod priority;
mod raise_limits;
mod sparse_file;
mod stopped_daemons;
mod support;
mod thread_flood;
mod zombies;

pub const ATTACKS: &[&Attack] = &[
    &core_file::ATTACK,
    &cpu_time_children::ATTACK,
    &deadline_deaf::ATTACK,
    &deadline_stopped::ATTACK,
    &denial_flood::ATTACK,
    &disk_tmp::ATTACK,
    &disk_workspace::ATTACK,
    &forge_result::ATTACK,
    &fork_flood::ATTACK,
    &fork_race::ATTACK,
    &hold_output::ATTACK,
    &inodes_tmp::ATTACK,
    &inodes_workspace::ATTACK,
    &kill_everyone::ATTACK,
    &memory_anonymous::ATTACK,
    &memory_many::ATTACK,
    &memory_tmpfs::ATTACK,
    &memory_unnamed_file::ATTACK,
    &more_processors::ATTACK,
    &name_on_terminal::ATTACK,
    &open_files::ATTACK,
    &outlive::ATTACK,
    &output_flood::ATTACK,
    &priority::ATTACK,
    &raise_limits::ATTACK,
    &sparse_file::ATTACK,
    &stopped_daemons::ATTACK,
    &thread_flood::ATTACK,
    &zombies::ATTACK,
    &name_turns_the_line::ATTACK,
    &disk_deep::ATTACK,
    &memory_hidden_files::ATTACK,
    &memory_segment::ATTACK,
    &memory_closed_file::ATTACK,
    &memory_shared::ATTACK,
    &memory_without_leader::ATTACK,
    &disk_unlinked::ATTACK,
    &disk_given_back::ATTACK,
    &deadline_slow_looks::ATTACK,
    &disk_closed_folder::ATTACK,
    &memory_no_text_name::ATTACK,
    &cpu_time_no_text_name::ATTACK,
    &disk_at_once::ATTACK,
    &disk_grown_at_once::ATTACK,
];

/// Attacks that get through today, each with why. One moves up when its hole is mended.
pub const KNOWN_OPEN: &[&Attack] = &[
    // As an ordinary user without control groups: children reaped by the kernel are in nobody's count.
    &cpu_time_unwaited::ATTACK,
    // As an ordinary user: memory of the kernel is in no sum.
    &memory_socket_buffers::ATTACK,
];
