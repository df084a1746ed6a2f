//! Every attack, by what it is after.

pub mod files;
pub mod kernel;
pub mod resources;

use crate::Attack;

pub fn all() -> impl Iterator<Item = &'static Attack> {
    files::ATTACKS.iter().chain(kernel::ATTACKS).chain(resources::ATTACKS).copied()
}

/// Attacks that succeed, and are declared as limits in THREATS.md. Tried all the same: one that no longer succeeds
/// belongs among the others.
pub fn known_open() -> impl Iterator<Item = &'static Attack> {
    files::KNOWN_OPEN.iter().chain(kernel::KNOWN_OPEN).chain(resources::KNOWN_OPEN).copied()
}

/// Attacks that belljar may answer by not starting at all: what they ask for is refused at the door. Its result must
/// say so; a sandbox that could not be raised is no answer.
pub const REFUSED_AT_THE_DOOR: &[&str] = &[
    "files/hidden_before_it_exists", "files/planted_grant", "files/planted_program", "files/planted_write_grant",
    "files/stores_behind_links", "files/stores_in_a_granted_home", "files/stores_made_later",
];

/// Attacks that say nothing about a kernel of its own, and why: what they reach there is that kernel's and not the host's.
pub const NOT_ON_A_KERNEL_OF_ITS_OWN: &[(&str, &str)] = &[
    ("files/devices_by_name", "gVisor's own devices, which reach nothing of the host's"),
    ("files/kernel_knobs", "gVisor's own /proc/sys, which changes nothing"),
    ("files/system_buses", "gVisor's own /sys, in which nothing of the host is shown"),
    ("kernel/first_process", "gVisor shows everybody's /proc; the usher's has nothing in it"),
    ("kernel/priorities", "gVisor's own priorities, which the host's scheduler does not know of"),
    (
        "resources/cpu_time_children",
        "gVisor's clock of processor time also counts time in which it waits for a processor",
    ),
    ("resources/denial_flood", "gVisor refuses calls without telling us"),
    ("resources/name_on_terminal", "gVisor refuses calls without telling us"),
    ("resources/name_turns_the_line", "gVisor refuses calls without telling us"),
    ("resources/priority", "gVisor's own priorities, which the host's scheduler does not know of"),
];

/// Why this attack is not tried on a kernel of its own, if so.
pub fn not_on_a_kernel_of_its_own(attack: &Attack) -> Option<&'static str> {
    NOT_ON_A_KERNEL_OF_ITS_OWN.iter().find(|(id, _)| *id == attack.id).map(|(_, why)| *why)
}

/// What comes of an attack in a container, where it is not held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InAContainer {
    /// It succeeds. Declared: the wall is reported as held partly, or the payload gains nothing by it.
    Open,
    /// It says nothing there: what it would show is not there, or nobody is told.
    Meaningless,
}

/// Attacks that are not held by a container, or mean nothing there, and why.
pub const IN_A_CONTAINER: &[(&str, InAContainer, &str)] = &[
    (
        "files/pipe_in_a_read_grant",
        InAContainer::Open,
        "a pipe in a folder that is read can be written to: engines apply no Landlock, and the wall `landlock` is held partly",
    ),
    (
        "files/planted_program",
        InAContainer::Meaningless,
        "the program is looked for inside the image, where nothing was planted",
    ),
    (
        "kernel/first_process",
        InAContainer::Open,
        "the first process is the engine's own, runs as the payload's user without any power, and guards nothing",
    ),
    (
        "kernel/raise_limits",
        InAContainer::Open,
        "the limit of processes is a control group's there, which no process can raise (`resources/fork_flood` tries that), and not a limit of each",
    ),
    (
        "resources/denial_flood",
        InAContainer::Meaningless,
        "refused calls are not counted: the engine's filter tells nobody",
    ),
    ("resources/disk_at_once", InAContainer::Open, DISK),
    ("resources/disk_closed_folder", InAContainer::Open, DISK),
    ("resources/disk_deep", InAContainer::Open, DISK),
    ("resources/disk_given_back", InAContainer::Open, DISK),
    ("resources/disk_grown_at_once", InAContainer::Open, DISK),
    ("resources/disk_unlinked", InAContainer::Open, DISK),
    ("resources/disk_workspace", InAContainer::Open, DISK),
    ("resources/inodes_workspace", InAContainer::Open, DISK),
    ("resources/name_on_terminal", InAContainer::Meaningless, "refused calls are not listed"),
    ("resources/name_turns_the_line", InAContainer::Meaningless, "refused calls are not listed"),
];
const DISK: &str =
    "bytes in writable places of the host are limited file by file: the wall `disk` is held partly, and says so";

/// What is known of this attack in a container, if it is not held.
pub fn in_a_container(attack: &Attack) -> Option<(InAContainer, &'static str)> {
    IN_A_CONTAINER.iter().find(|(id, ..)| *id == attack.id).map(|(_, what, why)| (*what, *why))
}
