//! Every attack, by what it is after.

pub mod files;
pub mod kernel;
pub mod resources;

use crate::Attack;

pub fn all() -> impl Iterator<Item = &'static Attack> {
    files::ATTACKS.iter().chain(kernel::ATTACKS).chain(resources::ATTACKS).copied()
}
