//! Attacks on what can be read and written, on names, descriptors, links and what is inherited.

use crate::Attack;

mod read_outside;

pub const ATTACKS: &[&Attack] = &[&read_outside::ATTACK];
