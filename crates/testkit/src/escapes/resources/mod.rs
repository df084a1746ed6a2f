//! Attacks on limits, on what is left behind, and on the supervisor.

use crate::Attack;

mod outlive;

pub const ATTACKS: &[&Attack] = &[&outlive::ATTACK];
