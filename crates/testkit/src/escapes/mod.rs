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
